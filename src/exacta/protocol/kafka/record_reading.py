"""Whole records of a batch: their places, times, keys, values and headers.

Owns the walk over decompressed records for those who make something else of them. Compaction looks at keys only, and
has a walk of its own (`record_keys.py`, where the layout is told).

Theory of operation. A record costs one tuple and two slices. Numbers of one and two bytes are read in line. The bytes
are a client's: a record must lie in its batch and fill the length that it says, and offsets must grow.
"""

from typing import Final

from exacta.protocol.kafka.record_keys import MOST_VARLONG_BYTES, UnreadableRecords, long_number
from exacta.protocol.kafka.record_writing import Header

Record = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""Offset delta, timestamp delta in milliseconds, key, value, headers."""

_NO_HEADERS: Final = ()


class TooManyHeaders(UnreadableRecords):
    """The records have more headers than are to be made into objects."""


def read_records(plain: bytes, record_count: int, last_offset_delta: int, most_headers: int) -> list[Record]:
    """Return the decompressed records of a batch. Raises `UnreadableRecords`, and nothing else.

    All records together may have this many headers. Two bytes are enough for one, and an object takes a hundred.
    """
    records: list[Record] = []
    at, last_delta, size = 0, -1, len(plain)
    try:
        for _ in range(record_count):
            number = plain[at]
            at += 1
            if number > 0x7F:
                more = plain[at]
                if more < 0x80:
                    number += (more << 7) - 0x80
                    at += 1
                else:
                    number, at = long_number(plain, at - 1)
            end = at + (number >> 1)
            if number & 1 or end > size:
                raise UnreadableRecords("one ends outside the batch")
            number = plain[at + 1]  # behind the attributes, which say nothing
            at += 2
            if number > 0x7F:
                number, at = long_number(plain, at - 1, MOST_VARLONG_BYTES)
            timestamp_delta = number >> 1 ^ -(number & 1)
            number = plain[at]
            at += 1
            if number > 0x7F:
                more = plain[at]
                if more < 0x80:
                    number += (more << 7) - 0x80
                    at += 1
                else:
                    number, at = long_number(plain, at - 1)
            offset_delta = number >> 1
            if number & 1 or offset_delta <= last_delta:
                raise UnreadableRecords("their offsets do not grow")
            last_delta = offset_delta
            number = plain[at]
            at += 1
            if number & 1 == 0:
                if number > 0x7F:
                    more = plain[at]
                    if more < 0x80:
                        number += (more << 7) - 0x80
                        at += 1
                    else:
                        number, at = long_number(plain, at - 1)
                start = at
                at += number >> 1
                key = plain[start:at]
            else:
                key = None
                if number > 0x7F:
                    _, at = long_number(plain, at - 1)
            number = plain[at]
            at += 1
            if number & 1 == 0:
                if number > 0x7F:
                    more = plain[at]
                    if more < 0x80:
                        number += (more << 7) - 0x80
                        at += 1
                    else:
                        number, at = long_number(plain, at - 1)
                start = at
                at += number >> 1
                value = plain[start:at]
            else:
                value = None
                if number > 0x7F:
                    _, at = long_number(plain, at - 1)
            headers: tuple[Header, ...] = _NO_HEADERS
            if plain[at] == 0:
                at += 1
            else:
                headers, at = read_headers(plain, at, end, most_headers)
                most_headers -= len(headers)
            if at != end:
                raise UnreadableRecords("one is not as long as it says")
            records.append((offset_delta, timestamp_delta, key, value, headers))
    except IndexError as error:
        raise UnreadableRecords("one ends outside the batch") from error
    if at != size:
        raise UnreadableRecords(f"{size - at} bytes are left over")
    if last_delta > last_offset_delta:
        raise UnreadableRecords("their offsets go beyond those of the batch")
    return records


def read_headers(plain: bytes, at: int, end: int, most: int) -> tuple[tuple[Header, ...], int]:
    """Read the headers that begin at `at`; return them and where they end. Raises IndexError, UnreadableRecords."""
    count, at = long_number(plain, at)
    if count & 1 or count > end - at:  # each has two numbers, and the count is twice as large as it means
        raise UnreadableRecords("one has no room for its headers")
    if count >> 1 > most:
        raise TooManyHeaders("they have too many headers")
    headers: list[Header] = []
    for _ in range(count >> 1):
        number = plain[at]
        at += 1
        if number > 0x7F:
            number, at = long_number(plain, at - 1)
        if number & 1:
            raise UnreadableRecords("a header has no name")
        start = at
        at += number >> 1
        name = plain[start:at]
        number = plain[at]
        at += 1
        if number > 0x7F:
            number, at = long_number(plain, at - 1)
        value = None
        if number & 1 == 0:
            start = at
            at += number >> 1
            value = plain[start:at]
        if at > end:
            raise UnreadableRecords("a header ends outside its record")
        headers.append((name, value))
    return tuple(headers), at
