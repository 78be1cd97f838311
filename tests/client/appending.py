"""Appending record by record, which the sink does by the batch."""

from exacta.client.producer import IdempotentProducer
from exacta.client.single_record import Header, SingleRecord
from exacta.client.transactions import TopicPartition


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
    record = SingleRecord(key, value, headers or [])
    while not writer.extend(partition, timestamp_ms, record):
        pass
