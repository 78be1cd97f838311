"""The place and the timestamp of each record of one batch, for look-ups by time.

Owns the walk over decompressed records as far as their offsets. What a client has written may be no records at all. The
layout of a record is told in `record_keys.py`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from exacta.protocol.kafka.record_keys import MOST_VARLONG_BYTES, SMALLEST_LENGTH, UnreadableRecords, long_number
from exacta.protocol.kafka.records import BatchHeader
from exacta.protocol.kafka.schema import Buffer

_TIMES: Final = 1 << 63
"""Timestamps are i64; a delta may go beyond."""


class RecordTime(NamedTuple):
    """A record's place and time."""

    offset: int
    timestamp_ms: int


def record_times(plain: Buffer, header: BatchHeader) -> Iterator[RecordTime]:
    """Yield the place and time of each record of a batch, decompressed, in order. Raises `UnreadableRecords`."""
    at = 0
    try:
        for _ in range(header.record_count):
            number, at = long_number(plain, at)
            end = at + (number >> 1)
            delta, at = long_number(plain, at + 1, MOST_VARLONG_BYTES)
            offset_delta, _ = long_number(plain, at)
            if number & 1 or number < SMALLEST_LENGTH or end > len(plain):
                raise UnreadableRecords("one ends outside the batch")
            if offset_delta & 1 or offset_delta >> 1 > header.last_offset_delta:
                raise UnreadableRecords("a record's offset is outside its batch")
            timestamp_ms = header.base_timestamp + (delta >> 1 ^ -(delta & 1))
            if not -_TIMES <= timestamp_ms < _TIMES:
                raise UnreadableRecords("a record's time is none that can be answered")
            yield RecordTime(header.base_offset + (offset_delta >> 1), timestamp_ms)
            at = end
    except IndexError as error:
        raise UnreadableRecords("one ends outside the batch") from error
