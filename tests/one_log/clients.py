"""The clients of both protocols, as short as tests need them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pulsar
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

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


def kafka_records(bootstrap: str, topic: str, offset: int = 0, isolation: str = "read_committed") -> list[Message]:
    """Return all records from an offset on, up to the present end, by librdkafka; it checks each batch's checksum."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "check.crcs": True,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end is told when a fetch there comes back empty
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        found: list[Message] = []
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, f"no end after {len(found)} records"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            found.append(message)
    finally:
        consumer.close()


def kafka_reads(
    broker: exacta.Broker, topic: str, count: int, offset: int = 0, isolation: str = "read_committed"
) -> list[Message]:
    """Return the records from an offset on; there must be `count`."""
    found = kafka_records(broker.bootstrap_servers, topic, offset, isolation)
    assert len(found) == count
    return found


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


def pulsar_messages(url: str, topic: str) -> list[Any]:
    """Return all messages, up to the present end, by a reader of Pulsar's."""
    with client(url) as opened:
        reader = opened.create_reader(topic, pulsar.MessageId.earliest)
        found: list[Any] = []
        while reader.has_message_available():
            found.append(reader.read_next(timeout_millis=SECONDS * 1000))
        return found


def pulsar_reads(broker: exacta.Broker, topic: str, count: int) -> list[Any]:
    """Return the messages of a topic; there must be `count`."""
    found = pulsar_messages(broker.pulsar_url, topic)
    assert len(found) == count
    return found
