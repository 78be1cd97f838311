"""A journal as a real broker and real clients leave it, for the tests that damage and repair it."""

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

import exacta
from exacta.adapters.local.damage.inspection import Finding, SoundGroup, inspect
from simulation.disk.simulated import SimulatedDisk

SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 60_000
SPILLED = (30, 33, 39)
"""These transactions write so much to the sidecar topic that it spills: one commits, one aborts, one is left open."""
LOOKS_AGAIN_S = 0.02
"""What a broker does beside its clients is looked for so often. Each look writes a batch, and each test that damages
the journal reads all of it many times: without a pause there would be thousands."""

Row = tuple[int, int, int]


def write(data: Path, *, stops: bool = True) -> None:
    """Write some segments: records outside of and within transactions, of which some are aborted, and group offsets.

    The transactions write to a sidecar topic, too. At the end one is open that has written much there.
    """
    broker = exacta.Broker(data=data, log_segment_bytes=SEGMENT_BYTES, num_partitions=2)
    broker.start()
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    plain = Producer({**servers, "enable.idempotence": True})
    transactional = Producer({**servers, "transactional.id": "writer"})
    transactional.init_transactions(30)
    admin = AdminClient(servers)
    aside = NewTopic("aside", 1, 1, config={"transaction.buffer": "sidecar"})
    admin.create_topics([aside])["aside"].result(30)
    consumer = Consumer({**servers, "group.id": "readers"})
    for number in range(40):
        plain.produce("plain", b"%06d" % number * (VALUE_BYTES // 6), partition=number % 2)
        assert plain.flush(30) == 0
        transactional.begin_transaction()
        for part in range(2):
            transactional.produce("moved", b"%05d%d" % (number, part) * (VALUE_BYTES // 6 // 4), partition=0)
        for part in range(6 if number in SPILLED else number % 2):
            transactional.produce("aside", b"%05d%d" % (number, part) * (VALUE_BYTES // 6), partition=0)
            assert transactional.flush(30) == 0
        assert transactional.flush(30) == 0
        if number == 39:
            break
        if number % 5 == 3:
            transactional.abort_transaction(30)
        else:
            transactional.commit_transaction(30)
        consumer.commit(offsets=[TopicPartition("plain", number % 2, number // 2 + 1)], asynchronous=False)
        segments = {14: 1, 26: 2}.get(number, 0)
        while _newest_snapshot(data) < segments * SEGMENT_BYTES:
            plain.list_topics(timeout=30)  # they are made beside what clients ask for
            time.sleep(LOOKS_AGAIN_S)
    consumer.close()
    if stops:
        broker.stop()
    else:
        broker.kill()


def _newest_snapshot(data: Path) -> int:
    return max((int(path.stem) for path in (data / "journal").glob("*.snapshot")), default=0)


def clean(data: Path) -> None:
    """Let a broker free space, until there is a segment that was cleaned; its records of "moved" stay."""
    options: dict[str, Any] = {
        "log_retention_check_interval_ms": 10,
        "log_cleaner_backoff_ms": 10,
        "log_retention_bytes": 100_000,
    }
    with exacta.Broker(data=data, log_segment_bytes=SEGMENT_BYTES, num_partitions=2, **options) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        entry = ConfigEntry("retention.bytes", "-1", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "moved", incremental_configs=[entry])
        admin = AdminClient(servers)
        admin.incremental_alter_configs([resource])[resource].result(30)
        producer = Producer(servers)
        for number in range(40):  # more segments, so that others lie before two snapshots
            producer.produce("plain", b"%06d" % number * (VALUE_BYTES // 6), partition=number % 2)
            assert producer.flush(30) == 0
        while not any((data / "journal").glob("*.1.log")):
            producer.produce("plain", b"on")
            assert producer.flush(30) == 0
            time.sleep(LOOKS_AGAIN_S)


def compact(data: Path) -> None:
    """Let a broker compact a topic, until there is a segment of what is left."""
    options: dict[str, Any] = {"log_retention_check_interval_ms": 10, "log_cleaner_backoff_ms": 10}
    with exacta.Broker(data=data, log_segment_bytes=SEGMENT_BYTES, num_partitions=2, **options) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(servers)
        config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        admin.create_topics([NewTopic("keyed", 1, 1, config=config)])["keyed"].result(30)
        producer = Producer(servers)
        number = 0
        while number < 60 or not (data / "journal" / "compacted").exists():
            size = VALUE_BYTES // 6 if number < 60 else 1
            producer.produce("keyed", b"%06d" % number * size, key=b"%d" % (number % 20), partition=0)
            assert producer.flush(30) == 0
            number += 1
            if number > 60:
                time.sleep(LOOKS_AGAIN_S)


def on_disk(directory: Path) -> SimulatedDisk:
    """Return the files in memory."""
    disk = SimulatedDisk()
    for path in directory.iterdir():
        if path.is_file() and path.name != "lock":
            disk.put(path.name, path.read_bytes())
    return disk


def put_back(disk: SimulatedDisk, directory: Path) -> None:
    """Let the directory have these files, and no others."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    for name in disk.files:
        (directory / name).write_bytes(disk.content(name))


def batches(disk: SimulatedDisk) -> dict[Row, bytes]:
    """Return all batches that can be read, by partition id and offsets."""
    found: dict[Row, bytes] = {}
    for each in inspect(disk):
        if isinstance(each, SoundGroup):
            content = disk.content(each.name)
            base = int(each.name.removeprefix("compacted-").split(".")[0])
            for entry in each.group.entries:
                for row in entry.rows:
                    at = each.group.payload_position + entry.payload_start + row.start - base + 64
                    found[row.stream, row.first_offset, row.last_offset] = content[at : at + row.size]
    return found


def findings(disk: SimulatedDisk) -> list[Finding]:
    """Return what is wrong."""
    return [each for each in inspect(disk) if isinstance(each, Finding)]


def consumed(data: Path, topic: str, partition: int, *, isolation: str = "read_committed") -> list[tuple[int, bytes]]:
    """Start a broker on it, and read the partition to its end; return offsets and the beginnings of the values."""
    with exacta.Broker(data=data, log_segment_bytes=SEGMENT_BYTES, num_partitions=2) as broker:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "checkers",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            values: list[tuple[int, bytes]] = []
            while True:
                message = consumer.poll(30)
                assert message is not None, f"stands still after {values[-1:]}"
                if message.error() is not None:
                    assert message.error().code() == -191, message.error()  # the partition's end
                    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition))
                    assert message.offset() == end
                    return values
                values.append((message.offset(), message.value()[:6]))
        finally:
            consumer.close()
