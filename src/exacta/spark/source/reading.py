"""Fetch, filter and decode ranges of partitions as Arrow batches. The module runs in the tasks.

This module owns the answer to a range of which a part is gone. `decoding.py` owns the decoding.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from exacta.client.errors import DeadlineExceeded
from exacta.client.fetcher import Fetched, OffsetOutOfRange, TopicReplaced, fetch_range
from exacta.client.routing import Client, UnknownTopic
from exacta.client.topics import EARLIEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.records import next_offset
from exacta.spark.arrow.decoding import Columns, Sheet
from exacta.spark.arrow.rows import to_arrow
from exacta.spark.error_sentences import explained
from exacta.spark.options import SourceOptions
from exacta.spark.source.planning import REMEDY, DataLost, Range, id_from_text

_GONE_AFTER_MS = 10_000.0
"""After this time without progress, the reader asks whether the topic is still there."""
_STUCK_AFTER_MS = 120_000.0
"""If the topic is still there, the reader waits for this much longer."""


def read_ranges(client: Client, options: SourceOptions, schema: Any, parts: Sequence[Range]) -> Iterator[Any]:
    """Yield the visible records of `parts` as pyarrow record batches of Spark's `schema`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    wanted = {name.lower() for name in arrow_schema.names}
    with explained(options.bootstrap):
        for part in parts:
            partition = TopicPartition(part.topic, part.partition)
            for fetched in _fetched(client, options, part):
                for columns in _decoded(fetched, options, str(partition), wanted):
                    batch = to_arrow(arrow_schema, partition, columns, part.start, part.end)
                    if batch.num_rows:
                        yield batch


def _decoded(fetched: Fetched, options: SourceOptions, name: str, wanted: Collection[str]) -> Iterator[Columns]:
    """Yield the visible records of a fetch, in as few pieces as they can be decoded in."""
    sheet = Sheet(name)
    for header, raw in visible_batches(fetched.records, fetched.aborted, committed_only=options.committed_only):
        if not sheet.add(fetched.records, header, raw):
            yield sheet.decode(wanted)
            sheet = Sheet(name)
            sheet.add(fetched.records, header, raw)
    if sheet.rows:
        yield sheet.decode(wanted)


def _fetched(client: Client, options: SourceOptions, part: Range) -> Iterator[Fetched]:
    """Yield what there is of a range; if a part of it is gone, raise `DataLost` or go on behind it, as asked."""
    partition = TopicPartition(part.topic, part.partition)
    position, end = part.start, part.end
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
                topic_id=id_from_text(part.topic_id),
            ):
                yield fetched
                position = next_offset(fetched.records, position)
            return
        except OffsetOutOfRange as error:
            first = list_offsets(client, [partition], EARLIEST)[partition]
            if options.fail_on_data_loss:
                raise DataLost(
                    f"offset {error.offset} of {partition} is not there, the first is {first} (retention?); {REMEDY}"
                ) from error
            if first <= position:
                return  # the topic was created again and has not come that far
            position = first
        except TopicReplaced:
            if options.fail_on_data_loss:
                raise DataLost(
                    f"topic '{partition.topic}' was deleted and created again while offsets {position} to {end} of its "
                    f"partition {partition.partition} were still to be read; {REMEDY}"
                ) from None
            return
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
