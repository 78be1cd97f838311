"""A job of two queries that ends in one way or another, with a batch under way; called as a program of its own.

The batch under way has written: `slow` waits for a file that never comes, after its first rows.
"""

import sys
import time
from pathlib import Path


def main(bootstrap, source, sink, directory, how):
    """Start a query that gets stuck in its batch; then end as `how` says."""
    import exacta.spark
    from exacta.client.routing import Client
    from exacta.client.transactions import list_transactions

    # Small batches and buffers: the stuck task has written some rows when it waits.
    spark = exacta.spark.session(
        "local[3]", quick_start=True, settings={"spark.sql.execution.arrow.maxRecordsPerBatch": "10"}
    )
    spark.sparkContext.setLogLevel("OFF")

    def slow(batches):
        for number, batch in enumerate(batches):
            if number == 3:
                while not Path(directory, "go on").exists():
                    time.sleep(0.05)
            yield batch

    def broken(batches):
        yield from ()
        raise ValueError("a bad row")

    def query(transformed, name):
        rows = (
            spark.readStream.format("exacta")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
            .select("key", "value")
            .mapInArrow(transformed, "key binary, value binary")
        )
        return (
            rows.writeStream.format("exacta")
            .queryName(name)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("kafka.batch.size", "100")
            .option("topic", sink)
            .option("checkpointLocation", str(Path(directory, name)))
            .start()
        )

    stuck = query(slow, "stuck")
    with Client(bootstrap) as client:
        while not any(each.startswith(f"{stuck.id}-0") for each in list_transactions(client, f"{stuck.id}-")):
            time.sleep(0.05)
    if how == "another fails":
        query(broken, "broken")
        spark.streams.awaitAnyTermination()
    elif how == "session":
        spark.stop()
    elif how == "query":
        stuck.stop()
        print("stopped", flush=True)
        sys.stdin.read()  # the session lives on
    elif how == "exit":
        sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
