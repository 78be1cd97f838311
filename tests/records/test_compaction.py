"""What compaction keeps, against a model that knows all that was ever written, and whether other people can read it."""

import pickle
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.ports.compaction import Rewritten, Rules
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from exacta.protocol.kafka.record_keys import UnreadableRecords, record_keys
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    BatchHeader,
    assign_offset,
    parse_batch_header,
    recompressed,
    with_max_timestamp,
)
from exacta.records.compaction import compaction

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords as PythonMemoryRecords

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
NOW_MS = 1_700_000_000_000
RETENTION_MS = 1_000
LONG_KEY = b"a key that is longer than what stands for it, " * 4
EPOCH = 3


@dataclass(frozen=True)
class Row:
    """A record as readers see it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def build(
    base_offset: int,
    records: Sequence[tuple[bytes | None, bytes | None, int]],
    *,
    codec: int = NONE,
    producer_id: int = -1,
    transactional: bool = False,
    append_time_ms: int | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """Build a batch of (key, value, timestamp) with aiokafka; `append_time_ms` is the broker's time."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=EPOCH if producer_id >= 0 else -1,
        base_sequence=7 if producer_id >= 0 else -1,
        batch_size=1 << 24,
    )
    for number, (key, value, timestamp_ms) in enumerate(records):
        builder.append(number, timestamp=timestamp_ms, key=key, value=value, headers=list(headers))
    batch = bytes(builder.build())
    if codec != NONE:
        batch = recompressed(batch, batch[HEADER_SIZE:], codec, -1 if codec == GZIP else 1)
    if append_time_ms is not None:
        batch = with_max_timestamp(batch, append_time_ms, log_append_time=True)
    return b"".join(assign_offset(batch, base_offset, 5))


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return control_batch(offset, producer_id, EPOCH, commit=commit, coordinator_epoch=0, timestamp_ms=NOW_MS - 5)


def rows_of(batch: Any) -> list[Row]:
    """Read a batch by two clients' decoders, which must agree, its checksum and its header included."""
    header = parse_batch_header(batch)
    rows = _decoded(AioMemoryRecords, batch)
    if header.codec in (NONE, GZIP):  # kafka-python has no other codec here
        assert _decoded(PythonMemoryRecords, batch) == rows
    assert len(rows) == header.record_count
    assert header.size == len(batch)
    assert all(header.base_offset <= row.offset <= header.last_offset for row in rows)
    if rows and not header.control:
        assert max(row.timestamp_ms for row in rows) == header.max_timestamp
    return rows


def _decoded(client: Any, batch: Any) -> list[Row]:
    [decoded] = _batches(client(bytes(batch)))
    assert decoded.validate_crc()
    return [Row(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in decoded]


def _batches(records: Any) -> Iterator[Any]:
    while records.has_next():
        yield records.next_batch()


def compacted(
    log: Sequence[bytes], rules: Rules, *, dirty_from: int = 0, slices: int = 1
) -> tuple[list[bytes], list[Rewritten]]:
    """Run all passes; return the batches that are left, and what was said of them."""
    kept: list[Rewritten] = []
    for number in range(slices):
        one_pass = compaction(pickle.loads(pickle.dumps(rules)), number, slices)
        for batch in log:
            if parse_batch_header(batch).base_offset >= dirty_from:
                one_pass.note(memoryview(batch))
        rewritten = [one_pass.rewrite(memoryview(batch), batch is log[-1]) for batch in log]
        kept = [each for each in rewritten if each is not None]
        log = [bytes(each.batch) for each in kept]
    return list(log), kept


def rules(
    now_ms: int = NOW_MS, *aborted: tuple[int, int, int], retention_ms: int = RETENTION_MS, most_bytes: int = 1 << 24
) -> Rules:
    return Rules(now_ms=now_ms, delete_retention_ms=retention_ms, aborted=aborted, most_batch_bytes=most_bytes)


# --- against a model --------------------------------------------------------------------------------------------------


@dataclass
class Written:
    """One batch of the model: its rows, or none where it is a marker."""

    header: BatchHeader
    rows: list[Row]
    transaction: "Transaction | None" = None
    is_marker: bool = False
    horizon_ms: int | None = None
    was_compacted: bool = False


@dataclass
class Transaction:
    producer_id: int
    first_offset: int
    marker_offset: int | None = None
    commits: bool = True


@dataclass
class Model:
    """All that was ever written, and hence what must be left of it."""

    written: list[Written] = field(default_factory=list)
    open: dict[int, Transaction] = field(default_factory=dict)
    ended: list[Transaction] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)
    originals: dict[int, bytes] = field(default_factory=dict)
    next_offset: int = 0
    clean_to: int = 0
    retention_ms: int = RETENTION_MS

    def add(self, batch: bytes, rows: list[Row], transaction: Transaction | None, *, is_marker: bool = False) -> None:
        header = parse_batch_header(batch)
        self.written.append(Written(header, rows, transaction, is_marker))
        self.log.append(batch)
        self.originals[header.base_offset] = batch
        self.next_offset = header.last_offset + 1

    @property
    def stable_offset(self) -> int:
        return min((each.first_offset for each in self.open.values()), default=self.next_offset)

    def aborted(self, end: int) -> tuple[tuple[int, int, int], ...]:
        return tuple(
            (each.producer_id, each.first_offset, each.marker_offset)
            for each in self.ended
            if not each.commits and each.first_offset < end and each.marker_offset is not None
        )

    def compact(self, now_ms: int, end: int) -> tuple[list[Row], list[int]]:
        """Return the rows and the markers that must be left below `end`."""
        below = [each for each in self.written if each.header.base_offset < end]
        counting = [each for each in below if each.transaction is None or each.transaction.commits]
        last_offsets = {row.key: row.offset for each in counting for row in each.rows if row.key is not None}
        left: list[Row] = []
        with_rows: list[Transaction | None] = []
        markers: list[int] = []
        for each in below:
            if each.is_marker:
                in_use = each.transaction in with_rows
                told = each.transaction is not None and not each.transaction.commits
                passed = each.horizon_ms is not None and each.horizon_ms <= now_ms
                if in_use or told or not passed or each is below[-1]:
                    markers.append(each.header.base_offset)
                if not in_use and each.horizon_ms is None:
                    each.horizon_ms = now_ms + self.retention_ms
                continue
            if each not in counting:
                continue
            rows = [row for row in each.rows if row.key is not None and last_offsets[row.key] == row.offset]
            if each.horizon_ms is not None and each.horizon_ms <= now_ms:
                rows = [row for row in rows if row.value is not None]
            if not each.was_compacted and any(row.value is None for row in rows):
                each.horizon_ms = now_ms + self.retention_ms
            each.was_compacted = True
            left += rows
            if rows:
                with_rows.append(each.transaction)
        return left, markers


KEYS = st.sampled_from([b"", b"a", b"b", b"c", LONG_KEY + b"1", LONG_KEY + b"2", b"sixteen bytes - ", None])
RECORDS = st.lists(
    st.tuples(KEYS, st.sampled_from([None, b"", b"v" * 3, b"w" * 300]), st.integers(-1, 90)), min_size=1, max_size=4
)


def write(model: Model, data: st.DataObject) -> None:
    """Append a batch, or end a transaction."""
    producer_id = data.draw(st.sampled_from([None, None, 1, 2, 3]), "producer")
    if producer_id in model.open and data.draw(st.booleans(), "end"):
        transaction = model.open.pop(producer_id)
        transaction.marker_offset, transaction.commits = model.next_offset, data.draw(st.booleans(), "commit")
        model.ended.append(transaction)
        batch = marker(model.next_offset, producer_id, commit=transaction.commits)
        model.add(batch, [], transaction, is_marker=True)
        return
    transaction = None
    if producer_id is not None:
        transaction = model.open.setdefault(producer_id, Transaction(producer_id, model.next_offset))
    drawn = data.draw(RECORDS, "records")
    none_has_time = drawn[0][2] < 0  # aiokafka would take the next record's time for that of the first one
    records = [
        (key, value, -1 if none_has_time or late_ms < 0 else NOW_MS - 100 + late_ms) for key, value, late_ms in drawn
    ]
    append_time_ms = data.draw(st.sampled_from([None, None, NOW_MS - 50]), "append time")
    headers = data.draw(st.sampled_from([(), (("h", b"x" * 70), ("n", None))]), "headers")
    batch = build(
        model.next_offset,
        records,
        codec=data.draw(st.sampled_from(CODECS), "codec"),
        producer_id=-1 if producer_id is None else producer_id,
        transactional=producer_id is not None,
        append_time_ms=append_time_ms,
        headers=headers,
    )
    rows = [
        Row(model.next_offset + number, time_ms if append_time_ms is None else append_time_ms, key, value, headers)
        for number, (key, value, time_ms) in enumerate(records)
    ]
    model.add(batch, rows, transaction)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_is_left_is_what_the_model_says(data: st.DataObject) -> None:
    model, now_ms = Model(retention_ms=data.draw(st.sampled_from([RETENTION_MS, RETENTION_MS, 0]), "retention")), NOW_MS
    for _ in range(data.draw(st.integers(1, 4), "compactions")):
        for _ in range(data.draw(st.integers(0, 8), "batches")):
            write(model, data)
        now_ms += data.draw(st.sampled_from([0, 400, RETENTION_MS, 5_000]), "time passes")
        end = model.stable_offset
        below = [batch for batch in model.log if parse_batch_header(batch).base_offset < end]
        if not below:
            continue
        rows, markers = model.compact(now_ms, end)
        by = rules(now_ms, *model.aborted(end), retention_ms=model.retention_ms)
        left, said = compacted(below, by, dirty_from=model.clean_to)
        assert_is(left, said, rows, markers, model)
        assert parse_batch_header(left[-1]).last_offset == parse_batch_header(below[-1]).last_offset
        for slices in (2, 3, 4):
            assert compacted(below, by, dirty_from=model.clean_to, slices=slices)[0] == left
        if model.retention_ms:
            assert compacted(left, by, dirty_from=end)[0] == left, "nothing is new, hence nothing to do"
        model.log = left + model.log[len(below) :]
        model.clean_to = end


def assert_is(left: list[bytes], said: list[Rewritten], rows: list[Row], markers: list[int], model: Model) -> None:
    """Compare batches with what must be left, and each with what it was."""
    found: list[Row] = []
    found_markers: list[int] = []
    for batch, rewritten in zip(left, said, strict=True):
        header = parse_batch_header(batch)
        original = model.originals[header.base_offset]
        was = parse_batch_header(original)
        in_batch = rows_of(batch)
        if header.control:
            assert rewritten.record_count == 0
            assert [(row.key, row.value, row.timestamp_ms) for row in in_batch] == [
                (row.key, row.value, row.timestamp_ms) for row in rows_of(original)
            ]
            found_markers.append(header.base_offset)
        else:
            found += in_batch
            assert rewritten.record_count == len(in_batch)
            assert rewritten.max_timestamp_ms == header.max_timestamp
            if len(in_batch) == was.record_count and all(row.value is not None for row in in_batch):
                assert batch == original, "all of it is kept"
        assert identity(header, emptied=not in_batch) == identity(was, emptied=not in_batch)
    assert found == rows
    assert found_markers == markers


def identity(header: BatchHeader, *, emptied: bool) -> tuple[Any, ...]:
    """Return what compaction must not change; a batch without records has no codec."""
    return (
        header.base_offset,
        header.last_offset,
        header.partition_leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.attributes & (0x38 if emptied else 0x3F),
    )


# --- single rules -----------------------------------------------------------------------------------------------------

A, B, C = b"a", b"b", b"c"


def put(offset: int, *records: tuple[bytes | None, bytes | None], **options: Any) -> bytes:
    return build(offset, [(key, value, NOW_MS) for key, value in records], **options)


def offsets(log: Sequence[bytes]) -> list[int]:
    return [row.offset for batch in log for row in rows_of(batch)]


def test_of_each_key_the_last_record_stays() -> None:
    log = [put(0, (A, b"1"), (B, b"1"), (A, b"2")), put(3, (A, b"3"), (None, b"x")), put(5, (C, b"1"))]
    left, said = compacted(log, rules())
    assert offsets(left) == [1, 3, 5]
    assert [each.record_count for each in said] == [1, 1, 1]
    assert left[2] is not log[2]
    assert left[2] == log[2]


def test_what_an_aborted_transaction_wrote_hides_nothing() -> None:
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
def test_a_tombstone_goes_after_what_it_hides(slices: int, retention_ms: int) -> None:
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
def test_a_horizon_that_a_producer_has_set_brings_nothing_back(slices: int) -> None:
    keys = [b"%d" % number for number in range(8)]
    claiming = bytearray(put(8, *((key, None) for key in keys)))
    claiming[22] |= 0x40
    struct.pack_into(">I", claiming, 17, crc32c.crc32c(bytes(claiming[21:])))
    log = [put(0, *((key, b"v") for key in keys)), bytes(claiming), put(16, (A, b"1"))]
    assert offsets(compacted(log, rules(), slices=slices)[0]) == [16]


def test_a_marker_stays_as_long_as_it_is_needed() -> None:
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


def test_a_marker_is_kept_for_its_own_transaction_only() -> None:
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


def test_a_marker_at_the_end_stays_beyond_its_horizon() -> None:
    log, _ = compacted([put(0, (A, b"1")), marker(1, 1, commit=True)], rules())
    assert parse_batch_header(log[1]).delete_horizon_ms == NOW_MS + RETENTION_MS
    later = rules(NOW_MS + RETENTION_MS)
    assert compacted(log, later, dirty_from=2)[0] == log
    assert offsets(compacted([*log, put(2, (B, b"1"))], later, dirty_from=2)[0]) == [0, 2]


@pytest.mark.parametrize("slices", [1, 2, 3, 4])
def test_a_marker_is_seen_once_without_its_transaction(slices: int) -> None:
    log = [put(0, (A, b"1"), producer_id=1, transactional=True), marker(1, 1, commit=True), put(2, (A, b"2"))]
    log, _ = compacted(log, rules(retention_ms=0), slices=slices)
    assert [parse_batch_header(batch).base_offset for batch in log] == [1, 2]
    log, _ = compacted(log, rules(retention_ms=0), dirty_from=3, slices=slices)
    assert [parse_batch_header(batch).base_offset for batch in log] == [2]


def test_a_batch_keeps_its_first_horizon() -> None:
    log, _ = compacted([put(0, (A, None), (B, b"1"), (C, b"1"))], rules())
    log, _ = compacted([*log, put(3, (B, b"2"))], rules(NOW_MS + 1), dirty_from=3)
    assert offsets(log) == [0, 2, 3]
    assert parse_batch_header(log[0]).delete_horizon_ms == NOW_MS + RETENTION_MS
    log, _ = compacted(log, rules(NOW_MS + RETENTION_MS), dirty_from=4)
    assert [(row.offset, row.timestamp_ms) for row in rows_of(log[0])] == [(2, NOW_MS)]


def test_an_abort_marker_stays_while_readers_are_told_of_its_transaction() -> None:
    aborted = (1, 0, 1)
    log = [put(0, (A, b"1"), producer_id=1, transactional=True), marker(1, 1, commit=False), put(2, (B, b"1"))]
    log, _ = compacted(log, rules(NOW_MS, aborted))
    assert [parse_batch_header(batch).base_offset for batch in log] == [1, 2]
    later = NOW_MS + 2 * RETENTION_MS
    assert compacted(log, rules(later, aborted), dirty_from=3)[0] == log
    assert [parse_batch_header(batch).base_offset for batch in compacted(log, rules(later), dirty_from=3)[0]] == [2]


def test_the_last_batch_stays_without_its_records() -> None:
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


def test_what_cannot_be_read_stays_and_keeps_tombstones() -> None:
    unreadable = put(1, (B, b"2"), codec=ZSTD)
    unreadable = bytearray(unreadable)
    unreadable[HEADER_SIZE:] = bytes(len(unreadable) - HEADER_SIZE)
    log = [put(0, (B, b"1")), bytes(unreadable), put(2, (A, None)), put(3, (B, b"3"))]
    left, _ = compacted(log, rules(retention_ms=0))
    assert left[0] == log[1]
    one_pass = compaction(rules(NOW_MS + 1))
    assert [one_pass.rewrite(batch, False) is not None for batch in left] == [True, True, True]
    assert one_pass.unreadable == 1
    assert [one_pass.rewrite(batch, False) is not None for batch in left[1:]] == [True, True]
    assert compaction(rules(NOW_MS + 1)).rewrite(left[1], False) is None


def test_a_batch_above_the_limit_is_not_opened() -> None:
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


def test_large_numbers_are_read() -> None:
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
