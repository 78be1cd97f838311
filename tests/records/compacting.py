"""Batches that are compacted, as rows: built, read back, and what is known of them. Kafka's and Pulsar's are alike."""

import base64
import pickle
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cramjam
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords

from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Body, ProducerEpoch, ProducerId
from exacta.ports.compaction import Rewritten, Rules
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    assign_offset,
    parse_batch_header,
    recompressed,
    with_max_timestamp,
)
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import Entry, build_batch, build_body, parse_body, partition_key, walk_batch
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from exacta.records.compaction import compaction
from exacta.records.pulsar_entries import entry_of, enveloped

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords as PythonMemoryRecords

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1_000
EPOCH = 3
PULSARS_CODECS = {
    NONE: CompressionType.NONE,
    GZIP: CompressionType.ZLIB,
    SNAPPY: CompressionType.SNAPPY,
    LZ4: CompressionType.LZ4,
    ZSTD: CompressionType.ZSTD,
}


@dataclass(frozen=True)
class Row:
    """A record as readers see it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_pulsars: bool = False

    @property
    def is_tombstone(self) -> bool:
        """Return whether the key is gone by it: an empty value of Pulsar's is none."""
        return self.value is None or (self.is_pulsars and not self.value)


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


def build_pulsars(
    base_offset: int,
    records: Sequence[tuple[bytes | None, bytes | None, int]],
    *,
    codec: CompressionType = CompressionType.NONE,
    producer_id: int = -1,
    transactional: bool = False,
    append_time_ms: int | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    batched: bool = True,
    **fields: Any,
) -> bytes:
    """Build a Pulsar batch from the same; all have the time of the first one. Keys travel as both kinds."""
    metadata = MessageMetadata(producer_name="p", sequence_id=7, publish_time=max(records[0][2], 0), **fields)
    if batched:
        metadata.num_messages_in_batch = len(records)
        payload = build_batch((_single(*record, headers), record[1] or b"") for record in records)
    else:
        [(key, value, time_ms)] = records
        payload = value or b""
        _describe(metadata, key, value, time_ms, headers)
    if codec != CompressionType.NONE:
        metadata.compression, metadata.uncompressed_size = codec, len(payload)
        payload = compress(codec, payload)
    has_producer = producer_id >= 0 and transactional
    batch = enveloped(
        parse_body(build_body(metadata, payload)),
        ProducerId(producer_id) if has_producer else NO_PRODUCER_ID,
        ProducerEpoch(EPOCH) if has_producer else NO_PRODUCER_EPOCH,
    )
    if append_time_ms is not None:
        batch = with_max_timestamp(batch, append_time_ms, log_append_time=True)
    return b"".join(assign_offset(batch, base_offset, 5))


def _single(
    key: bytes | None, value: bytes | None, time_ms: int, headers: Sequence[tuple[str, bytes | None]]
) -> SingleMessageMetadata:
    message = SingleMessageMetadata()
    _describe(message, key, value, time_ms, headers)
    return message


def _describe(
    message: Any, key: bytes | None, value: bytes | None, time_ms: int, headers: Sequence[tuple[str, bytes | None]]
) -> None:
    if key is not None and len(key) % 2:
        message.partition_key = key
    elif key is not None:
        message.partition_key, message.partition_key_b64_encoded = base64.b64encode(key), True
    if value is None:
        message.null_value = True
    message.event_time = max(time_ms, 0)
    for name, content in headers:
        message.properties.add(key=name.encode(), value=content or b"")


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return control_batch(offset, producer_id, EPOCH, commit=commit, coordinator_epoch=0, timestamp_ms=NOW_MS - 5)


def rows_of(batch: Any) -> list[Row]:
    """Read a batch, its checksum and its header included; one of Kafka's by two clients' decoders, which must agree."""
    header = parse_batch_header(batch)
    if header.magic == Body.PULSAR:
        compaction(rules()).check(_at_epoch_0(batch), header.base_offset, header.last_offset)
        rows = _pulsars_rows(header.base_offset, header.max_timestamp, entry_of(batch)) if header.record_count else []
    else:
        rows = _decoded(AioMemoryRecords, batch)
    if header.magic != Body.PULSAR and header.codec in (NONE, GZIP):  # kafka-python has no other codec here
        assert _decoded(PythonMemoryRecords, batch) == rows
    assert len(rows) == header.record_count
    assert header.size == len(batch)
    assert all(header.base_offset <= row.offset <= header.last_offset for row in rows)
    if rows and not header.control:
        assert max(row.timestamp_ms for row in rows) == header.max_timestamp
    return rows


def _at_epoch_0(batch: Any) -> bytes:
    header = parse_batch_header(batch)
    return b"".join(assign_offset(batch, header.base_offset))


def _pulsars_rows(base_offset: int, time_ms: int, entry: Entry) -> list[Row]:
    metadata = entry.metadata
    if not entry.is_batch:
        value = None if metadata.null_value else _plain(entry)
        return [Row(base_offset, time_ms, partition_key(metadata), value, _headers(metadata), is_pulsars=True)]
    rows = []
    for index, message, payload in ((each.index, each.metadata, bytes(each.payload)) for each in _messages(entry)):
        if message.compacted_out:
            assert message == SingleMessageMetadata(compacted_out=True, payload_size=0)
            continue
        value = None if message.null_value else payload
        key = partition_key(message)
        rows.append(Row(base_offset + index, time_ms, key, value, _headers(message), is_pulsars=True))
    return rows


def _messages(entry: Entry) -> Any:
    return walk_batch(_plain(entry), entry.message_count)


def _plain(entry: Entry) -> bytes:
    metadata, payload = entry.metadata, bytes(entry.payload)
    if metadata.compression == CompressionType.NONE:
        return payload
    plain = {
        CompressionType.LZ4: lambda: cramjam.lz4.decompress_block(payload, output_len=metadata.uncompressed_size),
        CompressionType.ZLIB: lambda: cramjam.zlib.decompress(payload),
        CompressionType.ZSTD: lambda: cramjam.zstd.decompress(payload),
        CompressionType.SNAPPY: lambda: cramjam.snappy.decompress_raw(payload),
    }[metadata.compression]()
    assert len(plain) == metadata.uncompressed_size
    return bytes(plain)


def _headers(message: Any) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((each.key.decode(), each.value or None) for each in message.properties)


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
