"""A job of two queries that ends in one way or another, with a batch under way; called as a program of its own.

The batch under way has a task that has written its rows and stands still, so that no task has told the driver anything.
"""

import sys
from pathlib import Path

from tests.spark import faults
from tests.spark.lives import wait_until
from tests.spark.queries import reading


def start(rows, bootstrap, sink, directory, name):
    """Start a query to a topic, whose writer comes to faults."""
    return (
        rows.writeStream.format("faulty")
        .queryName(name)
        .option("fault.directory", str(directory))
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(directory / name))
        .start()
    )


def start_and_stand_still(rows, bootstrap, sink, directory):
    """Start a query, and return it when a task of it has written its rows and stands still."""
    faults.arm(directory, faults.MARKER_WRITTEN)
    stuck = start(rows, bootstrap, sink, directory, "stuck")
    wait_until(lambda: faults.struck(directory), "a task has written its rows")
    return stuck


def main(bootstrap, source, sink, place, how):
    """Start a query that stands still in its batch; then end as `how` says."""
    import exacta.spark

    directory = Path(place)
    faults.travel_by_value()
    spark = exacta.spark.session("local[3]", quick_start=True)
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(faults.FaultySource)
    rows = reading(spark, bootstrap, source).select("key", "value")
    start_and_stand_still(rows, bootstrap, sink, directory)
    if how == "another fails":
        broken = rows.selectExpr("key", "string(raise_error('a bad row')) as value")
        start(broken, bootstrap, sink, directory, "broken")
        spark.streams.awaitAnyTermination()
    elif how == "session":
        spark.stop()
    elif how == "exit":
        sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
