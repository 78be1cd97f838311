"""Two stateful queries over flights and weather, from topics to topics, exactly once.

    python -m examples.flights.pipeline --bootstrap-servers HOST:PORT --checkpoints DIRECTORY

This is the file to copy from; `verify.py` beside it fills the topics, kills this program in the middle, starts it again
and compares what is in the output topics with the same computation in pandas.

- *delays*: departures, cancellations and minutes of delay by airport and window of six hours.
- *weather*: each flight joined with the weather at its origin in the hour of its scheduled departure, a left outer join
  of two streams: where that hour's weather never came, the flight comes out without it.

What comes out, to the row. Both queries carry a *watermark*: the newest event time read so far (in the join, of the
stream that is further behind) less `WATERMARK_DELAY`. Append mode puts a row out once, when the watermark says that
nothing can change it any more: a window when the watermark reaches its end, a flight without weather when it reaches
the flight's hour. Both are exact whatever the batches are, as long as no row is *late*, behind the watermark; and a
late row is dropped for certain only if a batch before its own had brought the watermark past it. So the delay must
exceed the input's disorder (19 hours here, since the log is in the order of actual departure within a day, with the
cancelled flights last; partitions that are read at somewhat unequal speed add hours), and rows that are to be late must
be late by far more than a batch covers.

With Trigger.AvailableNow a query ends where its topics ended when it began, after one more batch, without rows, for the
last move of the watermark. What the watermark has not reached by then stays in the state, for the next run.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from exacta.spark import session

FLIGHTS, WEATHER = "flights", "weather"
DELAYS, FLIGHTS_WITH_WEATHER = "delays", "flights-with-weather"
WATERMARK_DELAY = "2 days"
WINDOW = "6 hours"
TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"

FLIGHT = "flight_id INT, scheduled STRING, carrier STRING, flight INT, origin STRING, dest STRING, dep_delay INT"
OBSERVATION = "origin STRING, hour STRING, temp DOUBLE, wind_speed DOUBLE, visib DOUBLE"


def read(spark: SparkSession, servers: str, topic: str, schema: str, rows_per_batch: int) -> DataFrame:
    """Read a topic of JSON messages from its beginning."""
    messages = (
        spark.readStream.format("exacta")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", rows_per_batch)
        .load()
    )
    return messages.select(F.from_json(F.col("value").cast("string"), schema).alias("row")).select("row.*")


def delays(flights: DataFrame) -> DataFrame:
    """Sum up delays by airport and window of scheduled departure: a windowed aggregation with a watermark."""
    counted = (
        flights.withColumn("scheduled_at", F.to_timestamp("scheduled", TIME))
        .withWatermark("scheduled_at", WATERMARK_DELAY)
        .groupBy(F.window("scheduled_at", WINDOW), "origin")
        .agg(
            F.count("*").alias("flights"),
            F.count_if(F.col("dep_delay").isNull()).alias("cancelled"),
            F.sum(F.greatest(F.coalesce("dep_delay", F.lit(0)), F.lit(0))).alias("minutes_late"),
        )
    )
    return as_messages(counted.withColumn("begin", F.date_format("window.start", TIME)), "origin", "begin")


def with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Join each flight with the weather of its origin and hour: a stream-stream join with watermarks on both sides."""
    scheduled_hour = F.date_trunc("hour", F.to_timestamp("scheduled", TIME))
    left = flights.withColumn("hour", scheduled_hour).withWatermark("hour", WATERMARK_DELAY)
    right = weather.withColumn("hour", F.to_timestamp("hour", TIME)).withWatermark("hour", WATERMARK_DELAY)
    return as_messages(left.join(right, ["origin", "hour"], "left_outer").drop("hour"), "flight_id")


def as_messages(rows: DataFrame, *key: str) -> DataFrame:
    """Turn rows into messages: the key's columns with a bar between them, all columns but windows as JSON."""
    columns = [name for name in rows.columns if name != "window"]
    return rows.select(F.concat_ws("|", *key).alias("key"), F.to_json(F.struct(*columns)).alias("value"))


def start(rows: DataFrame, servers: str, topic: str, checkpoints: Path) -> StreamingQuery:
    """Start writing rows to a topic; the checkpoint is what a restarted query goes on from."""
    return (
        rows.writeStream.format("exacta")
        .queryName(topic)
        .outputMode("append")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
        .option("checkpointLocation", str(checkpoints / topic))
        .trigger(availableNow=True)  # for a query that goes on for ever: processingTime="1 second"
        .start()
    )


def main() -> None:
    """Run both queries until they have read what there is."""
    parser = argparse.ArgumentParser(prog="python -m examples.flights.pipeline")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--checkpoints", required=True, type=Path)
    servers, checkpoints = (arguments := parser.parse_args()).bootstrap_servers, arguments.checkpoints

    # The number of partitions of stateful operators is fixed by the first run; two are enough for a laptop.
    spark = session(app="flights", settings={"spark.sql.shuffle.partitions": "2"}, quick_start=True)
    # A little more than a day of each in a batch.
    flights = read(spark, servers, FLIGHTS, FLIGHT, rows_per_batch=1100)
    weather = read(spark, servers, WEATHER, OBSERVATION, rows_per_batch=90)
    queries = [
        start(delays(flights), servers, DELAYS, checkpoints),
        start(with_weather(flights, weather), servers, FLIGHTS_WITH_WEATHER, checkpoints),
    ]
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
