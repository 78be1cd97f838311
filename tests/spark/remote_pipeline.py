"""Queries through Spark Connect, one after the other: `python -m tests.spark.remote_pipeline '[{"bootstrap": …}]'`.

A process of its own, since one that has a classic session cannot have one of Spark Connect. The server, local too, is
started by PySpark and finds the format by itself.
"""

import functools
import json
import os
import sys


def write_batch(options, batch_df, batch_id):
    """Run in a worker of the server."""
    from exacta.spark import write

    write(batch_df, batch_id, options)


def main(jobs):
    """Start a server, and do the jobs."""
    from pyspark.sql import SparkSession

    from exacta.spark import use_bundled_java

    use_bundled_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
    for job in jobs:
        copy(spark, job)
    spark.stop()


def copy(spark, arguments):
    """Copy topic `source` to topic `sink`, in upper case, until all that is there is written."""
    from exacta.spark import check

    for _ in range(arguments["times"]):
        rows = (
            spark.readStream.format("exacta")
            .option("kafka.bootstrap.servers", arguments["bootstrap"])
            .option("subscribe", arguments["source"])
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", arguments["limit"])
            .load()
        )
        rows = rows.selectExpr("key", "upper(cast(value as string)) as value")
        options = {
            "kafka.bootstrap.servers": arguments["bootstrap"],
            "topic": arguments["sink"],
            "checkpointLocation": arguments["checkpoint"],
        }
        check(rows, options).raise_if_failed()
        writer = rows.writeStream
        if arguments["by"] == "foreachBatch":
            writer = writer.foreachBatch(functools.partial(write_batch, options))
        else:
            writer = writer.format("exacta").options(**options)
        query = writer.option("checkpointLocation", arguments["checkpoint"]).trigger(availableNow=True).start()
        query.awaitTermination()
        print(json.dumps([progress.numInputRows for progress in query.recentProgress]), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
