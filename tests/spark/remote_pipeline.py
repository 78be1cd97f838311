"""Queries through Spark Connect, one after the other: `python -m tests.spark.remote_pipeline '[{"bootstrap": …}]'`.

A process of its own, since one that has a classic session cannot have one of Spark Connect. The server, local too, is
started by PySpark and finds the format by itself.
"""

import functools
import json
import os
import sys

FAILS_AFTER = 1
"""The function fails once, after it has written this batch."""


def write_batch(options, calls, batch_df, batch_id):
    """Run in a worker of the server; note each call in the file `calls`."""
    from exacta.spark import write

    written = write(batch_df, batch_id, options)
    call = {
        "batch": batch_id,
        "session": batch_df.sparkSession.session_id,
        "alone": written.alone,
        "replayed": written.replayed,
    }
    with open(calls, "a") as file:
        file.write(json.dumps(call) + "\n")
    if batch_id == FAILS_AFTER and not written.replayed:
        raise ZeroDivisionError


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
    from pyspark.errors import PySparkException

    from exacta.spark import check

    for name, value in arguments.get("settings", {}).items():
        spark.conf.set(name, value)
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
            options.update(arguments["options"])
            writer = writer.foreachBatch(functools.partial(write_batch, options, arguments["calls"]))
        else:
            writer = writer.format("exacta").options(**options)
        query = writer.option("checkpointLocation", arguments["checkpoint"]).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except PySparkException as error:
            if "ZeroDivisionError" not in str(error):
                raise
        rows_read = [progress.numInputRows for progress in query.recentProgress]
        print(json.dumps({"session": spark.session_id, "rows": rows_read}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
