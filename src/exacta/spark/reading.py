"""A range of a partition as Arrow batches: fetched, filtered, decoded. Runs in the tasks.

Owns the decoding of records, by aiokafka's native reader, and what becomes of a range of which a part is gone. Every
batch's checksum is verified first: what a disk or a network did to it must not become a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch

from exacta.client.committed import next_offset, visible_batches
from exacta.client.errors import ClientError, DeadlineExceeded
from exacta.client.fetcher import Fetched, OffsetOutOfRange, fetch_range
from exacta.client.routing import Client, UnknownTopic
from exacta.client.topics import EARLIEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.spark.options import SourceOptions
from exacta.spark.planning import REMEDY, DataLost, Range
from exacta.spark.rows import to_arrow

#: Rows of one Arrow batch: larger ones gained nothing.
_ROWS_PER_BATCH = 10_000

#: Without progress for this long it is asked whether the topic is still there, ...
_GONE_AFTER_MS = 10_000.0
#: ... and if it is, this much longer is waited.
_STUCK_AFTER_MS = 120_000.0


class CorruptRecords(ClientError):
    """A record batch does not match its checksum, or is of a form that this reader does not know."""


def read_range(client: Client, options: SourceOptions, schema: Any, part: Range) -> Iterator[Any]:
    """Yield the visible records of `part` as pyarrow record batches of Spark's `schema`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    partition = TopicPartition(part.topic, part.partition)
    gathered = _Gathered(include_headers=options.include_headers)
    for fetched in _fetched(client, options, partition, part.start, part.end):
        for header, raw in visible_batches(fetched.records, fetched.aborted, committed_only=options.committed_only):
            if header.magic != 2:
                raise CorruptRecords(
                    f"{part.topic}-{part.partition} holds records of the outdated format {header.magic}"
                )
            batch = DefaultRecordBatch(bytes(raw))
            if not batch.validate_crc():
                raise CorruptRecords(
                    f"the record batch at offset {header.base_offset} of {part.topic}-{part.partition} does not match "
                    "its checksum"
                )
            if gathered.timestamp_type != batch.timestamp_type and gathered.offsets:
                yield from to_arrow(arrow_schema, partition, gathered.take(), timestamp_type=gathered.timestamp_type)
            gathered.timestamp_type = batch.timestamp_type
            gathered.add(batch, part.start, part.end)
            if len(gathered.offsets) >= _ROWS_PER_BATCH:
                yield from to_arrow(arrow_schema, partition, gathered.take(), timestamp_type=gathered.timestamp_type)
    yield from to_arrow(arrow_schema, partition, gathered.take(), timestamp_type=gathered.timestamp_type)


def _fetched(
    client: Client, options: SourceOptions, partition: TopicPartition, start: int, end: int
) -> Iterator[Fetched]:
    """Yield what there is of a range; where a part of it is gone, raise `DataLost` or go on behind it, as asked."""
    position = start
    patience_ms = _GONE_AFTER_MS
    while position < end:
        try:
            for fetched in fetch_range(
                client,
                partition,
                position,
                end,
                isolation_level=READ_COMMITTED if options.committed_only else READ_UNCOMMITTED,
                max_bytes=options.fetch_bytes,
                timeout_ms=patience_ms,
            ):
                yield fetched
                position = next_offset(fetched.records, position)
            return
        except OffsetOutOfRange as error:
            first = list_offsets(client, [partition], EARLIEST)[partition]
            if options.fail_on_data_loss:
                raise DataLost(
                    f"offset {error.offset} of {partition.topic}-{partition.partition} is not there, "
                    f"the first is {first} (retention?); {REMEDY}"
                ) from error
            if first <= position:
                return  # the topic was made anew and has not come that far
            position = first
        except DeadlineExceeded:
            if patience_ms == _STUCK_AFTER_MS:
                raise
            if not _is_gone(client, partition):
                patience_ms = _STUCK_AFTER_MS
                continue
            if options.fail_on_data_loss:
                raise DataLost(
                    f"topic '{partition.topic}' is gone, of which offsets {position} to {end} were still to be read; "
                    f"{REMEDY}"
                ) from None
            return


def _is_gone(client: Client, partition: TopicPartition) -> bool:
    try:
        return client.partitions([partition.topic])[partition.topic] <= partition.partition
    except UnknownTopic:
        return True


class _Gathered:
    """Decoded records by column, until they make a batch."""

    def __init__(self, *, include_headers: bool) -> None:
        self._include_headers = include_headers
        self.timestamp_type = 0
        self.take()

    def take(self) -> tuple[list[Any], ...]:
        """Return what is gathered and begin anew."""
        columns: tuple[list[Any], ...] = ()
        if hasattr(self, "offsets"):
            columns = (self.keys, self.values, self.offsets, self.timestamps, self.headers)
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.offsets: list[int] = []
        self.timestamps: list[int] = []
        self.headers: list[Any] = []
        return columns

    def add(self, batch: Any, start: int, end: int) -> None:
        """Decode a record batch, leaving out what lies outside [start, end)."""
        records = list(batch)
        if records and (records[0].offset < start or records[-1].offset >= end):
            records = [record for record in records if start <= record.offset < end]
        self.keys += [record.key for record in records]
        self.values += [record.value for record in records]
        self.offsets += [record.offset for record in records]
        self.timestamps += [record.timestamp for record in records]
        if self._include_headers:
            self.headers += [record.headers for record in records]
