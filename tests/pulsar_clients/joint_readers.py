"""The readers of a campaign: those that read on under kills, and both clients for Java when all is over."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulsar
from confluent_kafka import Consumer, TopicPartition

from tests.pulsar_clients.java import JavaClient, java, text

LASTING: Mapping[str, Any] = {"metadata.recovery.strategy": "none", "log_level": 0}
"""Options of librdkafka's clients where the broker is killed (docs/explanation/guarantees.md says why)."""
TIMEOUT_S = 120.0
_POLL_S = 0.1
_STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"

Values = Mapping[str, Sequence[str]]
"""By topic, in the order in which they came."""


class Live:
    """Readers of both protocols that go on while the broker is killed: librdkafka, and Pulsar's client for Python."""

    def __init__(self, bootstrap: str, client: pulsar.Client, topics: Sequence[str]) -> None:
        """Begin at the first message of each topic."""
        self.found: dict[str, dict[str, list[str]]] = {each: defaultdict(list) for each in ("Kafka", "Pulsar")}
        self._stopping = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "live", **LASTING})
        self._consumer.assign([TopicPartition(each, 0, 0) for each in topics])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._readers = [
            client.create_reader(each, pulsar.MessageId.earliest, reader_listener=self._listener(each))
            for each in topics
        ]

    def __enter__(self) -> "Live":
        """Begin to read."""
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """End them."""
        self._stopping.set()
        self._thread.join()
        self._consumer.close()
        for each in self._readers:
            each.close()

    def wait_for(self, topics: Sequence[str], count: int) -> None:
        """Wait until both have this many values of each topic."""

        def there() -> list[int]:
            return [len(found[topic]) for found in self.found.values() for topic in topics]

        deadline = time.monotonic() + TIMEOUT_S
        while min(there()) < count:
            assert time.monotonic() < deadline, f"{there()} of {count}"
            time.sleep(0.01)  # there is nothing to wait on but what two clients say

    def check(self, values: Values) -> None:
        """Check that both get these values, and no others."""
        for topic, wanted in values.items():
            self.wait_for([topic], len(wanted))
            for name, found in self.found.items():
                assert found[topic] == wanted, f"{name}'s reader of {topic}"

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                self.found["Kafka"][message.topic()].append(message.value().decode())

    def _listener(self, topic: str) -> Callable[[Any, Any], None]:
        return lambda _, message: self.found["Pulsar"][topic].append(message.data().decode())


def by_java(bootstrap: str, url: str, topics: Sequence[str]) -> dict[str, Values]:
    """Return what both clients for Java get, from the first message of each topic to the last one that there is."""
    return {"Kafka": _by_kafka(bootstrap, topics), "Pulsar": _by_pulsar(url, topics)}


def _by_kafka(bootstrap: str, topics: Sequence[str]) -> Values:
    place, duration = java("org.apache.kafka.common.TopicPartition"), java("java.time.Duration").ofMillis(100)
    options = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    strings = java(_STRINGS)
    consumer = java("org.apache.kafka.clients.consumer.KafkaConsumer")(_map(options), strings(), strings())
    places = java("java.util.ArrayList")([place(topic, 0) for topic in topics])
    consumer.assign(places)
    found: dict[str, list[str]] = {topic: [] for topic in topics}
    last, deadline = consumer.endOffsets(places), time.monotonic() + TIMEOUT_S
    while any(consumer.position(each) < last[each] for each in places):
        assert time.monotonic() < deadline
        for record in consumer.poll(duration):
            found[str(record.topic())].append(str(record.value()))
    consumer.close()
    return found


def _by_pulsar(url: str, topics: Sequence[str]) -> Values:
    client = JavaClient(url)
    found: dict[str, list[str]] = {}
    for topic in topics:
        reader, found[topic] = client.reader(topic), []
        while reader.hasMessageAvailable():
            found[topic].append(text(reader.readNext()))
        reader.close()
    client.close()
    return found


def _map(options: Mapping[str, Any]) -> Any:
    return java("java.util.HashMap")(dict(options))


def lag_of_group(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """Return how many records of each partition a group has not done."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **LASTING})
    try:
        places = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], TIMEOUT_S)
        return [consumer.get_watermark_offsets(each, TIMEOUT_S)[1] - each.offset for each in places]
    finally:
        consumer.close()
