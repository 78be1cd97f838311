"""Rows on their way to partitions: which partition each one goes to, and in whose name it is written.

Owns the choice of the partition: the row's own, else by the hash of its key as the Java client does, else one partition
until its batch is full. Begins and ends no transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from exacta.client.producer import NO_HEADERS, Header, IdempotentProducer
from exacta.client.routing import Client
from exacta.client.transactions import Producer, TopicPartition
from exacta.spark.options import SinkOptions
from exacta.spark.partitioner import partitions_of_keys
from exacta.spark.rows import Rows, rows_of
from exacta.spark.sink_errors import SinkError


class RowWriter:
    """Sends rows to their partitions, as one producer. What is not flushed may not have been sent."""

    def __init__(self, client: Client, options: SinkOptions, producer: Producer, *, rotation: int) -> None:
        self._client = client
        self._options = options
        self._partitions: dict[str, list[TopicPartition]] = {}
        self._sticky: dict[str, int] = {}
        self._rotation = rotation
        self._producer = IdempotentProducer(
            client,
            producer,
            batch_size_bytes=options.batch_size_bytes,
            compression=options.compression,
            delivery_timeout_ms=options.delivery_timeout_ms,
        )
        self.rows = 0
        self.flush = self._producer.flush
        self.close = self._producer.close

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that rows were written to."""
        return self._producer.partitions

    def write(self, batch: Any) -> None:
        """Append a pyarrow record batch, row by row."""
        rows = rows_of(batch)
        now_ms = int(time.time() * 1000)
        append = self._producer.append
        keys = rows.keys if rows.keys is not None else [None] * rows.size
        headers = [_headers(row) for row in rows.headers] if rows.headers is not None else [NO_HEADERS] * rows.size
        for target, key, value, header in zip(self._targets(rows), keys, rows.values, headers, strict=True):
            if type(target) is str:
                # Rows without a key stay on one partition until its batch is full: fewer, larger batches.
                if append(self._sticky_partition(target), now_ms, key, value, header):
                    self._sticky[target] = self._sticky.get(target, self._rotation) + 1
            else:
                append(target, now_ms, key, value, header)
        self.rows += rows.size

    def _targets(self, rows: Rows) -> Iterator[Any]:
        """Yield for each row its partition, or only its topic where the writer may choose."""
        if rows.topics is None and rows.partitions is None:
            topic = self._options.topic
            assert topic is not None
            partitions = self._partitions_of(topic)
            if rows.key_array is None:
                yield from (topic for _ in range(rows.size))
                return
            for index in partitions_of_keys(rows.key_array, len(partitions)).tolist():
                yield topic if index < 0 else partitions[index]
            return
        yield from self._targets_by_row(rows)

    def _targets_by_row(self, rows: Rows) -> Iterator[Any]:
        topics = self._topics_by_row(rows)
        indexes = {
            count: partitions_of_keys(rows.key_array, count).tolist() if rows.key_array is not None else None
            for count in {len(self._partitions_of(topic)) for topic in set(topics)}
        }
        for row, topic in enumerate(topics):
            partitions = self._partitions_of(topic)
            explicit = rows.partitions[row] if rows.partitions is not None else None
            if explicit is not None:
                if not 0 <= explicit < len(partitions):
                    raise SinkError(f"a row names partition {explicit} of topic '{topic}', which has {len(partitions)}")
                yield partitions[explicit]
                continue
            hashed = indexes[len(partitions)]
            yield topic if hashed is None or hashed[row] < 0 else partitions[hashed[row]]

    def _topics_by_row(self, rows: Rows) -> list[str]:
        # As in Spark's connector, the option wins over the column.
        if self._options.topic is not None or rows.topics is None:
            assert self._options.topic is not None
            return [self._options.topic] * rows.size
        topics = []
        for topic in rows.topics:
            if topic is None:
                raise SinkError("a row has no topic: its column 'topic' is null, and option 'topic' is not set")
            topics.append(topic)
        return topics

    def _partitions_of(self, topic: str) -> list[TopicPartition]:
        found = self._partitions.get(topic)
        if found is None:
            count = self._client.partitions([topic], create=True)[topic]
            found = self._partitions[topic] = [TopicPartition(topic, index) for index in range(count)]
        return found

    def _sticky_partition(self, topic: str) -> TopicPartition:
        partitions = self._partitions_of(topic)
        return partitions[self._sticky.get(topic, self._rotation) % len(partitions)]


def _headers(row: list[dict[str, Any]] | None) -> list[Header]:
    return [(header["key"], header["value"]) for header in row] if row else NO_HEADERS
