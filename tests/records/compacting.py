"""Batches that are compacted, as rows: built, read back, and what is known of them."""

import pickle
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords

from exacta.ports.compaction import Rewritten, Rules
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.compression import GZIP, NONE
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    assign_offset,
    parse_batch_header,
    recompressed,
    with_max_timestamp,
)
from exacta.records.compaction import compaction

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords as PythonMemoryRecords

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1_000
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
