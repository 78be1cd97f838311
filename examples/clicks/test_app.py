"""Tests of the app, with a real broker, and with a record that is written while the answer to it is lost."""

import asyncio
import json

import pytest
from confluent_kafka import Producer

import exacta
from examples.clicks.app import make_app

CLICKS = [b'{"user": "Alice", "page": "/Home"}', b"no click", b'{"user": "bob", "page": "/cart"}']


@pytest.fixture
def clicks(exacta_broker: exacta.Broker, exacta_topic: str) -> str:
    for kind in ("clean", "odd"):
        exacta_broker.create_topic(f"{exacta_topic}-{kind}", 1)
    producer = Producer({"bootstrap.servers": exacta_broker.bootstrap_servers})
    for value in CLICKS:
        producer.produce(exacta_topic, value)
    producer.flush()
    return exacta_topic


async def work(broker: exacta.Broker, clicks: str) -> None:
    """Run the app until its group has read all that there is."""
    app = make_app(broker.bootstrap_servers, clicks)
    running = asyncio.create_task(app.run())
    await asyncio.to_thread(broker.wait_until_read, clicks, topics=[clicks])
    app.exit()
    await running


def check(broker: exacta.Broker, clicks: str) -> None:
    found = [json.loads(record.value or b"") for record in broker.records(f"{clicks}-clean")]
    assert found == [{"user": "alice", "page": "/home"}, {"user": "bob", "page": "/cart"}]
    assert [record.value for record in broker.records(f"{clicks}-odd")] == [b"no click"]


def test_clicks_are_passed_on(exacta_broker: exacta.Broker, clicks: str) -> None:
    asyncio.run(work(exacta_broker, clicks))
    check(exacta_broker, clicks)


def test_a_lost_answer_doubles_nothing(exacta_broker: exacta.Broker, clicks: str) -> None:
    exacta_broker.faults.drop_answer("Produce")
    asyncio.run(work(exacta_broker, clicks))
    check(exacta_broker, clicks)
