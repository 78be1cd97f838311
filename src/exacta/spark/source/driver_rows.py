"""Let the driver read a small batch: its rows go to Spark with the plan, and no task in Python reads them.

This module owns the way to say that to Spark, and the choice of small batches.

Theory of operation. Spark has one way to take rows along with a plan: from its own wrapper around a "simple" stream
reader. After `partitions` it asks whether the reader is such a wrapper, and if so for the rows (`getCache`), which the
driver's block manager then keeps for the one task of the batch. A wrapper would answer less than a reader of ours to
Spark's other questions (how far the topics reach, limits, AvailableNow). So a reader is a wrapper only from the plan of
a small batch until its rows are fetched. If the rows are lost with the driver's block, the task reads its partition as
any other (`ExactaStreamReader.read`), so the rows need not be safe.

No documentation of Spark promises this. `tests/spark/test_reading.py` fails when it changes, in the oldest release and
in the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from exacta.client.routing import Client
from exacta.spark.options import SourceOptions
from exacta.spark.source.planning import Range

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_MOST_BYTES = 1024 * 1024
"""Rows of more bytes than this are left to tasks."""


class SmallBatches:
    """Reads what is small enough; after rows that came to too many bytes, fewer are tried."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._tried_rows = most_rows

    def rows_of(
        self, client: Client, options: SourceOptions, schema: Any, ranges: Sequence[Range]
    ) -> list[RecordBatch] | None:
        """Return the rows of `ranges`; None where tasks shall read them."""
        offsets = sum(part.end - part.start for part in ranges)
        if not 0 < offsets <= self._tried_rows:
            return None
        from exacta.spark.source.reading import read_ranges

        found: list[RecordBatch] = []
        size = 0
        for batch in read_ranges(client, options, schema, ranges):
            found.append(batch)
            size += batch.nbytes
            if size > _MOST_BYTES:
                self._tried_rows = offsets // 2
                return None
        if size < _MOST_BYTES // 4:
            self._tried_rows = min(self._most_rows, self._tried_rows * 2)
        return found
