"""What compaction keeps, against a model that knows all that was ever written, and whether other people can read it."""

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import crc32c
import pytest
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from exacta.ports.compaction import Rules
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.compression import LZ4, NONE, ZSTD
from exacta.protocol.kafka.record_keys import UnreadableRecords, record_keys
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    parse_batch_header,
)
from exacta.records.compaction import compaction
from tests.records.compacting import (
    NOW_MS,
    PULSARS_CODECS,
    RETENTION_MS,
    _decoded,
    build,
    build_pulsars,
    compacted,
    marker,
    rows_of,
    rules,
)

A, B, C = b"a", b"b", b"c"


Put = Callable[..., bytes]


@pytest.fixture(params=["kafka", "pulsar", "mixed"])
def put(request: pytest.FixtureRequest) -> Put:
    """Build Kafka batches, Pulsar batches, or both by turns."""
    builders: dict[str, list[Callable[..., bytes]]] = {
        "kafka": [build],
        "pulsar": [build_pulsars],
        "mixed": [build, build_pulsars],
    }
    by_turns = builders[request.param]
    count = itertools.count()

    def put(offset: int, *records: tuple[bytes | None, bytes | None], codec: int = NONE, **options: Any) -> bytes:
        builder = by_turns[next(count) % len(by_turns)]
        number = PULSARS_CODECS[codec] if builder is build_pulsars else codec
        return builder(offset, [(key, value, NOW_MS) for key, value in records], codec=number, **options)

    return put


def offsets(log: Sequence[bytes]) -> list[int]:
    return [row.offset for batch in log for row in rows_of(batch)]


def test_of_each_key_the_last_record_stays(put: Put) -> None:
    log = [put(0, (A, b"1"), (B, b"1"), (A, b"2")), put(3, (A, b"3"), (None, b"x")), put(5, (C, b"1"))]
    left, said = compacted(log, rules())
    assert offsets(left) == [1, 3, 5]
    assert [each.record_count for each in said] == [1, 1, 1]
    assert left[2] is not log[2]
    assert left[2] == log[2]


def test_what_an_aborted_transaction_wrote_hides_nothing(put: Put) -> None:
    one, two = {"producer_id": 1, "transactional": True}, {"producer_id": 2, "transactional": True}
    log = [
        put(0, (A, b"1")),
        put(1, (A, b"2"), **one),
        put(2, (A, b"3"), **two),
        put(3, (A, b"4"), producer_id=1),
        marker(4, 1, commit=False),
        put(5, (B, b"1"), **one),
        marker(6, 2, commit=True),
        marker(7, 1, commit=True),
    ]
    left, _ = compacted(log, rules(NOW_MS, (1, 1, 4)))
    assert [parse_batch_header(batch).base_offset for batch in left] == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("slices", [1, 2, 3, 4])
@pytest.mark.parametrize("retention_ms", [0, RETENTION_MS, (1 << 63) - 1])
def test_a_tombstone_goes_after_what_it_hides(put: Put, slices: int, retention_ms: int) -> None:
    keys = [b"%d" % number for number in range(8)]
    log = [put(0, *((key, b"v") for key in keys)), put(8, *((key, None) for key in keys)), put(16, (A, b"1"))]
    by = rules(retention_ms=retention_ms)
    left, _ = compacted(log, by, slices=slices)
    assert offsets(left) == list(range(8, 17))
    horizon_ms = min(NOW_MS + retention_ms, (1 << 63) - 1)
    assert [parse_batch_header(batch).delete_horizon_ms for batch in left] == [horizon_ms, None]
    assert {row.timestamp_ms for row in rows_of(left[0])} == {NOW_MS}
    again = rules(horizon_ms - 1, retention_ms=retention_ms)
    assert compacted(left, again, dirty_from=17, slices=slices)[0] == left
    later = rules(horizon_ms, retention_ms=retention_ms)
    assert offsets(compacted(left, later, dirty_from=17, slices=slices)[0]) == [16]


@pytest.mark.parametrize("slices", [1, 2, 3, 4])
def test_a_horizon_that_a_producer_has_set_brings_nothing_back(put: Put, slices: int) -> None:
    keys = [b"%d" % number for number in range(8)]
    claiming = bytearray(put(8, *((key, None) for key in keys)))
    claiming[22] |= 0x40
    struct.pack_into(">I", claiming, 17, crc32c.crc32c(bytes(claiming[21:])))
    log = [put(0, *((key, b"v") for key in keys)), bytes(claiming), put(16, (A, b"1"))]
    assert offsets(compacted(log, rules(), slices=slices)[0]) == [16]


def test_a_marker_stays_as_long_as_it_is_needed(put: Put) -> None:
    log = [
        put(0, (A, b"1"), producer_id=1, transactional=True),
        put(1, (B, b"1"), producer_id=1, transactional=True),
        marker(2, 1, commit=True),
        put(3, (A, b"2")),
    ]
    log, _ = compacted(log, rules())
    assert [parse_batch_header(batch).base_offset for batch in log] == [1, 2, 3]
    assert parse_batch_header(log[1]).delete_horizon_ms is None
    log, said = compacted([*log, put(4, (B, b"2"))], rules(), dirty_from=4)
    assert [parse_batch_header(batch).base_offset for batch in log] == [2, 3, 4]
    assert parse_batch_header(log[0]).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert said[0].record_count == 0
    [record] = rows_of(log[0])
    assert (record.key, record.timestamp_ms) == (b"\0\0\0\1", NOW_MS - 5)
    log, _ = compacted(log, rules(NOW_MS + RETENTION_MS - 1), dirty_from=5)
    assert parse_batch_header(log[0]).base_offset == 2
    log, _ = compacted(log, rules(NOW_MS + RETENTION_MS), dirty_from=5)
    assert [parse_batch_header(batch).base_offset for batch in log] == [3, 4]


def test_a_marker_is_kept_for_its_own_transaction_only(put: Put) -> None:
    of_one = {"producer_id": 1, "transactional": True}
    log = [
        put(0, (A, b"1"), **of_one),
        marker(1, 1, commit=True),
        put(2, (B, b"1"), **of_one),
        marker(3, 1, commit=True),
        put(4, (B, b"2")),
    ]
    left, _ = compacted(log, rules())
    horizons_ms = {parse_batch_header(batch).base_offset: parse_batch_header(batch).delete_horizon_ms for batch in left}
    assert horizons_ms == {0: None, 1: None, 3: NOW_MS + RETENTION_MS, 4: None}


def test_a_marker_at_the_end_stays_beyond_its_horizon(put: Put) -> None:
    log, _ = compacted([put(0, (A, b"1")), marker(1, 1, commit=True)], rules())
    assert parse_batch_header(log[1]).delete_horizon_ms == NOW_MS + RETENTION_MS
    later = rules(NOW_MS + RETENTION_MS)
    assert compacted(log, later, dirty_from=2)[0] == log
    assert offsets(compacted([*log, put(2, (B, b"1"))], later, dirty_from=2)[0]) == [0, 2]


@pytest.mark.parametrize("slices", [1, 2, 3, 4])
def test_a_marker_is_seen_once_without_its_transaction(put: Put, slices: int) -> None:
    log = [put(0, (A, b"1"), producer_id=1, transactional=True), marker(1, 1, commit=True), put(2, (A, b"2"))]
    log, _ = compacted(log, rules(retention_ms=0), slices=slices)
    assert [parse_batch_header(batch).base_offset for batch in log] == [1, 2]
    log, _ = compacted(log, rules(retention_ms=0), dirty_from=3, slices=slices)
    assert [parse_batch_header(batch).base_offset for batch in log] == [2]


def test_a_batch_keeps_its_first_horizon(put: Put) -> None:
    log, _ = compacted([put(0, (A, None), (B, b"1"), (C, b"1"))], rules())
    log, _ = compacted([*log, put(3, (B, b"2"))], rules(NOW_MS + 1), dirty_from=3)
    assert offsets(log) == [0, 2, 3]
    assert parse_batch_header(log[0]).delete_horizon_ms == NOW_MS + RETENTION_MS
    log, _ = compacted(log, rules(NOW_MS + RETENTION_MS), dirty_from=4)
    assert [(row.offset, row.timestamp_ms) for row in rows_of(log[0])] == [(2, NOW_MS)]


def test_an_abort_marker_stays_while_readers_are_told_of_its_transaction(put: Put) -> None:
    aborted = (1, 0, 1)
    log = [put(0, (A, b"1"), producer_id=1, transactional=True), marker(1, 1, commit=False), put(2, (B, b"1"))]
    log, _ = compacted(log, rules(NOW_MS, aborted))
    assert [parse_batch_header(batch).base_offset for batch in log] == [1, 2]
    later = NOW_MS + 2 * RETENTION_MS
    assert compacted(log, rules(later, aborted), dirty_from=3)[0] == log
    assert [parse_batch_header(batch).base_offset for batch in compacted(log, rules(later), dirty_from=3)[0]] == [2]


def test_the_last_batch_stays_without_its_records(put: Put) -> None:
    log = [put(0, (A, b"1")), put(1, (B, b"1"), (B, b"2"), producer_id=1, transactional=True, codec=LZ4)]
    left, said = compacted(log, rules(NOW_MS, (1, 1, 3)))
    assert rows_of(left[1]) == []
    assert (said[1].record_count, said[1].max_timestamp_ms) == (0, -1)
    header = parse_batch_header(left[1])
    assert (header.base_offset, header.last_offset, header.size) == (1, 2, HEADER_SIZE)
    assert compacted(left, rules(NOW_MS, (1, 1, 3)), dirty_from=3)[0] == left
    more = [*left, marker(3, 1, commit=False)]
    assert [parse_batch_header(batch).base_offset for batch in compacted(more, rules(), dirty_from=3)[0]] == [0, 3]


def test_a_record_beyond_time_keeps_its_time() -> None:
    """Sums of base and delta wrap in 64 bits, as readers' do."""
    times_ms = [-(1 << 63), (1 << 63) - 1, 0]
    log = [build(0, [(b"%d" % number, None, time_ms) for number, time_ms in enumerate(times_ms)])]
    left, _ = compacted(log, rules())
    assert parse_batch_header(left[0]).delete_horizon_ms is not None
    for batch in (*log, *left):
        assert [row.timestamp_ms for row in _decoded(AioMemoryRecords, batch)] == times_ms


def test_what_cannot_be_read_stays_and_keeps_tombstones(put: Put) -> None:
    unreadable = bytearray(put(1, (B, b"2"), codec=ZSTD))
    unreadable[HEADER_SIZE:] = bytes(len(unreadable) - HEADER_SIZE)
    log = [put(0, (B, b"1")), bytes(unreadable), put(2, (A, None)), put(3, (B, b"3"))]
    left, _ = compacted(log, rules(retention_ms=0))
    assert left[0] == log[1]
    one_pass = compaction(rules(NOW_MS + 1))
    assert [one_pass.rewrite(batch, False) is not None for batch in left] == [True, True, True]
    assert one_pass.unreadable == 1
    assert [one_pass.rewrite(batch, False) is not None for batch in left[1:]] == [True, True]
    assert compaction(rules(NOW_MS + 1)).rewrite(left[1], False) is None


def test_a_batch_above_the_limit_is_not_opened(put: Put) -> None:
    log = [put(0, (A, b"x" * 100_000), codec=ZSTD), put(1, (A, b"1"))]
    assert offsets(compacted(log, rules(most_bytes=50_000))[0]) == [0, 1]
    assert offsets(compacted(log, rules(most_bytes=101_000))[0]) == [1]


@given(records=st.binary(max_size=60), count=st.integers(0, 5))
def test_any_bytes_are_records_or_are_refused(records: bytes, count: int) -> None:
    try:
        found = record_keys(records, count, 10)
    except UnreadableRecords:
        return
    assert len(found.starts) == count + 1
    assert found.starts[-1] == len(records)
    assert found.offset_deltas == sorted(set(found.offset_deltas))


def test_large_numbers_are_read(put: Put) -> None:
    log = [put(0, (b"k" * 3_000, b"v" * 2_100_000), (b"k" * 70_000, None), (b"k" * 3_000, b"v" * 20_000))]
    assert offsets(compacted(log, rules())[0]) == [1, 2]


def test_a_slice_that_is_none_is_refused() -> None:
    for number, count in ((1, 1), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="there is no slice"):
            compaction(rules(), number, count)


def test_a_batch_that_is_altered_is_refused_before_it_is_written_again() -> None:
    batch = control_batch(5, 1, 0, commit=True, coordinator_epoch=0, timestamp_ms=7)
    sound = compaction(Rules(now_ms=0, delete_retention_ms=0))
    sound.check(batch, 5, 5)
    for at in range(len(batch)):
        flipped = bytearray(batch)
        flipped[at] ^= 1
        with pytest.raises(ValueError, match=r".+"):
            sound.check(bytes(flipped), 5, 5)
