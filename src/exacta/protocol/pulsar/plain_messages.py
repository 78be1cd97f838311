"""The metadata of plain messages, written without an object for each: properties, a key that is text, times, an id.

A conversion makes millions of messages, and nearly all are plain. These bytes are those
that `protobuf` writes for the same fields; a test holds that.

    field: number << 3 | type, then a varint (type 0), or a length and this many bytes (type 2)
"""

from collections.abc import Sequence
from typing import Final

_MOST_KEPT: Final = 1 << 14
_LOW_BITS: Final = 14


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class _Varints(dict[int, bytes]):
    """Numbers as varints; those that were asked for last are kept."""

    def __missing__(self, number: int) -> bytes:
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[number] = made = _varint(number)
        return made


class _Beginnings(dict[int, bytes]):
    """The lower 14 bits of numbers that have more."""

    def __missing__(self, number: int) -> bytes:
        self[number] = made = bytes((number & 0x7F | 0x80, number >> 7 | 0x80))
        return made


_VARINTS: Final = _Varints()
_BEGINNINGS: Final = _Beginnings()


def _long_varint(number: int) -> bytes:
    """Return a time or an offset as a varint. Its upper bits seldom change, so their bytes come from a table."""
    if number < _MOST_KEPT:
        return _VARINTS[number]
    return _BEGINNINGS[number & _MOST_KEPT - 1] + _VARINTS[number >> _LOW_BITS]


def batched_head(
    properties: Sequence[tuple[bytes, bytes]], key: bytes | None, payload_size: int, event_time: int, sequence_id: int
) -> bytes:
    """Return what stands before a message's payload in a batch: the size of its metadata, and those."""
    head = b"".join(
        (
            _properties(b"\x0a", properties) if properties else b"",
            b"" if key is None else b"\x12%b%b" % (_VARINTS[len(key)], key),
            b"\x18",
            _VARINTS[payload_size],
            b"\x28" + _long_varint(event_time) if event_time else b"",
            b"\x40",
            _long_varint(sequence_id),
        )
    )
    return len(head).to_bytes(4) + head


def single_head(
    producer: bytes,
    sequence_id: int,
    publish_time: int,
    properties: Sequence[tuple[bytes, bytes]],
    key: bytes | None,
    event_time: int,
) -> bytes:
    """Return what stands before the payload of an entry that is one message: the size of its metadata, and those."""
    head = b"".join(
        (
            b"\x0a",
            _VARINTS[len(producer)],
            producer,
            b"\x10",
            _long_varint(sequence_id),
            b"\x18",
            _long_varint(publish_time),
            _properties(b"\x22", properties) if properties else b"",
            b"" if key is None else b"\x32%b%b" % (_VARINTS[len(key)], key),
            b"\x60" + _long_varint(event_time) if event_time else b"",
        )
    )
    return len(head).to_bytes(4) + head


def _properties(tag: bytes, properties: Sequence[tuple[bytes, bytes]]) -> bytes:
    parts: list[bytes] = []
    for name, value in properties:
        pair = b"".join((b"\x0a", _VARINTS[len(name)], name, b"\x12", _VARINTS[len(value)], value))
        parts += (tag, _VARINTS[len(pair)], pair)
    return b"".join(parts)
