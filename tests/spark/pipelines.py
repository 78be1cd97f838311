"""One life of a query, in a process of its own: `python -m tests.spark.pipelines DIRECTORY MASTER [SETTING=VALUE ...]`.

It starts Spark, warms Python's workers up and says so by a file `ready` in its directory; then it waits on its
standard input for a line that names the job (the fields of `Job`), so a next life can stand by while this one lasts. A
query that fails is started again from its checkpoint, as a supervisor would, and what it failed with is noted in
`failures`. The life ends when its input does, or when the query has written all that there is and was asked for no
more.
"""

import json
import os
import sys
import threading
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.spark import faults, work_queue

SPARKS_OWN = "kafka"
"""Spark's own sink."""
LOOK_EVERY_S = 0.05


class Job(Struct, frozen=True, kw_only=True):
    """A query that copies topic `source` to topic `sink`."""

    bootstrap: str
    source: str
    sink: str
    checkpoint: str
    faults: str  # the directory by which faults are armed
    limit: int  # about this many rows in a batch
    tasks: int = 2
    sink_format: str = "faulty"
    options: dict[str, str] = {}  # of the writer
    connection: dict[str, str] = {}  # of reader and writer, over `bootstrap`
    work_queue: tuple[str, str] | None = None  # the URL and the topic of one that the batches consume, too
    available_now: bool = False
    restarts: bool = True

    def line(self) -> bytes:
        """Return the line that orders this job."""
        return json.dumps(msgspec.structs.asdict(self)).encode() + b"\n"


def start_session(master, settings):
    """Start a Spark session that knows all sinks."""
    from exacta.spark import session

    faults.travel_by_value()
    own = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "tests.spark.daemon",
        # Files without checksums beside them: a crash between two renames cannot part a file from its checksum.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }
    spark = session(master, quick_start=True, settings={**own, **settings})
    spark.dataSource.register(faults.FaultySource)
    return spark


def warm_up(spark):
    """Let the daemon of Python's workers start, and Spark load what its first job needs."""
    spark.range(0, 4, 1, 4).mapInArrow(lambda batches: batches, "id long").write.format("noop").mode("overwrite").save()


def start_query(spark, job):
    """Start the job's query."""
    if job.work_queue is not None:
        return work_queue.start_query(spark, job)
    watched = {} if job.sink_format == SPARKS_OWN else {"fault.directory": job.faults}
    rows = (
        spark.readStream.format("faulty" if watched else "exacta")
        .options(**watched)
        .options(**{"kafka.bootstrap.servers": job.bootstrap, **job.connection})
        .option("subscribe", job.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", job.limit)
        .load()
    )
    # Which task gets a row depends on chance, so a replay slices the batch differently.
    rows = rows.repartition(job.tasks).select("key", "value")
    options = {"kafka.bootstrap.servers": job.bootstrap, **job.connection}
    options |= {"topic": job.sink, "checkpointLocation": job.checkpoint}
    if not watched:
        # It comes to no point of the protocol; what comes before it in the same task does.
        directory = job.faults
        rows = rows.mapInArrow(lambda batches: faults.halved(batches, directory), rows.schema)
    else:
        # Many requests for few rows.
        options |= {**watched, "kafka.batch.size": "512"}
    writer = rows.writeStream.format(job.sink_format).options(**options, **job.options)
    return (writer.trigger(availableNow=True) if job.available_now else writer).start()


def main(directory, master, settings):
    """Stand by, then live."""
    spark = start_session(master, settings)
    warm_up(spark)
    (directory / "ready").touch()
    order = sys.stdin.readline()
    if not order:
        return
    job = Job(**json.loads(order))
    asked_to_end = threading.Event()

    def wait_for_the_end():
        sys.stdin.read()
        asked_to_end.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    while not asked_to_end.is_set():
        query = start_query(spark, job)
        try:
            while not asked_to_end.is_set():
                if query.awaitTermination(LOOK_EVERY_S):
                    return
            query.stop()
        except Exception as error:  # noqa: BLE001 - whatever a query fails with is noted, and judged elsewhere
            with (directory / "failures").open("a") as file:
                file.write(json.dumps(str(error)) + "\n")
            if not job.restarts:
                return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], dict(argument.split("=", 1) for argument in sys.argv[3:]))
    # What Spark leaves running must not hold the end up.
    sys.stdout.flush()
    os._exit(0)
