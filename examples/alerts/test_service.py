"""Tests of the service, with a real broker, and with a second owner of the partition in the middle of a step."""

import asyncio
from contextlib import aclosing

import pytest
from confluent_kafka import Producer

import exacta
from examples.alerts.service import clients, step


@pytest.fixture
def alerts(exacta_broker: exacta.Broker, exacta_topic: str) -> str:
    producer = Producer({"bootstrap.servers": exacta_broker.bootstrap_servers})
    for value in (20, 101, 99, 150, 30):
        producer.produce(exacta_topic, str(value))
    producer.flush()
    exacta_broker.create_topic(f"{exacta_topic}-alerts", 1)
    return f"{exacta_topic}-alerts"


async def work(broker: exacta.Broker, measurements: str, alerts: str) -> None:
    """Run the service until its group has read all that there is."""
    consumer, transactions = clients(broker.bootstrap_servers, measurements, group=alerts)
    async with consumer, aclosing(transactions) as once:
        while await asyncio.to_thread(broker.offsets, alerts) != {(measurements, 0): 5}:
            await step(once, alerts)


def values(broker: exacta.Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_what_is_too_hot_has_an_alert(exacta_broker: exacta.Broker, exacta_topic: str, alerts: str) -> None:
    asyncio.run(work(exacta_broker, exacta_topic, alerts))
    assert values(exacta_broker, alerts) == [b"101", b"150"]


def test_another_owner_takes_the_partition_over(exacta_broker: exacta.Broker, exacta_topic: str, alerts: str) -> None:
    transactional_id = f"{alerts}-{exacta_topic}-0"
    exacta_broker.faults.cut_connection("TxnOffsetCommit", then=lambda: exacta_broker.faults.fence(transactional_id))
    asyncio.run(work(exacta_broker, exacta_topic, alerts))
    assert values(exacta_broker, alerts) == [b"101", b"150"]
