"""Compaction against a model that knows everything that was ever written."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.ports.compaction import Rewritten
from exacta.protocol.kafka.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from exacta.protocol.kafka.records import (
    BatchHeader,
    parse_batch_header,
)
from tests.records.compacting import (
    NOW_MS,
    PULSARS_CODECS,
    RETENTION_MS,
    Row,
    build,
    build_pulsars,
    compacted,
    marker,
    rows_of,
    rules,
)
from tests.shares import examples

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)


LONG_KEY = b"a key that is longer than what stands for it, " * 4


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
                rows = [row for row in rows if not row.is_tombstone]
            if not each.was_compacted and any(row.is_tombstone for row in rows):
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
        ended = model.open.pop(producer_id)
        ended.marker_offset, ended.commits = model.next_offset, data.draw(st.booleans(), "commit")
        model.ended.append(ended)
        batch = marker(model.next_offset, producer_id, commit=ended.commits)
        model.add(batch, [], ended, is_marker=True)
        return
    transaction = None
    if producer_id is not None:
        transaction = model.open.setdefault(producer_id, Transaction(producer_id, model.next_offset))
    drawn = data.draw(RECORDS, "records")
    none_has_time = drawn[0][2] < 0  # aiokafka would give the next record's time to the first one
    records = [
        (key, value, -1 if none_has_time or late_ms < 0 else NOW_MS - 100 + late_ms) for key, value, late_ms in drawn
    ]
    append_time_ms = data.draw(st.sampled_from([None, None, NOW_MS - 50]), "append time")
    headers = data.draw(st.sampled_from([(), (("h", b"x" * 70), ("n", None))]), "headers")
    codec = data.draw(st.sampled_from(CODECS), "codec")
    options: dict[str, Any] = {
        "producer_id": -1 if producer_id is None else producer_id,
        "transactional": producer_id is not None,
        "append_time_ms": append_time_ms,
        "headers": headers,
    }
    is_pulsars = data.draw(st.booleans(), "of Pulsar's")
    if is_pulsars:
        batched = len(records) > 1 or data.draw(st.booleans(), "batched")
        batch = build_pulsars(model.next_offset, records, codec=PULSARS_CODECS[codec], batched=batched, **options)
        records = [(key, value, max(records[0][2], 0)) for key, value, _ in records]
    else:
        batch = build(model.next_offset, records, codec=codec, **options)
    rows = [
        Row(
            model.next_offset + number,
            time_ms if append_time_ms is None else append_time_ms,
            key,
            value,
            headers,
            is_pulsars,
        )
        for number, (key, value, time_ms) in enumerate(records)
    ]
    model.add(batch, rows, transaction)


@settings(max_examples=examples(100), deadline=None)
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
            if len(in_batch) == was.record_count and not any(row.is_tombstone for row in in_batch):
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
