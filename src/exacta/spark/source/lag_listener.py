"""Tell how many offsets queries are behind their topics, from the progress that Spark reports.

This module owns a listener, because a source in Python cannot define metrics of its own (its test fails once PySpark
lets it): `exacta.spark.watch_offsets(spark)` adds it, and each finished micro-batch updates it. Sources of Spark's own
Kafka connector are shown as well, their offsets having the same form.

Offsets are counted, as lag tools count them, so transaction markers are among them. Under `read_committed` the latest
offset is the last stable one, so a source that has read all that can be read is 0 behind. Only finished micro-batches
report. A query that stands still, or falls behind while its batch runs, shows what it showed last. Option
`commit.group.id` shows lag tools the state between batches.

With Spark Connect the listener runs in the client, which the server sends the progress; only queries of that session
are seen there. In classic Spark it runs in the driver and sees those of all sessions of the application that share the
session's streaming query manager.
"""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from exacta.spark.source.planning import from_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

logger = logging.getLogger("exacta.spark")


class Behind(NamedTuple):
    """The offsets by which one source of a query is behind its partitions' ends, as Spark's Kafka metrics say it."""

    partitions: int
    min: int
    max: int
    avg: float
    total: int


class OffsetsBehindLatest(StreamingQueryListener):  # type: ignore[misc]
    """A listener that keeps, and logs, how many offsets the sources of each running query are behind.

    `last` has them by query id, in the order of the query's sources; The entry is None for a source that has no such
    offsets.
    """

    def __init__(self) -> None:
        self.last: Mapping[str, tuple[Behind | None, ...]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Wait for its progress."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Note and log what a micro-batch has left unread."""
        progress = event.progress
        found = tuple(behind(source.endOffset, source.latestOffset) for source in progress.sources)
        self.last = {**self.last, str(progress.id): found}
        for index, source in enumerate(found):
            if source is not None:
                logger.info(
                    "query %s, batch %d, source %d: %d offsets behind latest "
                    "(min %d, max %d, avg %.1f of %d partitions)",
                    progress.name or progress.id,
                    progress.batchId,
                    index,
                    source.total,
                    *source[1:4],
                    source.partitions,
                )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Keep what was noted: an idle query has read all there is."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forget the query."""
        self.last = {query: found for query, found in self.last.items() if query != str(event.id)}


def watch_offsets(spark: SparkSession) -> OffsetsBehindLatest:
    """Add the listener to a session and return it; `spark.streams.removeListener` takes it away again."""
    listener = OffsetsBehindLatest()
    spark.streams.addListener(listener)
    return listener


def behind(end: str | None, latest: str | None) -> Behind | None:
    """Return the difference of two offsets as progress reports show them; None where they are not by partition."""
    try:
        reached, ends = from_json(_parsed(end)), from_json(_parsed(latest))
    except (AttributeError, SyntaxError, TypeError, ValueError):
        return None
    if not ends:
        return None
    # A topic that was created again may end before what was reached.
    gaps = [max(0, offset - reached.get(partition, 0)) for partition, offset in ends.items()]
    return Behind(len(gaps), min(gaps), max(gaps), sum(gaps) / len(gaps), sum(gaps))


def _parsed(shown: str | None) -> Any:
    try:
        return json.loads(shown or "")
    except ValueError:
        # Spark Connect 4.2 shows a dictionary as Python writes it.
        return ast.literal_eval(shown or "")
