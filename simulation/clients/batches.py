"""Record batches as producers make them, and their values as consumers read them.

Owns how a value stands in a record: where it has a key (`history.keyed`), that is the record's; a tombstone has its
value in a header, so that one knows whose it is. A Pulsar message is such a record too (`messages.py`).
"""

from collections.abc import Iterator

from crc32c import crc32c

from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.compression import NONE
from exacta.protocol.kafka.record_writing import encoded_headers
from exacta.protocol.kafka.record_writing import record as written
from exacta.protocol.kafka.records import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    iter_batches,
    opened,
    parse_batch_header,
    with_max_timestamp,
)
from exacta.records.pulsar_entries import is_entry
from simulation.clients.messages import TOMBSTONES_VALUE, entry_values
from simulation.history import key_of, keyed

MOST_BYTES = 1 << 20
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


LIES_MS = (-1, 0, 1 << 62)


def sent(batch: bytes) -> bytes:
    """Return the batch as a client sends it: the header of three in four is wrong about the highest time."""
    chosen = crc32c(batch) % (len(LIES_MS) + 1)
    return with_max_timestamp(batch, LIES_MS[chosen], log_append_time=False) if chosen < len(LIES_MS) else batch


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
            yield (
                header,
                [(header.base_offset + delta, value) for delta, value in _records_of(_opened(view, header), header)],
                False,
            )


def read_stored(batch: Buffer) -> Iterator[Batch]:
    """Take apart one batch as it lies in the log, whichever protocol's it is."""
    if not is_entry(batch):
        yield from read_batches(batch)
        return
    yield parse_batch_header(batch), list(entry_values(batch)), False


def pushed_values(batch: Buffer) -> Iterator[tuple[int, bytes]]:
    """Yield the offsets and values of what a consumer of a subscription got: of Kafka's records, converted or not."""
    for _, values, _ in read_stored(batch):
        yield from values


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
        return written(offset_delta, 0, key, None, encoded_headers([(TOMBSTONES_VALUE, plain)]))
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


def _opened(view: memoryview, header: BatchHeader) -> memoryview:
    """Return the records of a batch; what was a compressed Pulsar entry is compressed."""
    return view[HEADER_SIZE:] if header.codec == NONE else memoryview(opened(view, header, MOST_BYTES))


def highest_time(batch: Buffer) -> int:
    """Return the highest timestamp of the records of one of Kafka's batches, as they say it themselves."""
    view = memoryview(batch)
    header = parse_batch_header(view)
    records, position, highest = _opened(view, header), 0, -1
    for _ in range(header.record_count):
        length, position = _read_varint(records, position)
        delta, _ = _read_varint(records, position + 1)
        highest = max(highest, header.base_timestamp + delta)
        position += length
    return highest


def _records_of(view: memoryview, header: BatchHeader) -> Iterator[tuple[int, bytes]]:
    """Yield offset delta and value of the records that are left in a batch."""
    position = 0
    for _ in range(header.record_count):
        length, position = _read_varint(view, position)
        end = position + length
        _, position = _read_varint(view, position + 1)  # timestamp delta
        offset_delta, position = _read_varint(view, position)
        key, position = _read_sized(view, position)
        value, position = _read_sized(view, position)
        said = _headers(view, position).get(TOMBSTONES_VALUE)
        plain = value if said is None else said
        assert plain is not None
        yield offset_delta, plain if key is None else keyed(plain, key, is_tombstone=said is not None)
        position = end


def _headers(view: memoryview, position: int) -> dict[bytes | None, bytes | None]:
    count, position = _read_varint(view, position)
    found: dict[bytes | None, bytes | None] = {}
    for _ in range(count):
        name, position = _read_sized(view, position)
        found[name], position = _read_sized(view, position)
    return found


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
