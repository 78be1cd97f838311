"""What compaction leaves of random sequences: the same records on Exacta as on Apache Kafka, for readers of both kinds.

Runs as `test_differential.py` does. Both get the same batches, markers at the same offsets, and then single records
that end their segments, until both have compacted: until a reader sees nothing of what must be gone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.brokers import exacta_process, kafka_process
from tests.differential.agree import SEED, SEQUENCES, marks

pytestmark = marks

COUNT = min(SEQUENCES, 40)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS = (b"", b"a", b"b", b"k" * 15, b"k" * 16, b"k" * 17, b"l" * 300)
BEGIN_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
PATIENCE_S = 120.0
_CLEANER = ("log.cleaner.backoff.ms=100",)


class Record(NamedTuple):
    """As a consumer gets it."""

    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Write:
    """Records of one producer, which has a codec of its own; the offsets are theirs in the sequence of both brokers."""

    codec: str
    transactional: bool
    records: Sequence[Record]


@dataclass(frozen=True)
class End:
    """The end of the transaction that the producer with this codec has open."""

    codec: str
    commit: bool


@dataclass
class Plan:
    """What is written to one topic, and what must be left of it."""

    tombstones_stay: bool
    steps: list[Write | End] = field(default_factory=list)
    left: list[Record] = field(default_factory=list)
    end_offset: int = 0


def sequence(random: Random) -> Plan:
    """Make a sequence."""
    made = Plan(tombstones_stay=random.random() < 0.5)
    open_records: dict[str, list[Record]] = {}
    written: dict[int, Record] = {}
    with_transactions = random.random() < 0.7

    def end(codec: str) -> None:
        commit = random.random() < 0.6
        made.steps.append(End(codec, commit))
        made.end_offset += 1
        records = open_records.pop(codec)
        if not commit:
            for record in records:
                del written[record.offset]

    for _ in range(random.randrange(5, 30)):
        codec = random.choice(CODECS)
        if codec in open_records and random.random() < 0.4:
            end(codec)
            continue
        transactional = with_transactions and (codec in open_records or random.random() < 0.7)
        records = [
            Record(
                made.end_offset + number,
                random.choice(KEYS),
                random.choice([None, b"", b"v%d" % random.randrange(100), b"w" * random.randrange(2_000)]),
                BEGIN_MS + random.randrange(HOUR_MS // 2),
                random.choice([(), (("h", b"1"), ("h", None)), (("x", b""),)]),
            )
            for number in range(random.choice([1, 1, 2, 5, 40]))
        ]
        made.end_offset += len(records)
        made.steps.append(Write(codec, transactional, records))
        written.update((record.offset, record) for record in records)
        if transactional:
            open_records.setdefault(codec, []).extend(records)
    for codec in list(open_records):
        end(codec)
    last = {written[offset].key: written[offset] for offset in sorted(written)}
    made.left = sorted(record for record in last.values() if record.value is not None or made.tombstones_stay)
    return made


class Compacting:
    """One broker, and its topics, one for each sequence."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._settings)
        self._closing = Producer(self._settings)
        self._closed = itertools.count(1)
        self._asking = Consumer({**self._settings, "group.id": "asking", "isolation.level": "read_uncommitted"})

    def create(self, sequences: Sequence[Plan]) -> None:
        """Create the topics."""
        topics = [
            NewTopic(
                f"t{number}",
                1,
                config={
                    "cleanup.policy": "compact",
                    "min.cleanable.dirty.ratio": "0.01",
                    "segment.ms": "100",
                    "delete.retention.ms": "86400000" if each.tombstones_stay else "0",
                },
            )
            for number, each in enumerate(sequences)
        ]
        for made in self._admin.create_topics(topics).values():
            made.result(PATIENCE_S)

    def write(self, topic: str, steps: Sequence[Write | End]) -> None:
        """Take the steps; a transaction has ended when its marker lies in the log."""
        producers: dict[tuple[str, bool], Producer] = {}
        in_transaction: set[str] = set()
        end_offset = 0
        for step in steps:
            if isinstance(step, End):
                producer = producers[step.codec, True]
                if step.commit:
                    producer.commit_transaction(PATIENCE_S)
                else:
                    producer.abort_transaction(PATIENCE_S)
                in_transaction.remove(step.codec)
                end_offset += 1
                self._until_written(topic, end_offset)
                continue
            producer = self._producer(producers, topic, step)
            if step.transactional and step.codec not in in_transaction:
                producer.begin_transaction()
                in_transaction.add(step.codec)
            for record in step.records:
                producer.produce(
                    topic, record.value, record.key, 0, timestamp=record.timestamp_ms, headers=list(record.headers)
                )
            assert producer.flush(PATIENCE_S) == 0
            end_offset += len(step.records)

    def _until_written(self, topic: str, end_offset: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self._asking.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)[1] < end_offset:
            assert time.monotonic() < deadline, "the marker does not come"

    def _producer(self, producers: dict[tuple[str, bool], Producer], topic: str, step: Write) -> Producer:
        name = step.codec, step.transactional
        if name not in producers:
            settings = {**self._settings, "compression.type": step.codec, "linger.ms": 5}
            if step.transactional:
                settings["transactional.id"] = f"{topic}-{step.codec}"
            producers[name] = Producer(settings)
            if step.transactional:
                producers[name].init_transactions(PATIENCE_S)
        return producers[name]

    def end_segment(self, topic: str) -> None:
        """Write a record of now: Kafka ends a segment where one comes that is so much later than its first batch."""
        self._closing.produce(topic, b"", b"end %d" % next(self._closed), 0)
        assert self._closing.flush(PATIENCE_S) == 0

    def records(self, topic: str, isolation: str, begin: int = OFFSET_BEGINNING) -> list[Record]:
        """Read to the end."""
        settings = {"group.id": "g", "enable.partition.eof": True, "isolation.level": isolation}
        consumer = Consumer({**self._settings, **settings, "fetch.wait.max.ms": 10, "auto.offset.reset": "error"})
        consumer.assign([TopicPartition(topic, 0, begin)])
        found: list[Record] = []
        try:
            while True:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, "no end"
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    return found
                found.append(
                    Record(
                        message.offset(),
                        message.key(),
                        message.value(),
                        message.timestamp()[1],
                        tuple(message.headers() or ()),
                    )
                )
        finally:
            consumer.close()

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        """Return the first offset with that time, or a later one."""
        [found] = self._asking.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], PATIENCE_S)
        return found.offset

    def close(self) -> None:
        """Hang up."""
        self._asking.close()


@pytest.fixture(scope="module")
def compacting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Compacting, Compacting]]:
    """Apache Kafka and Exacta, each of which compacts soon."""
    with (
        kafka_process(tmp_path_factory.mktemp("kafka"), overrides=_CLEANER) as kafka,
        exacta_process(tmp_path_factory.mktemp("exacta"), settings=_CLEANER) as exacta,
    ):
        sides = Compacting(kafka.bootstrap), Compacting(exacta.bootstrap)
        yield sides
        for side in sides:
            side.close()


def test_the_same_is_left(compacting: tuple[Compacting, Compacting]) -> None:
    random = Random(SEED)
    sequences = [sequence(random) for _ in range(COUNT)]
    for side in compacting:
        side.create(sequences)
        for number, each in enumerate(sequences):
            side.write(f"t{number}", each.steps)
        waiting = set(range(COUNT))
        deadline = time.monotonic() + PATIENCE_S
        while waiting and time.monotonic() < deadline:
            for number in sorted(waiting):
                side.end_segment(f"t{number}")
                found = side.records(f"t{number}", "read_uncommitted")
                if [each for each in found if each.offset < sequences[number].end_offset] == sequences[number].left:
                    waiting.remove(number)
    for number, each in enumerate(sequences):
        topic = f"t{number}"
        for isolation in ("read_uncommitted", "read_committed"):
            for begin in (OFFSET_BEGINNING, each.end_offset // 2, each.end_offset - 1):
                expected = [record for record in each.left if record.offset >= begin]
                for side in compacting:
                    found = side.records(topic, isolation, begin)
                    assert [record for record in found if record.offset < each.end_offset] == expected, (topic, side)
        if not any(isinstance(step, End) for step in each.steps):  # markers have times, too, and go when they like
            for record in each.left:
                kafka, exacta = (side.offset_at(topic, record.timestamp_ms) for side in compacting)
                # Exacta does not look into a compressed batch, and may answer with where it begins.
                late = (other.offset for other in each.left if other.timestamp_ms >= record.timestamp_ms)
                assert next(offset for offset in late if offset >= exacta) == kafka, (topic, record)
