"""Appending record by record, which the sink does by the batch."""

from aiokafka.record.util import encode_varint

from exacta.client.producer import IdempotentProducer
from exacta.client.transactions import TopicPartition

Header = tuple[str, bytes | None]


class OneRecord:
    """A record, encoded as its batch takes it."""

    def __init__(self, key: bytes | None, value: bytes | None, headers: list[Header]) -> None:
        self.left = 1
        self._fields = [key, value]
        self._headers = headers

    def take(self, first: int, timestamp_delta_ms: int, most_bytes: int) -> tuple[bytes, int]:
        body = bytearray(b"\0")
        encode_varint(timestamp_delta_ms, body.append)
        encode_varint(first, body.append)
        for field in self._fields:
            put(body, field)
        encode_varint(len(self._headers), body.append)
        for name, value in self._headers:
            put(body, name.encode())
            put(body, value)
        record = bytearray()
        put(record, bytes(body))
        if first and len(record) > most_bytes:
            return b"", 0
        self.left = 0
        return bytes(record), 1


def put(out: bytearray, field: bytes | None) -> None:
    encode_varint(-1 if field is None else len(field), out.append)
    out.extend(field or b"")


def append(
    writer: IdempotentProducer,
    partition: TopicPartition,
    timestamp_ms: int,
    value: bytes,
    headers: list[Header] | None = None,
    *,
    key: bytes | None = None,
) -> None:
    """Append a record; where the batch before it is full, to the next."""
    record = OneRecord(key, value, headers or [])
    while not writer.extend(partition, timestamp_ms, record):
        pass
