"""A sink as Kafka sinks for Spark are today: it writes, and a row that is written again is there twice.

This module owns the format `at-least-once`, against which the demo shows what Exacta's sink is for. The format is no
straw man: its producer is idempotent and waits for every acknowledgement, as in Spark's own connector. But an
idempotent producer only recognises its own repetitions, and a task that runs again is another producer; and what a task
wrote is there for all readers at once, whether its micro-batch ends or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

FORMAT = "at-least-once"
_FLUSH_TIMEOUT_S = 60.0


class NotAcknowledged(Exception):
    """Some rows of a task were not acknowledged in time; the task fails and Spark runs it again."""


# A dataclass, since a class of PySpark cannot be a `Struct` as well.
@dataclass
class RowsWritten(WriterCommitMessage):  # type: ignore[misc]  # pyspark is followed as Any
    """Tell the driver how many rows a task wrote."""

    rows: int


class AtLeastOnceWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Produce a task's rows and wait until all are acknowledged; nothing is committed and nothing taken back."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic

    def write(self, iterator: Iterator[RecordBatch]) -> RowsWritten:
        """Produce all rows of one task. Raises NotAcknowledged."""
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "partitioner": "murmur2_random",
            }
        )
        failures = 0
        rows = 0

        def delivered(error: object, _: object) -> None:
            nonlocal failures
            failures += error is not None

        for batch in iterator:
            for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
                while True:
                    try:
                        producer.produce(self._topic, key=key, value=value, on_delivery=delivered)
                        break
                    except BufferError:
                        producer.poll(0.1)
                rows += 1
            producer.poll(0)
        left = producer.flush(_FLUSH_TIMEOUT_S)
        if left or failures:
            raise NotAcknowledged(f"{left + failures} of {rows} rows were not acknowledged")
        return RowsWritten(rows=rows)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: every row can be read already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: what is written cannot be taken back."""


class AtLeastOnceDataSource(DataSource):  # type: ignore[misc]
    """Write streaming rows (`key`, `value`) to the topic of option `topic`, without transactions."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> AtLeastOnceWriter:
        """Return the writer for one micro-batch."""
        return AtLeastOnceWriter(self.options["kafka.bootstrap.servers"], self.options["topic"])
