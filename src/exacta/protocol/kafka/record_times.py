"""The timestamps of the records of one batch, for a client that asks for the offset of a time.

Owns the walk over a batch's records as far as their timestamps and offsets. A compressed batch is not opened for it, by
choice (decision 0015). What a client has written may be no records at all, or lie outside its batch; then there is
nothing to see either.

A record begins: length varint | attributes i8 | timestamp delta varlong | offset delta varint; all zigzag.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from exacta.protocol.kafka.records import HEADER_SIZE, MAGIC, BatchHeader, parse_batch_header
from exacta.protocol.kafka.schema import Buffer

LATEST: Final = None
"""This stands for the latest time of all."""

_MOST_VARINT_BYTES: Final = 10
_TIMES: Final = 1 << 63
"""Timestamps are i64; a delta may go beyond."""


class RecordTime(NamedTuple):
    """A record's place and time."""

    offset: int
    timestamp_ms: int


class Unseen(Exception):
    """The batch's records cannot be looked at."""


def find_record(batch: Buffer, timestamp_ms: int | None, start_offset: int) -> RecordTime | None:
    """Find the first record at `start_offset` or later with this time or a later one; `LATEST`: with the latest time.

    None if there is none. Raises `Unseen`.
    """
    header = parse_batch_header(batch)
    if header.log_append_time or header.magic != MAGIC:  # another protocol has one time for all of a batch
        return _of_all_records(header, timestamp_ms, start_offset)
    if header.compression != "none":
        raise Unseen(header.compression)
    found: RecordTime | None = None
    for record in _walk(batch, header):
        if record.offset < start_offset:
            continue
        if timestamp_ms is not None:
            if record.timestamp_ms >= timestamp_ms:
                return record
        elif found is None or record.timestamp_ms > found.timestamp_ms:
            found = record
    return found


def _of_all_records(header: BatchHeader, timestamp_ms: int | None, start_offset: int) -> RecordTime | None:
    if timestamp_ms is not None and header.max_timestamp < timestamp_ms:
        return None
    return RecordTime(max(header.base_offset, start_offset), header.max_timestamp)


def _walk(batch: Buffer, header: BatchHeader) -> Iterator[RecordTime]:
    view = memoryview(batch)
    position = HEADER_SIZE
    try:
        for _ in range(header.record_count):
            length, position = _varint(view, position)
            end = position + length
            delta_ms, at = _varint(view, position + 1)
            offset_delta, _ = _varint(view, at)
            if length < 1 or end > len(view):
                raise Unseen("a record ends outside its batch")
            record = RecordTime(header.base_offset + offset_delta, header.base_timestamp + delta_ms)
            if not header.base_offset <= record.offset <= header.last_offset:
                raise Unseen("a record's offset is outside its batch")
            if not -_TIMES <= record.timestamp_ms < _TIMES:
                raise Unseen("a record's time is none that can be answered")
            yield record
            position = end
    except IndexError as error:
        raise Unseen("a record ends outside its batch") from error


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    """Read a zigzag number; return it and where it ends. Raises IndexError, Unseen."""
    number = shift = 0
    for at in range(position, position + _MOST_VARINT_BYTES):
        byte = view[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at + 1
        shift += 7
    raise Unseen("a number without an end")
