"""Record batches as producers make them, and their values as consumers read them.

Owns how a value stands in a record: where it has a key (`history.keyed`), that is the record's; a tombstone has its
value in a header, so that one knows whose it is.
"""

from collections.abc import Iterator

from crc32c import crc32c

from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.record_writing import encoded_headers
from exacta.protocol.kafka.record_writing import record as written
from exacta.protocol.kafka.records import HEADER_SIZE, BatchHeader, CorruptBatch, iter_batches
from exacta.protocol.pulsar.entries import walk_batch
from exacta.records.pulsar_entries import entry_of, is_entry
from simulation.history import key_of, keyed

CHECKED_FROM = 21
"""A batch's checksum covers it from its attributes on."""


def batch(values: list[bytes], pair: tuple[int, int], sequence: int, *, transactional: bool, now_ms: int) -> bytes:
    """Build one batch, uncompressed."""
    return data_batch(
        [_record_of(number, value) for number, value in enumerate(values)],
        len(values),
        compression=0,
        transactional=transactional,
        first_timestamp_ms=now_ms,
        last_timestamp_ms=now_ms,
        producer_id=pair[0],
        producer_epoch=pair[1],
        base_sequence=sequence,
    )


Batch = tuple[BatchHeader, list[tuple[int, bytes]], bool]
"""Header, offsets and values and, of a control batch, whether it commits."""


def read_batches(records: object) -> Iterator[Batch]:
    """Take apart what a reader got."""
    data = b"" if records is None else bytes(records)  # type: ignore[call-overload]
    for header, view in iter_batches(data):
        if crc32c(view[CHECKED_FROM:]) != header.crc:
            raise CorruptBatch(f"the batch at {header.base_offset} fails its checksum")
        if header.control:
            yield header, [], _commits(view)
        else:
            yield header, [(header.base_offset + delta, value) for delta, value in _records_of(view, header)], False


def pushed_values(batch: Buffer) -> Iterator[tuple[int, bytes]]:
    """Yield the offsets and values of what a consumer of a subscription got: of Kafka's records, converted or not."""
    if not is_entry(batch):
        for _, values, _ in read_batches(batch):
            yield from values
        return
    base, entry = int.from_bytes(batch[:8], "big"), entry_of(batch)
    if not entry.is_batch:
        yield base, bytes(entry.payload)
        return
    for each in walk_batch(entry.payload, entry.message_count):
        if not each.metadata.compacted_out:
            yield base + each.index, bytes(each.payload)


def _commits(marker: memoryview) -> bool:
    _, position = _read_varint(marker, HEADER_SIZE)  # length
    position += 1  # attributes
    for _ in range(3):  # timestamp delta, which compaction may have made longer, offset delta, length of the key
        _, position = _read_varint(marker, position)
    return marker[position + 3] == 1


def record(offset_delta: int, value: bytes, timestamp_delta_ms: int = 0) -> bytes:
    """Return a record without key and headers, as a batch holds it."""
    return written(offset_delta, timestamp_delta_ms, None, value)


def _record_of(offset_delta: int, value: bytes) -> bytes:
    plain, key, is_tombstone = key_of(value)
    if is_tombstone:
        return written(offset_delta, 0, key, None, encoded_headers([(b"", plain)]))
    return written(offset_delta, 0, key, plain)


def values_of(view: memoryview, count: int) -> Iterator[bytes]:
    """Yield the values of the records in a batch of `count`, which have neither key nor headers."""
    position = HEADER_SIZE
    for _ in range(count):
        length, position = _read_varint(view, position)
        end = position + length
        position += 1  # attributes
        for _ in range(3):  # timestamp delta, offset delta, length of the key
            _, position = _read_varint(view, position)
        size, position = _read_varint(view, position)
        yield bytes(view[position : position + size])
        position = end


def _records_of(view: memoryview, header: BatchHeader) -> Iterator[tuple[int, bytes]]:
    """Yield offset delta and value of the records that are left in a batch."""
    position = HEADER_SIZE
    for _ in range(header.record_count):
        length, position = _read_varint(view, position)
        end = position + length
        _, position = _read_varint(view, position + 1)  # timestamp delta
        offset_delta, position = _read_varint(view, position)
        key, position = _read_sized(view, position)
        value, position = _read_sized(view, position)
        if value is None:
            value, _ = _read_sized(view, position + 2)  # of the one header, which has no name
        assert value is not None
        yield offset_delta, value if key is None else keyed(value, key, is_tombstone=position < end - 1)
        position = end


def _read_sized(view: memoryview, position: int) -> tuple[bytes | None, int]:
    size, position = _read_varint(view, position)
    return (None, position) if size < 0 else (bytes(view[position : position + size]), position + size)


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    shift = result = 0
    while True:
        byte = view[position]
        position += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (result >> 1) ^ -(result & 1), position
