"""The job of the packed environment's test, as `python job.py '{...}'` on the driver; imports nothing of the tests.

First it looks where the executor's Python comes from, then it runs a query from topic to topic.
"""

import json
import os
import sys


def main(arguments):
    """Write where exacta was imported from on the executor to `found`, and copy `source` to `sink`."""
    from exacta.spark import register, use_bundled_java

    use_bundled_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[1,2,1024]").appName("packed")
    for name, value in {
        "spark.archives": f"{arguments['archive']}#environment",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    # By a call: what Spark finds by itself would run in the driver's Python on the executors too.
    register(spark)

    def where(_):
        import exacta

        return [sys.prefix, os.path.realpath(exacta.__file__), os.getcwd()]

    found = spark.sparkContext.parallelize([0], 1).map(where).collect()[0]
    with open(arguments["found"], "w") as file:
        json.dump(found, file)
    rows = (
        spark.readStream.format("exacta")
        .option("kafka.bootstrap.servers", arguments["bootstrap"])
        .option("subscribe", arguments["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 500)
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("exacta")
        .option("kafka.bootstrap.servers", arguments["bootstrap"])
        .option("topic", arguments["sink"])
        .option("checkpointLocation", arguments["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
