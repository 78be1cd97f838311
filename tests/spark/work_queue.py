"""A work queue of Pulsar's for a query to consume: its messages, what is left of them, and a query that does so."""

from contextlib import closing, contextmanager

import pulsar

import exacta
from exacta.client.routing import Client
from exacta.client.subscriptions import describe_subscriptions
from exacta.spark import foreach_batch
from tests.spark import faults
from tests.spark.queries import reading

NAME = "workers"
TIMEOUT_MS = 30_000
MOST_MESSAGES = 1_000
IDLE_MS = 50
"""The time for which a batch waits for messages."""


class WorkQueue:
    """A topic of messages, whose values are numbers, and its subscription."""

    def __init__(self, bootstrap, pulsar_url, topic):
        self.bootstrap, self.url, self.topic = bootstrap, pulsar_url, topic
        self._client = client(pulsar_url)
        self.consumer().close()  # now there is the subscription

    def close(self):
        """Disconnect."""
        self._client.close()

    def consumer(self):
        """Return a new consumer, which is given all that no other one has."""
        return subscribe(self._client, self.topic)

    def fill(self, numbers):
        """Send a message for each number, several in one batch."""
        producer = self._client.create_producer(self.topic, batching_enabled=True, batching_max_publish_delay_ms=100)
        results = []
        for number in numbers:
            producer.send_async(b"%d" % number, lambda result, _: results.append(result))
        producer.flush()
        producer.close()
        assert set(results) <= {pulsar.Result.Ok}

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


def client(url):
    """Return a Pulsar client that prints errors only."""
    errors = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(url, operation_timeout_seconds=30, logger=errors)


def subscribe(opened, topic):
    """Return a consumer of the queue."""
    return opened.subscribe(
        topic,
        NAME,
        consumer_type=pulsar.ConsumerType.Shared,
        initial_position=pulsar.InitialPosition.Earliest,
        batch_receive_policy=pulsar.ConsumerBatchReceivePolicy(MOST_MESSAGES, -1, IDLE_MS),
    )


def start_query(spark, job):
    """Start a query that copies a topic, and the messages that are in the work queue when a batch is written."""
    url, topic = job.work_queue
    opened = client(url)
    options = {"kafka.bootstrap.servers": job.bootstrap, "topic": job.sink, **job.options}
    faults.watch_requests(job.faults)

    def save(rows, given):
        rows.write.format("faulty").option("fault.directory", job.faults).mode("append").options(**given).save()

    foreach_batch._save = save

    def write(batch_df, batch_id):
        with closing(subscribe(opened, topic)) as consumer:
            messages = consumer.batch_receive()
            rows = spark.createDataFrame([(bytearray(each.data()),) for each in messages], "value binary")
            rows = batch_df.union(rows).repartition(job.tasks)
            exacta.spark.write(rows, batch_id, options, acknowledge={NAME: messages})
        faults.reach(job.faults, faults.COMMITTED)

    rows = reading(spark, job.bootstrap, job.source, maxOffsetsPerTrigger=job.limit).select("value")
    return rows.writeStream.foreachBatch(write).option("checkpointLocation", job.checkpoint).start()
