"""Clients for Python place equal keys alike, by the examples of docs/how-to/keys-and-partitions.md as printed."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

import exacta
from tests.one_log.keys import KAFKA, KEYS, PULSAR, SECONDS, create, placed, printed, wanted
from tests.pulsar.wire import client


def run(broker: exacta.Broker, has: str) -> dict[str, Any]:
    """Run the page's example that has these words; return its names."""
    text = printed("python", has).text
    for address, real in (
        ("127.0.0.1:9092", broker.bootstrap_servers),
        ("pulsar://127.0.0.1:6650", broker.pulsar_url),
    ):
        text = text.replace(address, real)
    names: dict[str, Any] = {"__name__": "page"}
    exec(text, names)
    return names


def confluent_sends(producer: Producer) -> None:
    for key in KEYS:
        producer.produce("orders", b"confluent-kafka", key)
    assert producer.flush(SECONDS) == 0


def kafka_python_sends(producer: KafkaProducer) -> None:
    for key in KEYS:
        producer.send("orders", b"kafka-python", key.encode())
    producer.close()


async def aiokafka_sends(producer: AIOKafkaProducer) -> None:
    for key in KEYS:
        await producer.send("orders", b"aiokafka", key.encode())
    await producer.stop()


def pulsar_sends(producer: Any) -> None:
    for key in KEYS:
        producer.send_async(b"pulsar-client", None, partition_key=key)
    producer.flush()


SENDERS = ["confluent-kafka", "kafka-python", "aiokafka", "pulsar-client"]


def test_as_kafkas_clients_do(broker: exacta.Broker) -> None:
    create(broker.bootstrap_servers, "orders")
    confluent_sends(run(broker, "murmur2_random")["producer"])
    kafka_python_sends(KafkaProducer(bootstrap_servers=broker.bootstrap_servers))

    async def by_default() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await aiokafka_sends(producer)

    asyncio.run(by_default())
    names = run(broker, "def as_kafka")
    pulsar_sends(names["producer"])
    names["client"].close()
    assert placed(broker.bootstrap_servers, "orders", SENDERS) == dict.fromkeys(SENDERS, wanted(KAFKA))


def test_as_pulsars_clients_can(broker: exacta.Broker) -> None:
    create(broker.bootstrap_servers, "orders")
    names = run(broker, "def send(")
    for key in KEYS:
        names["send"](key.encode(), b"confluent-kafka")
    assert names["producer"].flush(SECONDS) == 0
    names = run(broker, "class AsPulsar")
    kafka_python_sends(names["producer"])

    async def by_function() -> None:
        await aiokafka_sends(await names["open_producer"]())

    asyncio.run(by_function())
    names = run(broker, "def by_murmur3")
    pulsar_sends(names["producer"])
    names["client"].close()
    assert placed(broker.bootstrap_servers, "orders", SENDERS) == dict.fromkeys(SENDERS, wanted(PULSAR))


@pytest.mark.parametrize("way", [KAFKA, PULSAR])
def test_by_default_they_do_not_agree(broker: exacta.Broker, way: str) -> None:
    """The page would be in vain otherwise."""
    create(broker.bootstrap_servers, "orders")
    confluent_sends(Producer({"bootstrap.servers": broker.bootstrap_servers}))
    with client(broker.pulsar_url) as opened:
        pulsar_sends(opened.create_producer("orders"))
    found = placed(broker.bootstrap_servers, "orders", ["confluent-kafka", "pulsar-client"])
    assert wanted(way) not in found.values()
    assert found["confluent-kafka"] != found["pulsar-client"]
