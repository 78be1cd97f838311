"""A broker with a source of numbered messages, clients of confluent-kafka, and what a reader of committed records gets.

`EXACTA_TEST_EXACTLY_ONCE=N` gives the campaign N kills, and `EXACTA_TEST_BROKER=kafka` lets it run on Apache Kafka.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

import exacta

CALL_S = 30.0
MESSAGES = 10

NewConsumer = Callable[..., Consumer]
NewProducer = Callable[..., Producer]


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    with exacta.Broker(num_partitions=1, group_consumer_heartbeat_interval_ms=100) as broker:
        broker.create_topic("out", 1)
        fill(broker, "in", MESSAGES)
        yield broker


@pytest.fixture
def new_consumer(broker: exacta.Broker) -> Iterator[NewConsumer]:
    made = []

    def make(*topics: str, **more: object) -> Consumer:
        made.append(Consumer(consuming(broker.bootstrap_servers, **more)))
        made[-1].subscribe([*topics] or ["in"])
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def new_producer(broker: exacta.Broker) -> NewProducer:
    def make(transactional_id: str = "copy-1", **more: object) -> Producer:
        producer = Producer(servers(broker.bootstrap_servers) | {"transactional.id": transactional_id} | more)
        producer.init_transactions(CALL_S)
        return producer

    return make


@pytest.fixture
def consumer(new_consumer: NewConsumer) -> Consumer:
    return new_consumer()


@pytest.fixture
def producer(new_producer: NewProducer) -> Producer:
    return new_producer()


def servers(address: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "log_level": 0,
        "metadata.recovery.strategy": "none",
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
    }


def consuming(address: str, **more: Any) -> dict[str, Any]:
    settings = servers(address) | {
        "group.id": "copy",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "heartbeat.interval.ms": 100,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 20,
    }
    if more.get("group.protocol") == "consumer":
        del settings["heartbeat.interval.ms"]  # it is the broker's
    return settings | more


def fill(broker: exacta.Broker, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer(servers(broker.bootstrap_servers))
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(CALL_S) == 0


def copy(producer: Producer, messages: list[Any]) -> None:
    for message in messages:
        producer.produce("out", message.value())


def copied(broker: exacta.Broker) -> list[bytes | None]:
    """Return what is committed, though an open transaction may stand before it."""
    return [record.value for record in broker.records("out", "uncommitted") if record.fate == "committed"]


def numbers(count: int = MESSAGES) -> list[bytes | None]:
    return [b"%d" % number for number in range(count)]
