"""A work queue of Pulsar's for a query to consume: its messages, and what is left of them."""

from contextlib import contextmanager

import pulsar

from exacta.client.routing import Client
from exacta.client.subscriptions import describe_subscriptions

NAME = "workers"
TIMEOUT_MS = 30_000


class WorkQueue:
    """A topic of messages, whose values are numbers, and its subscription."""

    def __init__(self, bootstrap, pulsar_url, topic):
        self.bootstrap, self.url, self.topic = bootstrap, pulsar_url, topic
        self._client = None
        self.open()
        self.consumer().close()  # now there is the subscription

    def open(self):
        """Connect a client."""
        errors = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self._client = pulsar.Client(self.url, operation_timeout_seconds=30, logger=errors)

    def close(self):
        """Disconnect, as the death of a process does."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def consumer(self):
        """Return a new consumer, which is given all that no other one has."""
        return self._client.subscribe(
            self.topic,
            NAME,
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
        )

    def fill(self, numbers):
        """Send a message for each number, several in one batch."""
        producer = self._client.create_producer(self.topic, batching_enabled=True, batching_max_publish_delay_ms=100)
        for number in numbers:
            producer.send_async(b"%d" % number, lambda *_: None)
        producer.flush()
        producer.close()

    def counts(self):
        """Return how many messages are free, and how many wait for a transaction."""
        with Client(self.bootstrap) as client:
            [found] = describe_subscriptions(client, [self.topic], [NAME])
        return found.left - found.pending, found.pending

    @contextmanager
    def taken(self):
        """Yield all messages that are free; those that are not acknowledged meanwhile are given back."""
        free, _ = self.counts()
        consumer = self.consumer()
        try:
            yield [consumer.receive(TIMEOUT_MS) for _ in range(free)]
        finally:
            consumer.close()
