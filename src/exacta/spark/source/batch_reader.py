"""The reader of `spark.read`, which reads topics as they are at one moment.

This module owns Spark's calls for a batch. The offsets are fixed when the batch is planned, so every attempt of a task
reads the same. A table that stands twice in one query is planned twice, as with every source of Spark. If both must be
the same, name the ending offsets, or keep the rows with `cache()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from exacta.spark.clients import client_of
from exacta.spark.error_sentences import explaining
from exacta.spark.options import SourceOptions
from exacta.spark.source import planning
from exacta.spark.source.bounds import ending_positions, starting_positions
from exacta.spark.source.source import RangePartition, range_partitions
from exacta.spark.source.subscription import Subscription

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class ExactaBatchReader(DataSourceReader):  # type: ignore[misc]
    """Reads what topics hold."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self.options = options
        self._schema = schema

    @explaining
    def partitions(self) -> list[InputPartition]:
        """Return the tasks, with the offsets that they read."""
        client = client_of(self.options.cluster)
        subscription = Subscription(self.options)
        partitions = subscription.partitions(client, known=())
        start = starting_positions(client, self.options, partitions)
        end = ending_positions(client, self.options, partitions)
        return range_partitions(self.options, planning.ranges(start, end, {}, subscription.topic_ids))

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the visible rows of a range as Arrow batches, or none if Spark found no partition, and has one task."""
        if not isinstance(partition, RangePartition):
            # That task gets Spark's own partition, of the value None.
            assert partition.value is None
            return
        from exacta.spark.source.reading import read_ranges

        yield from read_ranges(client_of(self.options.cluster), self.options, self._schema, partition.parts)
