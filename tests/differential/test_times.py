"""The times of records, as Produce, Fetch and ListOffsets tell them, whatever a header says: as on Apache Kafka.

Runs as `test_differential.py` does, but for all cases, in each codec, on each kind of topic. What the broker's clock
has made is told by that, all else by the milliseconds after the beginning. Decision 0015 says why.
"""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import crc32c
import pytest

from exacta.protocol.kafka.compression import CODECS, LEVELS
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k00_produce, k01_fetch, k02_list_offsets, k03_metadata, k19_create_topics
from exacta.protocol.kafka.record_times import record_times
from exacta.protocol.kafka.records import CRC_START, HEADER_SIZE, iter_batches, opened, recompressed
from tests.differential.agree import marks
from tests.differential.side import Side
from tests.kafka.wire import batch

pytestmark = marks

NONE = -1
LATEST_TIME = -3
ATTRIBUTES_AT, MAX_TIMESTAMP_AT = 21, 35
LOG_APPEND_TIME = 8
HOUR_MS = 3_600_000
BEGINNING_MS = time.time_ns() // 1_000_000 - HOUR_MS
CLOCK = "the clock"
PATIENCE_S = 30.0


class Lie(NamedTuple):
    """A batch of records of these times after the beginning (None: none), and what its header says otherwise."""

    times: Sequence[int | None]
    highest: int | None = None
    attributes: int = 0


CASES = {
    "honest": Lie((0, 10, 20)),
    "the latest in the middle": Lie((0, 30, 10)),
    "the latest first": Lie((40, 0, 10)),
    "all of one time": Lie((15, 15, 15)),
    "a highest time that is none": Lie((1, 11, 21), highest=NONE - BEGINNING_MS),
    "a highest time that is too low": Lie((2, 12, 22), highest=1),
    "a highest time that is too high": Lie((3, 13, 23), highest=50),
    "a highest time far ahead": Lie((4, 14, 24), highest=(1 << 62) - BEGINNING_MS),
    "no times": Lie((None, None)),
    "no times, and a highest one": Lie((None, None), highest=60),
    "a record too far ahead": Lie((5, 5 * HOUR_MS)),
    "a record too far ahead, which the header hides": Lie((6, 5 * HOUR_MS), highest=6),
    "a record below zero": Lie((7, -5 - BEGINNING_MS)),
    "a producer that says the broker's clock": Lie((8, 18), attributes=LOG_APPEND_TIME),
}
OTHERWISE_WHERE_MADE_ANEW = {
    # Kafka fails with UNKNOWN_SERVER_ERROR.
    "a record below zero",
    # Kafka gives all records the highest time of them.
    "a producer that says the broker's clock",
}
"""The differences between Kafka where it compresses records again and Kafka where it does not, as Exacta does."""
KINDS: dict[str, dict[str, str]] = {
    "as it comes": {},
    "LogAppendTime": {"message.timestamp.type": "LogAppendTime"},
    "recompressed": {"compression.type": "zstd"},
    "uncompressed": {"compression.type": "uncompressed"},
}
LOOK_UPS = (-HOUR_MS, 0, 1, 5, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23, 24, 25, 31, 40, 41, 50, 60, HOUR_MS // 2)
_numbers = itertools.count()


def made(lie: Lie, codec: int) -> bytes:
    """Return the batch."""
    times = [NONE if each is None else BEGINNING_MS + each for each in lie.times]
    plain = batch(*(b"v%d" % number for number in range(len(times))), timestamps_ms=times)
    packed = bytearray(recompressed(plain, plain[HEADER_SIZE:], codec, LEVELS.get(codec, 0)))
    (attributes,) = struct.unpack_from(">h", packed, ATTRIBUTES_AT)
    struct.pack_into(">h", packed, ATTRIBUTES_AT, attributes | lie.attributes)
    if lie.highest is not None:
        struct.pack_into(">q", packed, MAX_TIMESTAMP_AT, BEGINNING_MS + lie.highest)
    struct.pack_into(">I", packed, CRC_START - 4, crc32c.crc32c(bytes(packed[CRC_START:])))
    return bytes(packed)


class Topic:
    """A topic of one broker."""

    def __init__(self, side: Side, name: str, settings: dict[str, str]) -> None:
        self.wire, self.name = side.wire, name
        configs = [k19_create_topics.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
        topic = k19_create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
        self.wire.ask(k19_create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        asked = k03_metadata.MetadataRequest(topics=[k03_metadata.MetadataRequestTopic(name=name)])
        deadline = time.monotonic() + PATIENCE_S
        while self.wire.ask(asked, 9).topics[0].error_code or self.offset(-2)[0] != "NONE":
            assert time.monotonic() < deadline, f"{name} does not come about"

    def produce(self, records: bytes) -> tuple[object, ...]:
        data = k00_produce.PartitionProduceData(index=0, records=records)
        topic = k00_produce.TopicProduceData(name=self.name, partition_data=[data])
        request = k00_produce.ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=[topic])
        answer = self.wire.ask(request, 9).responses[0].partition_responses[0]
        return ErrorCode(answer.error_code).name, answer.base_offset, told(answer.log_append_time_ms)

    def offset(self, time_ms: int) -> tuple[object, ...]:
        wanted = k02_list_offsets.ListOffsetsPartition(partition_index=0, timestamp=time_ms)
        topic = k02_list_offsets.ListOffsetsTopic(name=self.name, partitions=[wanted])
        answer = self.wire.ask(k02_list_offsets.ListOffsetsRequest(topics=[topic]), 7).topics[0].partitions[0]
        return ErrorCode(answer.error_code).name, answer.offset, told(answer.timestamp)

    def batches(self) -> list[object]:
        """Return what a reader gets: of each batch its codec, type of time, highest time, and its records' times."""
        asked = k01_fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = k01_fetch.FetchTopic(topic=self.name, partitions=[asked])
        request = k01_fetch.FetchRequest(topics=[topic], max_bytes=1 << 20)
        data: Any = self.wire.ask(request, 11).responses[0].partitions[0]
        return [
            (
                header.base_offset,
                header.compression,
                header.attributes & LOG_APPEND_TIME,
                told(header.max_timestamp),
                [told(each.timestamp_ms) for each in record_times(opened(view, header, 1 << 20), header)],
            )
            for header, view in iter_batches(bytes(data.records))
        ]


def told(time_ms: int) -> object:
    """Return a time as both brokers should tell it."""
    if time_ms < 0:
        return time_ms
    after = time_ms - BEGINNING_MS
    return CLOCK if after > HOUR_MS * 3 // 4 else after


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", KINDS)
def test_times(sides: tuple[Side, Side], kind: str, codec: str) -> None:
    name = f"times-{next(_numbers)}"
    topics = [Topic(side, name, KINDS[kind]) for side in sides]
    differences = []
    look_ups = [LATEST_TIME, *((BEGINNING_MS + each) for each in LOOK_UPS)]
    anew = KINDS[kind].get("compression.type", codec) != codec
    for case, lie in CASES.items():
        if anew and case in OTHERWISE_WHERE_MADE_ANEW:
            continue
        records = made(lie, CODECS[codec])
        views: list[tuple[str, Any]] = [("Produce", lambda topic, records=records: topic.produce(records))]
        views += [("Fetch", Topic.batches)]
        views += [
            (f"ListOffsets {told(each)}", lambda topic, each=each: topic.offset(each))
            for each in look_ups
            if kind != "LogAppendTime" or each == LATEST_TIME
        ]
        for what, view in views:
            kafkas, ours = (view(topic) for topic in topics)
            if kafkas != ours:
                differences.append(f"{case}: {what}: Kafka answers {kafkas}, Exacta {ours}")
    assert not differences, "\n".join(differences)
