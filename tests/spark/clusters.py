"""Find a broker for the tests of the client and of Spark, and look at what is in it.

`EXACTA_TEST_BOOTSTRAP` names a running cluster (Apache Kafka, say); without it each test session has an Exacta of its
own, or, with `EXACTA_TEST_BROKER=kafka`, a node of Apache Kafka. With `EXACTA_TEST_TRANSACTION_BUFFER=sidecar` the
Exacta's topics are sidecar topics.
"""

import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

import exacta
from exacta.client.routing import Client, UnknownTopic
from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED, create_topic, list_offsets
from exacta.client.transactions import TopicPartition as Partition
from tests.conformance.brokers import ON_KAFKA, ON_SIDECAR, TRANSACTION_BUFFER, broker_process

on_marker_topics = pytest.mark.skipif(
    ON_SIDECAR, reason="on a sidecar topic no reader waits for a transaction, and no end has a marker"
)

ELSEWHERE = os.environ.get("EXACTA_TEST_BOOTSTRAP")
_numbers = itertools.count()


@contextmanager
def a_cluster() -> Iterator[str]:
    """Yield the bootstrap servers of a cluster."""
    if ELSEWHERE:
        yield ELSEWHERE
        return
    if ON_KAFKA:
        with tempfile.TemporaryDirectory() as folder, broker_process(Path(folder)) as broker:
            yield broker.bootstrap
        return
    with exacta.Broker(transaction_buffer=TRANSACTION_BUFFER) as broker:
        yield broker.bootstrap_servers


def new_topic(bootstrap: str, partitions: int = 3, stem: str = "topic", **configs: str) -> str:
    """Create a topic with a name that no other test has; configurations have `_` for `.` in their names."""
    name = f"{stem}-{os.getpid()}-{os.urandom(3).hex()}-{next(_numbers)}"
    with Client(bootstrap) as client:
        # One of three brokers may die, and nothing is gone.
        copies = min(3, len(client.nodes()))
        asked = {each.replace("_", "."): value for each, value in configs.items()}
        assert create_topic(client, name, partitions=partitions, replication_factor=copies, configs=asked)
        # Apache Kafka answers before all of its parts know the topic.
        for _ in range(1_000):
            with suppress(UnknownTopic):
                assert client.partitions([name]) == {name: partitions}
                return name
    raise AssertionError(f"{name} does not come into being")


def make_anew(bootstrap: str, topic: str) -> None:
    """Delete a topic and create another of the same name, with one partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    with Client(bootstrap) as client:
        for _ in range(10_000):
            with suppress(UnknownTopic):
                client.partitions([topic])
                continue
            # Apache Kafka may take the old one for there still.
            if create_topic(client, topic, partitions=1):
                break
        for _ in range(10_000):
            with suppress(UnknownTopic):
                if client.partitions([topic]) == {topic: 1}:
                    return
    raise AssertionError(f"{topic} does not come into being again")


def read_committed(bootstrap: str, topic: str, *, settled: bool = True) -> list[tuple[int, bytes | None, Any]]:
    """Return (partition, key, value) of every committed record, by an independent client (librdkafka).

    `settled`: wait first until no transaction is open. Apache Kafka answers before it has ended one everywhere.
    """
    waits = itertools.count()
    while settled and held_back(bootstrap, topic):
        assert next(waits) < 5_000, "a transaction stays open"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # an end is told when a fetch there comes back empty
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
        found: list[tuple[int, bytes | None, Any]] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                found.append((message.partition(), message.key(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
        return found
    finally:
        consumer.close()


def held_back(bootstrap: str, topic: str) -> dict[int, tuple[int, int]]:
    """Return, by partition, last stable offset and high watermark where they differ: readers stand still there."""
    with Client(bootstrap) as client:
        partitions = [Partition(topic, index) for index in range(client.partitions([topic])[topic])]
        stable = list_offsets(client, partitions, -1, isolation_level=READ_COMMITTED)
        high = list_offsets(client, partitions, -1, isolation_level=READ_UNCOMMITTED)
    return {each.partition: (stable[each], high[each]) for each in partitions if stable[each] != high[each]}


class Tally(NamedTuple):
    """The number of times that each row of a set is among a topic's committed records."""

    lost: int  # rows that are not there
    twice: int  # records too many
    strange: int  # records that are no such rows

    @property
    def exactly_once(self) -> bool:
        """Return whether every row is there once, and nothing else."""
        return self == (0, 0, 0)


def tally(bootstrap: str, topic: str, rows: Collection[int]) -> Tally:
    """Count what a topic holds; check that no transaction is left open."""
    counts = Counter(int(value) for _, _, value in read_committed(bootstrap, topic, settled=False))
    assert held_back(bootstrap, topic) == {}
    expected = set(rows)
    return Tally(
        lost=len(expected - counts.keys()),
        twice=sum(count - 1 for count in counts.values()),
        strange=len(counts.keys() - expected),
    )


def check_exactly(bootstrap: str, topic: str, rows: Collection[int]) -> None:
    """Check that the values of a topic's committed records are `rows`, each once, and that nothing is left open."""
    found = tally(bootstrap, topic, rows)
    assert found.exactly_once, found
