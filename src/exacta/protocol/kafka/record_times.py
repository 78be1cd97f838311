"""The timestamps of the records of one batch.

Owns two walks over decompressed records as far as their timestamps and offsets: one over every batch that a producer
sends, for the lowest and the highest time, and one that yields each record's place and time. What a client has written
may be no records at all. The layout of a record is told in `record_keys.py`.

Theory of operation. The first walk is on the path of every Produce, and takes about a fifth of a microsecond for a
record: it reads two numbers of each, in line where they have one or two bytes, compares the third one's bytes with what
they must be, and makes no object.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from exacta.protocol.kafka.record_keys import UnreadableRecords, long_number
from exacta.protocol.kafka.record_writing import VARINTS
from exacta.protocol.kafka.records import BatchHeader
from exacta.protocol.kafka.schema import Buffer

_MOST_VARLONG_BYTES: Final = 10
_SMALLEST_LENGTH: Final = 2 * 6
"""The length, as a zigzag number, of a record without key, value and headers."""
_ALIKE: Final = 64
"""The offset deltas of so many records, from a multiple of it on, differ in their first byte only, which grows by 2."""
_TIMES: Final = 1 << 63
"""Timestamps are i64; a delta may go beyond."""


class RecordTime(NamedTuple):
    """A record's place and time."""

    offset: int
    timestamp_ms: int


def lowest_and_highest(plain: Buffer, record_count: int) -> tuple[int, int]:
    """Return the lowest and the highest timestamp delta of the records, at least one, which fill these bytes.

    Raises `UnreadableRecords` where they are not `record_count` records at successive offsets.
    """
    lowest, highest, last = 1 << 64, -1 << 64, -1
    at, size = 0, len(plain)
    try:
        for first in range(0, record_count, _ALIKE):
            low, rest = VARINTS[first][0], VARINTS[first][1:]
            second = rest[0] if len(rest) == 1 else None
            for begin in range(low, low + 2 * min(_ALIKE, record_count - first), 2):
                number = plain[at]
                at += 1
                if number > 0x7F:
                    more = plain[at]
                    if more < 0x80:
                        number += (more << 7) - 0x80
                        at += 1
                    else:
                        number, at = long_number(plain, at - 1)
                if number & 1 or number < _SMALLEST_LENGTH:
                    raise UnreadableRecords("one is shorter than a record is")
                zigzag, place = plain[at + 1], at + 2  # behind the attributes, which say nothing
                if zigzag > 0x7F:
                    more = plain[place]
                    if more < 0x80:
                        zigzag += (more << 7) - 0x80
                        place += 1
                    else:
                        zigzag, place = long_number(plain, at + 1, _MOST_VARLONG_BYTES)
                if zigzag != last:
                    last, delta = zigzag, zigzag >> 1 ^ -(zigzag & 1)
                    lowest, highest = min(lowest, delta), max(highest, delta)
                if plain[place] != begin:
                    raise UnreadableRecords("their offsets do not follow one another")
                if second is not None:
                    if plain[place + 1] != second:
                        raise UnreadableRecords("their offsets do not follow one another")
                elif rest and plain[place + 1 : place + 1 + len(rest)] != rest:
                    raise UnreadableRecords("their offsets do not follow one another")
                at += number >> 1
    except IndexError as error:
        raise UnreadableRecords("one ends outside the batch") from error
    if at != size:
        raise UnreadableRecords(f"they take {at} bytes, where there are {size}")
    return lowest, highest


def record_times(plain: Buffer, header: BatchHeader) -> Iterator[RecordTime]:
    """Yield the place and time of each record of a batch, decompressed, in order. Raises `UnreadableRecords`."""
    at = 0
    try:
        for _ in range(header.record_count):
            number, at = long_number(plain, at)
            end = at + (number >> 1)
            delta, at = long_number(plain, at + 1, _MOST_VARLONG_BYTES)
            offset_delta, _ = long_number(plain, at)
            if number & 1 or number < _SMALLEST_LENGTH or end > len(plain):
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
