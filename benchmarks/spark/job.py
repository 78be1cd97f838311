"""One turn of one side, in a Spark process of its own: `python -m benchmarks.spark.job '{...}'`.

Owns the queries and what is timed of them. Both sides run the same queries with the same session settings; only the
format differs, and how small batches are written. The answer, a list of figures, goes to a file.

Theory of operation. What is timed is Spark's own account of each micro-batch (`triggerExecution` in the progress
report: planning, reading, writing, both checkpoint files). Before it the same query has run over other rows in the same
process, so that neither the virtual machine nor the Python workers are cold; the first batches of a process take
seconds on both sides, and belong to a process that lives for weeks.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from benchmarks.figures import COST, Figure, percentile
from benchmarks.processes import Usage, usage
from exacta.spark import session

MASTER = "local[2]"
DRIVER_MEMORY = "2g"
PROGRESS_KEPT = 1_000

DRIVER_ROWS = 1_000
"""Exacta's option for small batches: up to this many rows are read by the driver."""

BULK_TITLES = ("topic to topic", "source alone")
WARM_UPS = 2
"""Times that a bulk query runs before it is timed."""
BY_TASKS, BY_DRIVER, COLLECTED, BY_NOBODY = "tasks", "driver", "collected", "nobody"
SMALL_TITLES = {
    BY_TASKS: "small batch, by tasks",
    BY_DRIVER: "small batch, by the driver",
    COLLECTED: "small batch, collected only",
    BY_NOBODY: "small batch, read only",
}
"""The case's name in the report, by who writes or by what is done instead."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The job that the parent asks for. Its topics `warm_up` and `input` hold rows, and `output` is empty."""

    side: str
    writer: str = BY_TASKS  # who writes small batches
    bootstrap: str
    broker_pid: int | None
    jars: list[str]
    folder: str
    warm_up: str
    input: str
    output: str
    rows_per_batch: int
    rows: int
    suffix: str = ""  # of the cases' names: the size of the rows; none: small batches
    answer: str


def main() -> None:
    """Run a turn and write its figures."""
    turn = msgspec.json.decode(sys.argv[1], type=Turn)
    spark = session(
        MASTER,
        app="bench-spark",
        settings={
            "spark.driver.memory": DRIVER_MEMORY,
            "spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_KEPT),
            "spark.sql.warehouse.dir": f"{turn.folder}/warehouse",
            "spark.ui.showConsoleProgress": "false",
            **({"spark.jars": ",".join(turn.jars)} if turn.jars else {}),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    queries = Queries(spark, turn)
    figures = queries.bulk() if turn.suffix else queries.small()
    Path(turn.answer).write_bytes(msgspec.json.encode(figures))
    spark.stop()


class Queries:
    """The queries of a turn."""

    def __init__(self, spark: Any, turn: Turn) -> None:
        self._spark = spark
        self._turn = turn
        self._spark_process = psutil.Process()
        self._broker = psutil.Process(turn.broker_pid) if turn.broker_pid is not None else None
        self._checkpoints = 0

    def bulk(self) -> list[Figure]:
        """Read and write large batches; then only read."""
        figures: list[Figure] = []
        for title, write in zip(BULK_TITLES, (self._to_topic, self._to_nothing), strict=True):
            case = f"{title}, {self._turn.suffix}"
            for _ in range(WARM_UPS):
                self._run(self._turn.warm_up, write)
            before = self._usage()
            progress = self._run(self._turn.input, write)
            after = self._usage()
            rows = sum(int(each["numInputRows"]) for each in progress)
            if rows != self._turn.rows:
                raise ValueError(f"{case}: {self._turn.rows} rows were to be read, Spark says {rows}")
            durations_s = [each["durationMs"]["triggerExecution"] / 1000 for each in progress]
            figures.append(Figure(case=case, name="rows/s", value=rows / sum(durations_s)))
            figures.append(Figure(case=case, name="s a batch, median", value=statistics.median(durations_s)))
            for name, earlier, later in zip(("Spark", "broker"), before, after, strict=True):
                if earlier is not None and later is not None:
                    cpu_us = (later.cpu_s - earlier.cpu_s) / rows * 1e6
                    figures.append(Figure(case=case, name=f"{name} CPU µs a row", value=cpu_us, kind=COST))
        return figures

    def small(self) -> list[Figure]:
        """Read and write small batches, one after the other."""
        case = SMALL_TITLES[self._turn.writer]
        writers = {
            BY_TASKS: self._to_topic,
            BY_DRIVER: self._by_driver,
            COLLECTED: self._to_driver,
            BY_NOBODY: self._to_nothing,
        }
        write = writers[self._turn.writer]
        self._run(self._turn.warm_up, write)
        progress = self._run(self._turn.input, write)
        milliseconds = sorted(float(each["durationMs"]["triggerExecution"]) for each in progress)
        steps = {name for each in progress for name in each["durationMs"]} - {"triggerExecution"}
        figures = [
            Figure(case=case, name="p50 ms", value=percentile(milliseconds, 50)),
            Figure(case=case, name="p95 ms", value=percentile(milliseconds, 95)),
        ]
        return figures + [
            Figure(
                case=case,
                name=f"{step} ms",
                value=statistics.median(each["durationMs"].get(step, 0) for each in progress),
                kind=COST,
            )
            for step in sorted(steps)
        ]

    # --- the queries -------------------------------------------------------------------------------------------------

    def _run(self, topic: str, write: Callable[[Any], Any]) -> list[dict[str, Any]]:
        """Read a topic to its end; return the progress reports of the batches that had rows."""
        reader = self._spark.readStream.format(self._turn.side)
        if self._turn.side == "exacta":
            # Spark tells its own sources which columns a query needs, and none in Python.
            reader = reader.schema("key binary, value binary")
            if not self._turn.suffix:
                reader = reader.option("driver.rows", DRIVER_ROWS)
        rows = (
            reader.option("kafka.bootstrap.servers", self._turn.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self._turn.rows_per_batch)
            .load()
            .select("key", "value")
        )
        self._checkpoints += 1
        location = f"{self._turn.folder}/checkpoint-{self._checkpoints}"
        writer = write(rows).option("checkpointLocation", location)
        if self._turn.suffix:
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
        else:
            # As a query that goes on for ever runs; AvailableNow would ask the broker for less.
            query = writer.trigger(processingTime="0 seconds").start()
            query.processAllAvailable()
            query.stop()
        return [json.loads(each.json) for each in query.recentProgress if each.numInputRows]

    def _to_topic(self, rows: Any) -> Any:
        writer = _upper(rows).writeStream.format(self._turn.side)
        return writer.option("kafka.bootstrap.servers", self._turn.bootstrap).option("topic", self._turn.output)

    def _to_nothing(self, rows: Any) -> Any:
        return rows.writeStream.format("noop")

    def _by_driver(self, rows: Any) -> Any:
        from exacta.spark import write

        options = {"kafka.bootstrap.servers": self._turn.bootstrap, "topic": self._turn.output}

        def by_driver(batch: Any, batch_id: int) -> None:
            written = write(batch, batch_id, options)
            if not written.alone:
                raise ValueError(f"the driver was to write batch {batch_id} alone: {written}")

        return _upper(rows).writeStream.foreachBatch(by_driver)

    def _to_driver(self, rows: Any) -> Any:
        """Send the driver the rows, and leave it at that: what `_by_driver` would take if it wrote in no time."""
        return _upper(rows).writeStream.foreachBatch(lambda batch, batch_id: batch.toArrow())

    def _usage(self) -> tuple[Usage | None, Usage | None]:
        return usage(self._spark_process), usage(self._broker) if self._broker is not None else None


def _upper(rows: Any) -> Any:
    return rows.selectExpr("key", "upper(cast(value as string)) as value")


if __name__ == "__main__":
    main()
