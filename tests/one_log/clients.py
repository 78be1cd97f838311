"""The clients of both protocols, as short as tests need them: what was sent, and what came."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pulsar
from confluent_kafka import Consumer, Message, Producer, TopicPartition

import exacta
from tests.pulsar.wire import client

SECONDS = 20
Headers = list[tuple[str, bytes | None]]


class Sent(NamedTuple):
    """A record for Kafka's producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = []  # noqa: RUF012  # nobody changes it
    timestamp_ms: int = 1_700_000_000_000


def kafka_sends(broker: exacta.Broker, topic: str, records: Iterable[Sent], **options: Any) -> None:
    """Produce records by librdkafka, in one batch where they fit."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 200, **options})
    for each in records:
        producer.produce(
            topic, each.value, each.key, partition=0, timestamp=each.timestamp_ms, headers=each.headers or None
        )
    assert producer.flush(SECONDS) == 0


def kafka_reads(
    broker: exacta.Broker,
    topic: str,
    count: int,
    offset: int = 0,
    isolation: str = "read_committed",
    *,
    rest: bool = False,
) -> list[Message]:
    """Return so many records from an offset on, by librdkafka; it checks each batch's checksum.

    There must be no more of them, unless `rest` says that there may be.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "check.crcs": True,
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        found: list[Message] = []
        while len(found) < count:
            message = consumer.poll(SECONDS)
            assert message is not None, f"{len(found)} of {count} records"
            assert message.error() is None, message.error()
            found.append(message)
        assert rest or consumer.poll(0.3) is None
        return found
    finally:
        consumer.close()


def headers_of(message: Message) -> dict[str, bytes | None]:
    """Return a record's headers by name."""
    return dict(message.headers() or [])


def pulsar_sends(broker: exacta.Broker, topic: str, messages: Iterable[dict[str, Any]], **options: Any) -> list[Any]:
    """Send messages by Pulsar's client, in one batch where it makes batches; return their ids."""
    ids: list[Any] = []
    with client(broker.pulsar_url) as opened:
        producer = opened.create_producer(topic, batching_max_publish_delay_ms=500, **options)
        for fields in messages:
            content = fields.pop("content")
            producer.send_async(content, lambda result, message_id: ids.append((result, message_id)), **fields)
        producer.flush()
        producer.close()
    assert {result for result, _ in ids} <= {pulsar.Result.Ok}
    return [message_id for _, message_id in ids]


def pulsar_reads(broker: exacta.Broker, topic: str, count: int) -> list[Any]:
    """Return so many messages from the first one on, by a reader of Pulsar's, and find that there are no more."""
    with client(broker.pulsar_url) as opened:
        reader = opened.create_reader(topic, pulsar.MessageId.earliest)
        found = [reader.read_next(timeout_millis=SECONDS * 1000) for _ in range(count)]
        assert not reader.has_message_available()
        return found
