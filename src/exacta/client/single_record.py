"""One record, encoded as its batch takes it. The sink encodes whole columns instead (`exacta.spark.arrow`).

The layout of a record is told in `exacta.protocol.kafka.record_keys`.
"""

from collections.abc import Sequence

from exacta.protocol.kafka.schema import Buffer

Header = tuple[str, bytes | None]
"""A header's name and value."""


class SingleRecord:
    """A record on its way into a batch (`record_batch.Records`)."""

    __slots__ = ("_rest", "left")

    def __init__(self, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> None:
        self.left = 1
        rest = bytearray()
        _put(rest, key)
        _put(rest, value)
        _put_number(rest, len(headers))
        for name, content in headers:
            _put(rest, name.encode())
            _put(rest, content)
        self._rest = bytes(rest)
        """The record behind its offset delta."""

    def take(self, first: int, timestamp_delta_ms: int, most_bytes: int) -> tuple[Buffer, int]:
        """Take the record, if it fits or is the first of its batch; return it, and how many records that is."""
        body = bytearray(b"\0")  # attributes
        _put_number(body, timestamp_delta_ms)
        _put_number(body, first)
        body += self._rest
        record = bytearray()
        _put(record, bytes(body))
        if first and len(record) > most_bytes:
            return b"", 0
        self.left = 0
        return bytes(record), 1


def _put(out: bytearray, field: bytes | None) -> None:
    """Append a field with its length in front; -1 stands for none."""
    _put_number(out, -1 if field is None else len(field))
    out += field or b""


def _put_number(out: bytearray, number: int) -> None:
    """Append a zigzag varint of up to 64 bits."""
    rest = (number << 1) ^ (number >> 63)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
