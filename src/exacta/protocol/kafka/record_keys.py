"""The places and keys of the records in one batch, for compaction and for topics that refuse records without a key.

Owns the walk over decompressed records as far as their values. Timestamps are stepped over: `record_edits.py` reads
them where a batch is rewritten.

A record: length varint | attributes i8 | timestamp delta varlong | offset delta varint | key length varint | key |
value length varint | value | headers; all zigzag, hence an odd number is a negative one. A negative length is null.

Theory of operation. A record costs a few lookups in a bytes object and no object of its own but its key: what is found
is returned as columns. Numbers of one and two bytes are read in line, which is nearly all of them. A batch is read
whole before anybody acts on it: what is not to be read has no keys, instead of some.
"""

from typing import Final, NamedTuple

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.records import CorruptBatch
from exacta.protocol.kafka.schema import Buffer

MOST_VARINT_BYTES: Final = 5
MOST_VARLONG_BYTES: Final = 10
SMALLEST_LENGTH: Final = 2 * 6
"""The length, as a zigzag number, of a record without key, value and headers."""


class RecordKeys(NamedTuple):
    """The records of a batch: one element for each, in order. `starts` has one more, where the last one ends."""

    starts: list[int]
    offset_deltas: list[int]
    keys: list[bytes | None]
    tombstones: list[bool]


class UnreadableRecords(CorruptBatch):
    """The records of a batch are not what its header says, or none at all."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the batch's records cannot be read: {reason}", ErrorCode.INVALID_RECORD)


def record_keys(plain: bytes, record_count: int, last_offset_delta: int) -> RecordKeys:
    """Walk over the decompressed records of a batch. Raises UnreadableRecords."""
    starts: list[int] = []
    offset_deltas: list[int] = []
    keys: list[bytes | None] = []
    tombstones: list[bool] = []
    at, offset_delta, size = 0, -1, len(plain)
    try:
        for _ in range(record_count):
            starts.append(at)
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
            at += 1  # attributes
            while plain[at] > 0x7F:  # timestamp delta
                at += 1
            number = plain[at + 1]
            at += 2
            if number > 0x7F:
                more = plain[at]
                if more < 0x80:
                    number += (more << 7) - 0x80
                    at += 1
                else:
                    number, at = long_number(plain, at - 1)
            if number & 1 or number >> 1 <= offset_delta:
                raise UnreadableRecords("their offsets do not grow")
            offset_delta = number >> 1
            offset_deltas.append(offset_delta)
            number = plain[at]
            at += 1
            if number > 0x7F:
                more = plain[at]
                if more < 0x80:
                    number += (more << 7) - 0x80
                    at += 1
                else:
                    number, at = long_number(plain, at - 1)
            if number & 1:
                keys.append(None)
            else:
                key_at = at
                at += number >> 1
                keys.append(plain[key_at:at])
            number = plain[at]
            at += 1
            if number > 0x7F:
                more = plain[at]
                if more < 0x80:
                    number += (more << 7) - 0x80
                    at += 1
                else:
                    number, at = long_number(plain, at - 1)
            if number & 1:
                tombstones.append(True)
            else:
                tombstones.append(False)
                at += number >> 1
            if at >= end:  # there are headers, or at least that there are none
                raise UnreadableRecords("one is longer than it says")
            at = end
    except IndexError as error:
        raise UnreadableRecords("one ends outside the batch") from error
    if at != size:
        raise UnreadableRecords(f"{size - at} bytes are left over")
    if offset_delta > last_offset_delta:
        raise UnreadableRecords("their offsets go beyond those of the batch")
    starts.append(at)
    return RecordKeys(starts, offset_deltas, keys, tombstones)


def long_number(plain: Buffer, at: int, most_bytes: int = MOST_VARINT_BYTES) -> tuple[int, int]:
    """Read an unsigned number; return it and where it ends. Raises IndexError, UnreadableRecords."""
    number = shift = 0
    for place in range(at, at + most_bytes):
        byte = plain[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place + 1
        shift += 7
    raise UnreadableRecords("a number has no end")
