"""Pulsar's own client for Python (and C++) on compacted topics, whose logs a child process compacts on the disk."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pulsar
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import exacta
from tests.pulsar.wire import client

POLICY = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "1"}
KEYS = 20
ROUNDS = 5
CODECS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")
PATIENCE_S = 60.0
LOOKS_AGAIN_S = 0.1
"""The processor is the compaction's meanwhile, and not the next look's."""
RECEIVE_MS = 20_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[exacta.Broker]:
    """A broker that compacts as soon as it may."""
    options: dict[str, Any] = {
        "log_retention_check_interval_ms": 10,
        "log_cleaner_backoff_ms": 10,
        "log_segment_bytes": 1 << 20,
    }
    with exacta.Broker(data=tmp_path / "data", pulsar=True, **options) as running:
        yield running


def create(broker: exacta.Broker, *topics: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1, config={**POLICY, **config}) for topic in topics])
    for each in created.values():
        each.result(20)


def send(producer: Any, messages: Sequence[tuple[str, bytes | None]]) -> None:
    """Send messages in one batch."""
    results: list[Any] = []
    for key, value in messages:
        producer.send_async(value, lambda result, _: results.append(result), partition_key=key)
    producer.flush()
    assert results == [pulsar.Result.Ok] * len(messages)


def write(opened: Any, topic: str, codec: str = "NONE") -> dict[str, bytes]:
    """Write batches, the first of which compaction will leave in part; return the last value of each key."""
    producer = opened.create_producer(
        topic,
        batching_enabled=True,
        batching_max_publish_delay_ms=60_000,
        compression_type=getattr(pulsar.CompressionType, codec),
    )
    last: dict[str, bytes] = {}
    for number in range(ROUNDS):
        written = [key for key in range(KEYS) if key % 3 or number <= key % ROUNDS]
        messages = [(f"k{key}", b"%d of round %d " % (key, number) * 20) for key in written]
        send(producer, messages)
        last.update(messages)
    producer.close()
    return last


def read(opened: Any, topic: str) -> list[tuple[str, bytes]]:
    """Read all there is, by a reader, without the messages that end segments."""
    reader = opened.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    found = []
    while reader.has_message_available():
        message = reader.read_next(RECEIVE_MS)
        found.append((message.partition_key(), message.data()))
    reader.close()
    return [each for each in found if each[0] != "on"]


def wait_for(opened: Any, topic: str, count: int) -> list[tuple[str, bytes]]:
    """Write on, so that segments end, until compaction has left no more messages than `count`; return these."""
    producer = opened.create_producer(topic, batching_enabled=False)
    deadline = time.monotonic() + PATIENCE_S
    while len(found := read(opened, topic)) > count:
        producer.send(b"on", partition_key="on")
        assert time.monotonic() < deadline, f"{len(found)} messages are left, and {count} keys"
        time.sleep(LOOKS_AGAIN_S)
    producer.close()
    return found


def test_a_reader_sees_the_last_message_of_each_key(broker: exacta.Broker) -> None:
    create(broker, *CODECS)
    with client(broker.pulsar_url) as opened:
        last = {codec: write(opened, codec, codec) for codec in CODECS}
        found = {codec: wait_for(opened, codec, KEYS) for codec in CODECS}
        for codec in CODECS:
            assert dict(found[codec]) == last[codec]
            assert len(found[codec]) == KEYS, "holes are none of them"
        broker.restart()
    with client(broker.pulsar_url) as opened:
        assert {codec: read(opened, codec) for codec in CODECS} == found


@pytest.mark.parametrize("value", [b"", None], ids=["empty", "null"])
def test_a_message_without_a_value_deletes_its_key(broker: exacta.Broker, value: bytes | None) -> None:
    create(broker, "t", **{"delete.retention.ms": "0"})
    with client(broker.pulsar_url) as opened:
        producer = opened.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=60_000)
        send(producer, [("a", b"v"), ("b", b"v"), ("c", b"v"), ("b", value)])
        assert [key for key, _ in wait_for(opened, "t", 2)] == ["a", "c"]


def test_a_consumer_acknowledges_what_is_left_and_gets_it_once(broker: exacta.Broker) -> None:
    """It acknowledges by the parts of batches: otherwise this client waits for the holes."""
    create(broker, "t")
    with client(broker.pulsar_url) as opened:
        last = write(opened, "t")
        wait_for(opened, "t", KEYS)
        for kind in (pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared):
            subscription = {
                "topic": "t",
                "subscription_name": kind.name,
                "consumer_type": kind,
                "initial_position": pulsar.InitialPosition.Earliest,
                "batch_index_ack_enabled": True,
            }
            consumer = opened.subscribe(**subscription)
            found: dict[str, bytes] = {}
            while len(found) < KEYS + 1:
                message = consumer.receive(RECEIVE_MS)
                found[message.partition_key()] = message.data()
                consumer.acknowledge(message)
            assert found == {**last, "on": b"on"}
            consumer.close()
            producer = opened.create_producer("t", batching_enabled=False)
            producer.send(b"on", partition_key="on")
            consumer = opened.subscribe(**subscription)
            assert {consumer.receive(RECEIVE_MS).partition_key() for _ in range(1)} == {"on"}, "no other comes again"
            consumer.close()


def test_a_message_without_a_key_fails_at_once_and_the_next_one_does_not(broker: exacta.Broker) -> None:
    """This client would send again for ever what is refused with another error."""
    create(broker, "t")
    with client(broker.pulsar_url) as opened:
        for batching in (False, True):
            producer = opened.create_producer("t", send_timeout_millis=0, batching_enabled=batching)
            with pytest.raises(pulsar.ChecksumError):
                producer.send(b"no key")
            producer.send(b"v", partition_key="k")
            producer.close()
        assert read(opened, "t") == [("k", b"v")] * 2
