"""Retention under a real client: the disk gets its space back, and what is kept is served, also after a restart."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import exacta
from exacta.adapters.local.damage.inspection import Finding, inspect
from exacta.adapters.local.files import PosixFiles
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.records import with_max_timestamp
from tests.kafka.wire import Wire, batch
from tests.kafka.wire import produce as produce_batch
from tests.spark.clusters import read_committed
from tests.test_cli import run_log
from tests.waiting import wait_until

PATIENCE_S = 60
KEPT_BYTES = 300_000
RECORD_BYTES = 10_000
COUNT = 1_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[exacta.Broker]:
    intervals = {"log.retention.check.interval.ms": 50, "log.cleaner.backoff.ms": 50}
    with exacta.Broker(tmp_path, config={"log.segment.bytes": 1 << 20, **intervals}) as broker:
        yield broker


def settings(broker: exacta.Broker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}


def create(broker: exacta.Broker, topic: str, **configs: str) -> None:
    admin = AdminClient(settings(broker))
    (created,) = admin.create_topics([NewTopic(topic, 1, 1, config=configs)]).values()
    created.result(PATIENCE_S)


def produce(broker: exacta.Broker, topic: str, count: int, **more: object) -> Producer:
    producer = Producer(settings(broker) | {"linger.ms": 0, "batch.size": 3 * RECORD_BYTES} | more)
    if "transactional.id" in more:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, key=b"%06d" % number, value=bytes(RECORD_BYTES))
        if number % 30 == 29:  # what comes at once is one group of the journal, and no group is cut in two
            assert producer.flush(PATIENCE_S) == 0
    assert producer.flush(PATIENCE_S) == 0
    return producer


def size_bytes(data: Path) -> int:
    total = 0
    for path in (data / "journal").iterdir():
        with suppress(FileNotFoundError):  # it has just been cleaned away
            total += path.stat().st_size
    return total


def offsets(broker: exacta.Broker, topic: str) -> tuple[int, int]:
    consumer = Consumer(settings(broker) | {"group.id": "g", "isolation.level": "read_uncommitted"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        return low, high
    finally:
        consumer.close()


def keys(broker: exacta.Broker, topic: str) -> list[bytes | None]:
    return [key for _, key, _ in read_committed(broker.bootstrap_servers, topic)]


def test_the_disk_holds_little_more_than_what_is_kept(broker: exacta.Broker, tmp_path: Path) -> None:
    create(broker, "kept")
    produce(broker, "kept", 20)
    create(broker, "short", **{"retention.bytes": str(KEPT_BYTES)})
    produce(broker, "short", COUNT)
    written = COUNT * RECORD_BYTES
    wait_until(lambda: size_bytes(tmp_path) < written // 2, PATIENCE_S, "nothing was freed")
    assert keys(broker, "kept") == [b"%06d" % number for number in range(20)]
    wait_until(lambda: offsets(broker, "short")[0] > 0, PATIENCE_S, "nothing was deleted")
    low, high = offsets(broker, "short")
    assert high == COUNT
    assert (high - low) * RECORD_BYTES >= KEPT_BYTES
    assert keys(broker, "short") == [b"%06d" % number for number in range(low, COUNT)]
    broker.stop()
    assert [found for found in inspect(PosixFiles(tmp_path / "journal")) if isinstance(found, Finding)] == []
    dumped = run_log("dump", tmp_path).stdout.splitlines()
    cleaned = [line for line in map(json.loads, dumped) if line["event"] is None]
    assert sum(row["record_count"] for row in cleaned[0]["batches"]) == 20
    broker.start()
    assert keys(broker, "kept") == [b"%06d" % number for number in range(20)]
    assert keys(broker, "short")[-30:] == [b"%06d" % number for number in range(COUNT - 30, COUNT)]


@pytest.mark.parametrize("said_ms", [-1, 0, 1 << 62])
def test_retention_goes_by_the_times_of_records_whatever_a_header_says(broker: exacta.Broker, said_ms: int) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    wire, now_ms = Wire((host, int(port))), time.time_ns() // 1_000_000
    for name in ("t", "other"):
        create(broker, name, **{"retention.ms": "600000"})

    def send(name: str, age_ms: int) -> None:
        sent = with_max_timestamp(batch(b"v", timestamp_ms=now_ms - age_ms), said_ms, log_append_time=False)
        assert produce_batch(wire, sent, topic=name).error_code == ErrorCode.NONE

    send("t", 3_600_000)
    send("t", 0)
    wait_until(lambda: offsets(broker, "t") == (1, 2), PATIENCE_S, "the old one was not deleted")
    send("other", 3_600_000)
    wait_until(lambda: offsets(broker, "other") == (1, 1), PATIENCE_S, "nothing was looked at again")
    assert offsets(broker, "t") == (1, 2), "the young one was deleted"
    wire.socket.close()


def test_what_is_deleted_with_its_topic_is_freed(broker: exacta.Broker, tmp_path: Path) -> None:
    create(broker, "gone")
    create(broker, "other")
    produce(broker, "gone", COUNT // 2)
    admin = AdminClient(settings(broker))
    (deleted,) = admin.delete_topics(["gone"]).values()
    deleted.result(PATIENCE_S)
    produce(broker, "other", 250)  # two segments later, where snapshots can be
    wait_until(lambda: size_bytes(tmp_path) < 450 * RECORD_BYTES, PATIENCE_S, "nothing was freed")
    assert len(keys(broker, "other")) == 250


def test_an_open_transaction_keeps_its_records(broker: exacta.Broker, tmp_path: Path) -> None:
    create(broker, "t", **{"retention.ms": "1"})
    producer = produce(broker, "t", 10, **{"transactional.id": "x"})
    create(broker, "other", **{"retention.ms": "1"})
    produce(broker, "other", 300)
    wait_until(lambda: offsets(broker, "other") == (300, 300), PATIENCE_S, "nothing was deleted")
    wait_until(lambda: size_bytes(tmp_path) < 200 * RECORD_BYTES, PATIENCE_S, "nothing was freed")
    assert offsets(broker, "t") == (0, 10)
    producer.commit_transaction(PATIENCE_S)
    wait_until(lambda: offsets(broker, "t") == (11, 11), PATIENCE_S, "what is committed is as old as the rest")
