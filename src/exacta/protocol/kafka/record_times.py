"""The timestamps of the records of one batch.

Owns two walks over decompressed records as far as their timestamps and offsets: one over every batch that a producer
sends, for the lowest and the highest time, and one that yields each record's place and time. What a client has written
may be no records at all. The layout of a record is told in `record_keys.py`.

Theory of operation. The first walk is on the path of every Produce. A loop finds where the records begin. What stands
there is then taken out and compared in columns, by calls that loop in C: the times, and the bytes of the offset deltas,
which must be 0, 1, 2 and so on. That takes half the time of a loop over all numbers. It goes where each time takes one
byte, which is so where the records of a batch are at most 63 ms apart; others are read record by record.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from exacta.protocol.kafka.record_keys import UnreadableRecords, long_number
from exacta.protocol.kafka.record_writing import VARINTS
from exacta.protocol.kafka.records import BatchHeader
from exacta.protocol.kafka.schema import Buffer

_MOST_VARLONG_BYTES: Final = 10
_SMALLEST_LENGTH: Final = 2 * 6
"""The length, as a zigzag number, of a record without key, value and headers."""
_TWO_BYTES_FROM: Final = 1 << 6
_THREE_BYTES_FROM: Final = 1 << 13
"""Offset deltas from here on have so many bytes."""
_MOST_IN_COLUMNS: Final = 1 << 14

_ALIKE: Final = 64
"""The offset deltas of so many records, from a multiple of it on, differ in their first byte only."""
_COLUMNS: Final = (
    bytes(range(0, 0x80, 2)) + bytes(range(0x80, 0x100, 2)) * (_MOST_IN_COLUMNS // _ALIKE - 1),
    b"".join(bytes([block if block < 0x80 else block | 0x80]) * _ALIKE for block in range(_MOST_IN_COLUMNS // _ALIKE)),
    bytes(_THREE_BYTES_FROM) + b"\x01" * (_MOST_IN_COLUMNS - _THREE_BYTES_FROM),
)
"""The first, the second and the third bytes of the offset deltas 0, 1, 2 and so on."""
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
    records = memoryview(plain)  # a copy of a megabyte would take longer than the walk
    try:
        places = _places(records, record_count)
        if 1 < record_count <= _MOST_IN_COLUMNS:
            column = itemgetter(*places)
            times = column(records[1:])
            if max(times) <= 0x7F:
                _compare_columns(records, places, column)
                deltas = [_signed(each) for each in set(times)]
                return min(deltas), max(deltas)
        return _of_each(bytes(records), places)
    except IndexError as error:
        raise UnreadableRecords("one ends outside the batch") from error


def _places(records: memoryview, record_count: int) -> list[int]:
    """Return where the attributes of each record are. Raises IndexError, UnreadableRecords."""
    places: list[int] = []
    at = 0
    for _ in range(record_count):
        number = records[at]
        at += 1
        if number > 0x7F:
            more = records[at]
            if more < 0x80:
                number += (more << 7) - 0x80
                at += 1
            else:
                number, at = long_number(records, at - 1)
        if number & 1 or number < _SMALLEST_LENGTH:
            raise UnreadableRecords("one is shorter than a record is")
        places.append(at)
        at += number >> 1
    if at != len(records):
        raise UnreadableRecords(f"they take {at} bytes, where there are {len(records)}")
    return places


def _compare_columns(records: memoryview, places: list[int], first: Callable[[memoryview], tuple[int, ...]]) -> None:
    """Compare offset deltas that stand behind one byte for the time; `first` takes the bytes at the places."""
    count = len(places)
    follows = bytes(first(records[2:])) == _COLUMNS[0][:count]
    for column, begin in ((1, _TWO_BYTES_FROM), (2, _THREE_BYTES_FROM)):
        for_two = places[begin:] * 2  # with one place alone a number would come, and no tuple
        if for_two:
            found = bytes(itemgetter(*for_two)(records[2 + column :]))
            follows = follows and found == _COLUMNS[column][begin:count] * 2
    if not follows:
        raise UnreadableRecords("their offsets do not follow one another")


def _of_each(records: bytes, places: list[int]) -> tuple[int, int]:
    """Do the same record by record. Raises IndexError, UnreadableRecords."""
    lowest, highest, last = 1 << 64, -1 << 64, -1
    numbers, has_at = VARINTS, records.startswith
    for offset_delta, at in enumerate(places):
        zigzag, place = records[at + 1], at + 2
        if zigzag > 0x7F:
            more = records[place]
            if more < 0x80:
                zigzag += (more << 7) - 0x80
                place += 1
            else:
                zigzag, place = long_number(records, at + 1, _MOST_VARLONG_BYTES)
        if zigzag != last:
            last, delta = zigzag, _signed(zigzag)
            lowest, highest = min(lowest, delta), max(highest, delta)
        if not has_at(numbers[offset_delta], place):
            raise UnreadableRecords("their offsets do not follow one another")
    return lowest, highest


def _signed(zigzag: int) -> int:
    return zigzag >> 1 ^ -(zigzag & 1)


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
