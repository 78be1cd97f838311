"""The walk over the records of a batch that a producer sends: their number, their offsets, and their times.

Owns what Produce must know of decompressed records before their batch is taken. They fill the batch, there are as many
as its header says, their offset deltas are 0, 1, 2 and so on, and their times have a lowest and a highest one. Keys,
values and headers are stepped over. What a client has written may be no records at all. The layout of a record is told
in `record_keys.py`.

Theory of operation. The walk is on the path of every Produce, so that calls that loop in C do most of it. It takes the
records in parts. The offset deltas of a part take equally many bytes.

- A part finds out where its records begin. If the first one's length stands again behind it, and behind that again,
  then these places follow from one another: they are a `range`. The lengths are compared as a slice with a step.
  Otherwise a loop goes from record to record, which takes more than half of the time of the whole walk.
- What stands at these places is compared in columns: the times, of one or two bytes, and each byte of the offset
  deltas.
- Columns prove that a part is sound, and never that it is not. Where they do not, its records are read one by one, and
  refused if need be. That happens to a few records, to some of 8 KiB and more among others, to times whose numbers have
  several sizes, to numbers with more bytes than they need, and to what is no record.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from struct import unpack
from typing import Final, TypeAlias

from exacta.protocol.kafka.record_keys import MOST_VARLONG_BYTES, SMALLEST_LENGTH, UnreadableRecords, long_number
from exacta.protocol.kafka.schema import Buffer

_FEW: Final = 16
"""This many records are read one by one, since columns cost some microseconds before the first record."""
_ALIKE: Final = 64
"""Fewer records of equal length, among others, are not worth a part of their own."""
_PART: Final = 1 << 10
"""The most records of a part whose lengths differ."""

_TWO_BYTES_FROM: Final = 1 << 6
_THREE_BYTES_FROM: Final = 1 << 13
_FOUR_BYTES_FROM: Final = 1 << 20
"""Offset deltas from here on have this many bytes. With at most three of them, and two for the time, the shortest
record has room for the columns."""
_FIRST: Final = bytes(range(0x80, 0x100, 2)) * (_THREE_BYTES_FROM // _TWO_BYTES_FROM)
_SECOND: Final = b"".join(bytes([block]) * _TWO_BYTES_FROM for block in range(0x80))
_SECOND_OF_THREE: Final = bytes(byte | 0x80 for byte in _SECOND)
"""The first and the second bytes of the offset deltas from 0, or from a multiple of `_THREE_BYTES_FROM`, on."""

_CONTINUED: Final = bytes(range(0x80, 0x100))
"""The bytes of a number that are not its last one."""
_MANY_TIMES: Final = 512
"""The number of times from which on it is quicker to look for each possible one than to take each of them."""

_NOWHERE: Final = 1 << 62
"""A length that leads out of every batch: what the tables below say of a number that is none that they know."""
_ONE_BYTE: Final = tuple(
    1 + (number >> 1) if number >= SMALLEST_LENGTH and not number & 1 else _NOWHERE for number in range(0x80)
)
_LOW: Final = tuple((byte & 0x7F) >> 1 if byte >= 0x80 and not byte & 1 else _NOWHERE for byte in range(0x100))
_HIGH: Final = tuple(2 + (byte << 6) if 0 < byte < 0x80 else _NOWHERE for byte in range(0x100))
"""The size of a record, with its length, by the one byte of that, or by the sum for its low and its high byte."""

_HEAD: Final = 2
"""A record's place is this many bytes before its attributes, where it begins if its length has two bytes."""

_Part: TypeAlias = tuple[int, int]
"""The number of records that have been read, from the first of the batch on, and where they end."""


def lowest_and_highest(plain: Buffer, record_count: int) -> tuple[int, int]:
    """Return the lowest and the highest timestamp delta of the records, at least one, which fill these bytes.

    Raises `UnreadableRecords` where they are not `record_count` records at successive offsets.
    """
    records = memoryview(plain)  # a copy of a megabyte would take as long as the walk
    times: set[int] = set()
    index = at = 0
    try:
        while index < record_count:
            end = min(record_count, _end_of_width(index))
            part = _in_columns(records, at, index, end, times) if end - index > _FEW else None
            if part is None:
                part = _one_by_one(records, at, index, min(end, index + _PART), times)
            index, at = part
    except IndexError as error:
        raise UnreadableRecords("one ends outside the batch") from error
    if at != len(records):
        raise UnreadableRecords(f"they take {at} bytes, where there are {len(records)}")
    deltas_ms = [number >> 1 ^ -(number & 1) for number in times]
    return min(deltas_ms), max(deltas_ms)


def _end_of_width(index: int) -> int:
    """Return the next index at which a byte of the offset deltas is not told by `_offset_columns` any more."""
    return _TWO_BYTES_FROM if index < _TWO_BYTES_FROM else (index // _THREE_BYTES_FROM + 1) * _THREE_BYTES_FROM


def _in_columns(records: memoryview, at: int, index: int, end: int, times: set[int]) -> _Part | None:
    """Read a part of the records `index` to `end`, more than a few, as `_one_by_one` does.

    None: it does not go in columns. Raises IndexError, UnreadableRecords.
    """
    if index >= _FOUR_BYTES_FROM:
        return None
    places, at = _places(records, at, end - index)
    if not places:
        return None
    count = len(places)
    low = bytes(_column(records, places, _HEAD + 1))
    if low.isascii():
        found: Iterable[int] = low if count < _MANY_TIMES else [number for number in range(0x80) if number in low]
        offset_at = _HEAD + 2
    elif not low.translate(None, _CONTINUED) and (high := bytes(_column(records, places, _HEAD + 2))).isascii():
        pairs = bytearray(2 * count)
        pairs[::2], pairs[1::2] = low, high
        found = [pair & 0x7F | pair >> 8 << 7 for pair in set(unpack(f"<{count}H", pairs))]
        offset_at = _HEAD + 3
    else:
        return None
    for number, expected in enumerate(_offset_columns(index, count), offset_at):
        if _column(records, places, number) != expected:
            return None
    times.update(found)
    return index + count, at


def _places(records: memoryview, at: int, most: int) -> tuple[Sequence[int], int]:
    """Return the places of as many records as make a part, from the one at `at` on, and where they end.

    There are none if they must be read one by one. Raises IndexError, UnreadableRecords.
    """
    number, attributes_at = long_number(records, at)
    if number & 1 or number < SMALLEST_LENGTH:
        return [], at
    size = attributes_at - at + (number >> 1)
    count = _equally_long(records, at, attributes_at, size, min(most, (len(records) - at) // size))
    if count:
        end = at + count * size
        return range(attributes_at - _HEAD, end - _HEAD, size), end
    return _places_of_each(records, at, min(most, _PART))


def _equally_long(records: memoryview, at: int, attributes_at: int, size: int, most: int) -> int:
    """Return the number of records, from the one at `at` on, that have its length; 0: it makes no part."""
    for place in range(at, attributes_at):
        byte = bytes(records[place : place + 1])
        if records[place : at + most * size : size] == byte * most:
            continue
        if most < _ALIKE or records[place : at + _ALIKE * size : size] != byte * _ALIKE:
            return 0
        most = min(most, _PART)
        most -= len(bytes(records[place : at + most * size : size]).lstrip(byte))
    return most


def _places_of_each(records: memoryview, at: int, count: int) -> tuple[list[int], int]:
    """Return the places of this many records and where they end; none if a length has an unusual form, or leads out."""
    places: list[int] = []
    add = places.append
    one_byte, low, high = _ONE_BYTE, _LOW, _HIGH
    next_byte = records[1:]
    try:
        for _ in repeat(None, count):
            number = records[at]
            if number > 0x7F:
                add(at)
                at += low[number] + high[next_byte[at]]
            else:
                add(at - 1)
                at += one_byte[number]
    except IndexError:
        return [], at
    return ([], at) if at >= _NOWHERE or places[0] < 0 else (places, at)


def _column(records: memoryview, places: Sequence[int], number: int) -> Buffer:
    """Return the bytes that stand this many bytes behind these places, at least two. Raises IndexError."""
    if isinstance(places, range):
        return records[places.start + number : places.stop + _HEAD : places.step]
    return bytes(itemgetter(*places)(records[number:]))


def _offset_columns(index: int, count: int) -> list[bytes]:
    """Return the first bytes, second bytes and so on of the offset deltas from `index` on."""
    if index < _TWO_BYTES_FROM:
        return [bytes(range(2 * index, 2 * (index + count), 2))]
    begin = index % _THREE_BYTES_FROM
    within = slice(begin, begin + count)
    if index < _THREE_BYTES_FROM:
        return [_FIRST[within], _SECOND[within]]
    return [_FIRST[within], _SECOND_OF_THREE[within], bytes([index // _THREE_BYTES_FROM]) * count]


def _one_by_one(records: memoryview, at: int, index: int, end: int, times: set[int]) -> _Part:
    """Read the records `index` to `end`, the first of which begins at `at`, and add their times, as zigzag numbers.

    Raises IndexError, UnreadableRecords.
    """
    add = times.add
    for offset_delta in range(2 * index, 2 * end, 2):
        number = records[at]
        at += 1
        if number > 0x7F:
            number += (records[at] << 7) - 0x80
            at += 1
            if number > 0x3FFF:
                number, at = long_number(records, at - 2)
        if number & 1 or number < SMALLEST_LENGTH:
            raise UnreadableRecords("one is shorter than a record is")
        record_end = at + (number >> 1)
        number = records[at + 1]  # behind the attributes
        at += 2
        if number > 0x7F:
            number += (records[at] << 7) - 0x80
            at += 1
            if number > 0x3FFF:
                number += (records[at] << 14) - 0x4000
                at += 1
                if number > 0x1FFFFF:
                    number += (records[at] << 21) - 0x200000
                    at += 1
                    if number > 0xFFFFFFF:
                        number, at = long_number(records, at - 4, MOST_VARLONG_BYTES)
        add(number)
        number = records[at]
        at += 1
        if number > 0x7F:
            number += (records[at] << 7) - 0x80
            at += 1
            if number > 0x3FFF:
                number, at = long_number(records, at - 2)
        if number != offset_delta:
            raise UnreadableRecords("their offsets do not follow one another")
        if at > record_end:
            raise UnreadableRecords("one is shorter than its numbers")
        at = record_end
    return end, at
