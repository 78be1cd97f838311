"""Send rows on to partitions: choose each row's partition, and the producer that writes it.

This module owns the choice of the partition: the row's own, else by the hash of its key as the Java client does, else
one partition until its batch is full. The module begins and ends no transaction.
"""

import time
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from exacta.client.producer import IdempotentProducer
from exacta.client.routing import Client
from exacta.client.transactions import Producer, TopicPartition
from exacta.spark.arrow.encoding import Header, RecordColumns
from exacta.spark.arrow.partitioner import partitions_of_keys
from exacta.spark.arrow.rows import Rows, rows_of
from exacta.spark.options import SinkOptions
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.written_topics import partitions_of


class RowWriter:
    """Sends rows to their partitions, as one producer. Records that are not flushed may not have been sent."""

    def __init__(
        self,
        client: Client,
        options: SinkOptions,
        producer: Producer,
        *,
        rotation: int,
        taken: Collection[TopicPartition] = (),
    ) -> None:
        self._client = client
        self._options = options
        self._partitions: dict[str, list[TopicPartition]] = {}
        self._sticky: dict[str, int] = {}
        self._rotation = rotation
        self._taken = taken
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
        """Return the partitions that rows were written to."""
        return self._producer.partitions

    def write(self, batch: Any) -> None:
        """Append a pyarrow record batch. Rows for one partition keep their order."""
        rows = rows_of(batch)
        if rows.topics is None and rows.partitions is None:
            self._write_by_key(rows)
        else:
            self._write_by_row(rows)
        self.rows += rows.size

    def _write_by_key(self, rows: Rows) -> None:
        """Write rows of the one topic that the option names."""
        topic = self._options.topic
        assert topic is not None
        if rows.keys is None or rows.keys.null_count == rows.size:
            self._write_to(topic, rows)
            return
        partitions = self._partitions_of(topic)
        for index, at in _grouped(partitions_of_keys(rows.keys, len(partitions))):
            self._write_to(topic if index < 0 else partitions[index], rows, at)

    def _write_by_row(self, rows: Rows) -> None:
        """Write rows that name their topics or partitions."""
        groups: dict[str | TopicPartition, list[int]] = {}
        for row, target in enumerate(self._targets(rows)):
            groups.setdefault(target, []).append(row)
        for target, at in groups.items():
            self._write_to(target, rows, at)

    def _write_to(self, target: str | TopicPartition, rows: Rows, at: Any = None) -> None:
        """Append the rows `at` these indexes (without: all rows) to a partition, or to the next ones of a topic.

        The next one stays the same until its batch is full, so that batches are fewer and larger.
        """
        now_ms = int(time.time() * 1000)
        records = self._records(rows, at)
        while True:
            partition = self._sticky_partition(target) if isinstance(target, str) else target
            if partition in self._taken:
                raise SinkError(
                    f"partition {partition.partition} of topic '{partition.topic}' is already written to in this "
                    "batch's transaction, by another task or by this one before its stage was run again: with "
                    "'transaction.scope' batch only one may, once, so the batch is given up; start the query again, "
                    "and see exacta.spark.one_task_per_partition(df, ...)"
                )
            if self._producer.extend(partition, now_ms, records):
                return
            if isinstance(target, str):
                self._sticky[target] = self._sticky.get(target, self._rotation) + 1

    def _records(self, rows: Rows, at: Any) -> RecordColumns:
        keys, values, headers = rows.keys, rows.values, rows.headers
        if at is not None:
            keys, values = None if keys is None else keys.take(at), values.take(at)
            headers = None if headers is None else [headers[row] for row in at]
        checked = None if headers is None else [*map(_headers, headers)]
        return RecordColumns(keys, values, checked, most_batch_bytes=self._options.batch_size_bytes)

    def _targets(self, rows: Rows) -> Iterator[str | TopicPartition]:
        """Yield for each row its partition, or only its topic where the writer may choose."""
        topics = self._topics_by_row(rows)
        indexes = {
            count: partitions_of_keys(rows.keys, count).tolist() if rows.keys is not None else None
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
            count = partitions_of(self._client, topic)
            found = self._partitions[topic] = [TopicPartition(topic, index) for index in range(count)]
        return found

    def _sticky_partition(self, topic: str) -> TopicPartition:
        partitions = self._partitions_of(topic)
        return partitions[self._sticky.get(topic, self._rotation) % len(partitions)]


def _grouped(partitions: Any) -> Iterator[tuple[int, Any]]:
    """Yield each number of an array with the indexes where it stands, in their order."""
    order = np.argsort(partitions, kind="stable")
    ordered = partitions[order]
    for at in np.split(order, np.flatnonzero(np.diff(ordered)) + 1):
        yield int(partitions[at[0]]), at


def _headers(row: list[dict[str, Any]] | None) -> list[Header]:
    if not row:
        return []
    if any(header is None or header["key"] is None for header in row):
        raise SinkError(
            "a row has a header without a key: neither an entry of column 'headers' nor its key may be null"
        )
    return [(header["key"], header["value"]) for header in row]
