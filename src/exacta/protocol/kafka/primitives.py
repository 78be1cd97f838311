"""The functions that generated codecs call, and the errors that the codec raises.

Owns the parts of Kafka's wire format that are too rare or too long to be generated in line: variable-length integers
above one byte, tag sections, refusals. Nothing here reads further than the buffer it is given.

It reads bytes before a login.
"""

import struct
from typing import Any, Never

from exacta.protocol.kafka.schema import Buffer

MAX_STRING_BYTES = 0x7FFF
"""The longest STRING in any version, in bytes of UTF-8."""

MAX_UVARINT_BYTES = 5
"""Unsigned varints hold 32 bits, seven to a byte."""


class DecodeError(ValueError):
    """Bytes that are not what they should be; the only exception that any input can raise."""


class UnsupportedVersion(DecodeError):
    """A request whose API key or version the codec does not know."""

    def __init__(self, api_key: int, api_version: int) -> None:
        super().__init__(f"API key {api_key} in version {api_version} is not known to the codec")
        self.api_key = api_key
        self.api_version = api_version


class TooManyElements(DecodeError):
    """A message whose arrays have more elements, in all, than its reader wants to hear of."""

    def __init__(self) -> None:
        super().__init__("its arrays have more elements in all than one request may have")


class EncodeError(ValueError):
    """A message that cannot be put on the wire: a value too large, or null where the version has no null."""


DECODE_FAULTS = (IndexError, struct.error, UnicodeDecodeError)
"""Exceptions that generated decoders raise by themselves on truncated or malformed input."""

ENCODE_FAULTS = (struct.error, AttributeError, TypeError, UnicodeEncodeError)
"""Exceptions that generated encoders raise by themselves on values that do not fit."""


def bad_length(field: str, prefix: int, remaining: int) -> Never:
    """Refuse a length before anything is allocated by it; `prefix` is one more than the length, and 0 for null."""
    if prefix <= 0:
        raise DecodeError(f"{field}: null, which this version does not allow")
    raise DecodeError(f"{field}: length {prefix - 1} exceeds the {remaining} bytes received")


def too_many_elements() -> Never:
    """Refuse arrays before the one that is too much is read."""
    raise TooManyElements


def bad_tag(field: str) -> Never:
    """Refuse a tagged field whose content is shorter or longer than it says."""
    raise DecodeError(f"{field}: size of the tagged field and its content disagree")


def read_uvarint(buffer: Any, position: int) -> tuple[int, int]:
    """Read an unsigned varint; return it and the position after it."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    byte = buffer[position + 1]
    if byte < 0x80:  # the length of anything up to 16 KB
        return value | byte << 7, position + 2
    value |= (byte & 0x7F) << 7
    byte = buffer[position + 2]
    if byte < 0x80:  # up to 2 MB
        return value | byte << 14, position + 3
    return _read_long_uvarint(buffer, position)


def _read_long_uvarint(buffer: Any, position: int) -> tuple[int, int]:
    value = 0
    for index in range(MAX_UVARINT_BYTES):
        byte = buffer[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    raise DecodeError(f"unsigned varint of more than {MAX_UVARINT_BYTES} bytes")


def read_string_length(buffer: Any, position: int) -> tuple[int, int]:
    """Read the length prefix of a compact string, which is one more than the length."""
    length, position = read_uvarint(buffer, position)
    if length > MAX_STRING_BYTES + 1:
        raise DecodeError(f"string of {length - 1} bytes; {MAX_STRING_BYTES} are allowed")
    return length, position


def skip_tags(buffer: Any, position: int, end: int, count: int) -> int:
    """Pass over `count` tagged fields, none of which this version knows; return the position after them."""
    for _ in range(count):  # bounded: each turn consumes at least two bytes, or leaves the buffer
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > end:
            raise DecodeError("tagged field exceeds the bytes received")
    return position


def uvarint(value: int) -> bytes:
    """Return `value` as an unsigned varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def string_length(length: int) -> bytes:
    """Return the length prefix of a compact string; `length` is one more than its bytes."""
    if length > MAX_STRING_BYTES + 1:
        raise EncodeError(f"string of {length - 1} bytes; {MAX_STRING_BYTES} are allowed")
    return uvarint(length)


def tagged_field(tag: int, pieces: list[bytes]) -> bytes:
    """Return one tagged field: tag, size, content."""
    content = b"".join(pieces)
    return uvarint(tag) + uvarint(len(content)) + content


def record_buffers(records: Any) -> tuple[int, list[Buffer]]:
    """Return the size of record batches in bytes, and the buffers that hold them, as they are."""
    if isinstance(records, (memoryview, bytes, bytearray)):
        return len(records), [records]
    return sum(map(len, records)), list(records)
