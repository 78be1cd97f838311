"""Records of Kafka's format v2 from their parts: their numbers, their headers, and the whole of one.

The layout of a record is told in `record_keys.py`.

Theory of operation. A record has six numbers, nearly all of them small, and the same ones come again and again. Each is
made once and looked up from then on, which is as fast as a dictionary is.
"""

from collections.abc import Sequence
from typing import Final

Header = tuple[bytes, bytes | None]
"""A header's name, which is UTF-8 where clients have written it, and its value."""

NO_HEADERS: Final = b"\x00"
"""The headers of a record that has none, encoded."""

_NULL: Final = b"\x01"
_NO_ATTRIBUTES: Final = b"\x00"
_MOST_KEPT: Final = 1 << 15


class _Varints(dict[int, bytes]):
    """Signed numbers as zigzag varints; the smaller ones are kept."""

    def __missing__(self, number: int) -> bytes:
        zigzag = number << 1 if number >= 0 else (-number << 1) - 1
        encoded = bytearray()
        while zigzag > 0x7F:
            encoded.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        encoded.append(zigzag)
        made = bytes(encoded)
        if -1 <= number < _MOST_KEPT:
            self[number] = made
        return made


VARINTS: Final = _Varints()
"""Each signed number of 64 bits as a varint."""


def sized(data: bytes | None) -> bytes:
    """Return bytes behind their length; for None, the length that says null."""
    return _NULL if data is None else VARINTS[len(data)] + data


def encoded_headers(headers: Sequence[Header]) -> bytes:
    """Return the headers of a record: their count, and each one's name and value."""
    return VARINTS[len(headers)] + without_count(headers)


def without_count(headers: Sequence[Header]) -> bytes:
    """Return headers, encoded, to stand behind their count or behind others."""
    return b"".join([sized(part) for header in headers for part in header])


def record(
    offset_delta: int,
    timestamp_delta_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: bytes = NO_HEADERS,
) -> bytes:
    """Return one record; its headers are encoded already (`encoded_headers`)."""
    numbers = VARINTS
    key_size = _NULL if key is None else numbers[len(key)]
    value_size = _NULL if value is None else numbers[len(value)]
    head = b"".join(
        (_NO_ATTRIBUTES, numbers[timestamp_delta_ms], numbers[offset_delta], key_size, key or b"", value_size)
    )
    value = value or b""
    return b"".join((numbers[len(head) + len(value) + len(headers)], head, value, headers))


_WRAP: Final = 1 << 64
_MOST: Final = 1 << 63


def wrapped(number: int) -> int:
    """Return what is left of the number in 64 bits: where a producer's time is nonsense, readers' sums wrap too."""
    return (number + _MOST) % _WRAP - _MOST
