"""The demo's pipeline: PySpark, in a process of its own, which the demo starts, kills and starts again.

This module owns both streaming queries and the settings of their Spark session. It does not know that it will be
killed, and keeps nothing between runs but Spark's two checkpoints.

Theory of operation: query (a), *enriched*, joins each flight with three static tables that every task holds whole, so
nothing is shuffled and a key's flights stay in the order in which their input partition has them. Query (b), *delays*,
counts by airport and hour of scheduled departure, and gives out an hour once the watermark has passed it: once, never
corrected. The watermark's delay lies far above the input's disorder (a day), because two partitions may also be read at
unequal speed. The demo sends a closing event, far in the future, once all flights have been read; it lets the last hour
out. It passes through the aggregation like a flight (a filter before it would be moved below the watermark, and then it
would move nothing) and its own hour never closes.

The process ends cleanly when its standard input does; so it also ends when the demo dies.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from exacta.demo.pipeline_names import DELAYS_QUERY, ENRICHED_QUERY, WATERMARK_DAYS
from exacta.demo.plain_sink import AtLeastOnceDataSource
from exacta.demo.records import LATE_FROM_MINUTES
from exacta.spark import session as exacta_session

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

# Two tasks at a time; a task may fail three times before its query does.
MASTER = "local[2,4]"
_LOOK_EVERY_S = 0.5
_WORKER_TOO_SLOW = "Python worker failed to connect back"
"""Spark gives the Python worker that plans batches 10 s to start, which no setting changes (`PythonWorkerFactory`)."""
_WORKER_WAITS_FOR = "300s"
"""The time for which the demo itself waits for progress; Spark's own 15 s pass on an overloaded machine."""

FLIGHT_SCHEMA = (
    "flight_id INT, scheduled STRING, carrier STRING, flight INT, origin STRING, dest STRING, distance INT, "
    "tailnum STRING, dep_delay INT, arr_delay INT, air_time INT"
)
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss'Z'"


def start_session(scratch: Path) -> SparkSession:
    """Start a Spark session for two cores that leaves nothing outside of `scratch`, and knows both sinks."""
    spark = exacta_session(
        MASTER,
        app="exacta demo",
        settings={
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.python.authenticate.socketTimeout": _WORKER_WAITS_FOR,
            # Files without checksums beside them: a crash between two renames cannot part a file from its checksum.
            "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        },
    )
    spark.dataSource.register(AtLeastOnceDataSource)
    return spark


def parsed(messages: DataFrame) -> DataFrame:
    """Turn messages (`key`, `value` as bytes) into columns of flights, keeping the key."""
    flight = F.from_json(F.col("value").cast("string"), FLIGHT_SCHEMA)
    return messages.select("key", flight.alias("f")).select("key", "f.*")


def enriched_flights(messages: DataFrame, directory: Path) -> DataFrame:
    """Output (a): each flight with its airline, its airports and the weather at its origin; no shuffle."""
    spark = messages.sparkSession
    airlines = _table(spark, directory, "airlines").select("carrier", F.col("name").alias("airline"))
    airports = _table(spark, directory, "airports")
    origins = airports.select(F.col("faa").alias("origin"), F.col("name").alias("origin_name"))
    destinations = airports.select(F.col("faa").alias("dest"), F.col("name").alias("dest_name"))
    weather = _table(spark, directory, "weather").select(
        "origin",
        "time_hour",
        *(F.col(name).cast("double").alias(name) for name in ("temp", "wind_speed", "precip", "visib")),
    )
    flights = parsed(messages).where("flight_id >= 0")
    hour = F.concat(F.substring("scheduled", 1, 13), F.lit(":00:00Z"))
    joined = (
        flights.withColumn("time_hour", hour)
        .join(F.broadcast(airlines), "carrier", "left")
        .join(F.broadcast(origins), "origin", "left")
        .join(F.broadcast(destinations), "dest", "left")
        .join(F.broadcast(weather), ["origin", "time_hour"], "left")
    )
    columns = [
        *("flight_id", "scheduled", "carrier", "flight", "origin", "dest", "distance", "tailnum", "dep_delay"),
        *("arr_delay", "air_time", "airline", "origin_name", "dest_name", "temp", "wind_speed", "precip", "visib"),
    ]
    return joined.select("key", _json(columns))


def delays_by_airport_and_hour(messages: DataFrame) -> DataFrame:
    """Output (b): departures, cancellations and delays by airport and hour of scheduled departure."""
    scheduled = F.to_timestamp("scheduled", TIME_FORMAT)
    delay = F.col("dep_delay")
    counted = (
        parsed(messages)
        .withColumn("scheduled_at", scheduled)
        .withWatermark("scheduled_at", f"{WATERMARK_DAYS} days")
        .groupBy(F.window("scheduled_at", "1 hour"), F.col("origin").alias("airport"))
        .agg(
            F.count(F.lit(1)).alias("flights"),
            F.count_if(delay.isNull()).alias("cancelled"),
            F.count_if(delay >= LATE_FROM_MINUTES).alias("late"),
            F.coalesce(F.sum(F.greatest(delay, F.lit(0))), F.lit(0)).alias("minutes_late"),
            F.max(delay).alias("longest_delay"),
        )
        .withColumn("hour", F.date_format(F.col("window.start"), TIME_FORMAT))
    )
    columns = ["airport", "hour", "flights", "cancelled", "late", "minutes_late", "longest_delay"]
    return counted.select(F.concat_ws("|", "airport", "hour").cast("binary").alias("key"), _json(columns))


def _json(columns: list[str]) -> F.Column:
    return F.to_json(F.struct(*columns)).cast("binary").alias("value")


def _table(spark: SparkSession, directory: Path, name: str) -> DataFrame:
    """Return one of the package's tables, every column as text; `NA` is what it writes for a missing value.

    Kept in memory: each micro-batch plans its joins again.
    """
    return spark.read.csv(str(directory / f"{name}.csv"), header=True, nullValue="NA", escape='"').cache()


def start_query(frame: DataFrame, name: str, topic: str, arguments: argparse.Namespace) -> StreamingQuery:
    """Start one streaming query into `topic`, with a checkpoint of its own under the work directory."""
    return (
        frame.writeStream.format(arguments.sink_format)
        .queryName(name)
        .outputMode("append")
        .option("kafka.bootstrap.servers", arguments.bootstrap_servers)
        .option("topic", topic)
        .option("checkpointLocation", str(arguments.checkpoints / name))
        .trigger(processingTime="0 seconds")
        .start()
    )


def source(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    """Read the input topic from its beginning, this many messages to a micro-batch."""
    return (
        spark.readStream.format("exacta")
        .option("kafka.bootstrap.servers", arguments.bootstrap_servers)
        .option("subscribe", arguments.input_topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", arguments.max_offsets_per_trigger)
        .load()
    )


def main(argv: list[str] | None = None) -> None:
    """Run both queries until standard input ends or one of them fails; a failure ends the process with status 1."""
    parser = argparse.ArgumentParser(prog="exacta.demo.pipeline")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--input-topic", required=True)
    parser.add_argument("--enriched-topic", required=True)
    parser.add_argument("--delays-topic", required=True)
    parser.add_argument("--tables", required=True, type=Path)
    parser.add_argument("--checkpoints", required=True, type=Path)
    parser.add_argument("--scratch", required=True, type=Path)
    parser.add_argument("--sink-format", required=True)
    parser.add_argument("--max-offsets-per-trigger", required=True, type=int)
    arguments = parser.parse_args(argv)

    spark = start_session(arguments.scratch)
    enriched = enriched_flights(source(spark, arguments), arguments.tables)
    delays = delays_by_airport_and_hour(source(spark, arguments))
    ended = threading.Event()
    threading.Thread(target=_wait_for_end_of_input, args=(ended,), name="end of input", daemon=True).start()
    keep_running(
        spark,
        [
            partial(start_query, enriched, ENRICHED_QUERY, arguments.enriched_topic, arguments),
            partial(start_query, delays, DELAYS_QUERY, arguments.delays_topic, arguments),
        ],
        ended,
    )
    for query in spark.streams.active:
        query.stop()
    spark.stop()


def keep_running(spark: SparkSession, starts: list[Callable[[], StreamingQuery]], ended: threading.Event) -> None:
    """Run the queries until `ended` is set; start one again whose Python worker was too slow to start.

    Raises StreamingQueryException where a query has failed otherwise.
    """
    queries = [start() for start in starts]
    while not ended.wait(_LOOK_EVERY_S):
        for index, query in enumerate(queries):
            failure = query.exception()
            if failure is not None:
                if _WORKER_TOO_SLOW not in str(failure):
                    raise failure
                queries[index] = starts[index]()


def _wait_for_end_of_input(ended: threading.Event) -> None:
    # Not through sys.stdin: a thread that holds its lock keeps the interpreter from ending.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    ended.set()


if __name__ == "__main__":
    main()
