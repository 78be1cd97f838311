"""Appending record by record, which the sink does by the batch."""

from exacta.client.producer import NO_HEADERS, Header, IdempotentProducer
from exacta.client.transactions import TopicPartition


def append(
    writer: IdempotentProducer,
    partition: TopicPartition,
    timestamp_ms: int,
    value: bytes,
    headers: list[Header] = NO_HEADERS,
    *,
    key: bytes | None = None,
) -> None:
    """Append a record; where the batch before it is full, to the next."""
    left = writer.extend(partition, timestamp_ms, iter([(key, value, headers)]))
    if left is not None:
        assert writer.extend(partition, timestamp_ms, iter([left])) is None
