"""A query goes on from its checkpoint when its format changes from `kafka` to `exacta`, and back.

What `docs/how-to/spark-from-kafka.md` says of checkpoints.
"""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

import exacta.spark
from tests.spark.clusters import check_exactly, read_committed
from tests.spark.queries import fill


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("kafka", "kafka"), ("exacta", "exacta")),
        (("kafka", "kafka"), ("kafka", "exacta")),
        (("kafka", "kafka"), ("exacta", "kafka")),
    ],
)
def test_a_checkpoint_is_taken_over(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    tmp_path: Path,
    before: tuple[str, str],
    after: tuple[str, str],
) -> None:
    output = f"{topic}-output"

    def run(formats: tuple[str, str], adopted: int | None = None) -> int:
        """Run the query to the end of the topic; return how many rows it has read."""
        source, sink = formats
        rows = (
            spark.readStream.format(source)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 30)
            .load()
        )
        writer = (
            rows.select("key", "value")
            .writeStream.format(sink)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", output)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        if sink == "exacta" and adopted is not None:
            writer = writer.option("checkpoint.adopt.batch", adopted)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    fill(bootstrap, topic, range(90))
    assert run(before) == 90
    fill(bootstrap, topic, range(90, 150))
    batches = len([each for each in (tmp_path / "checkpoint" / "commits").iterdir() if each.name.isdecimal()])
    if after[1] == "exacta":
        # Once: whether the other sink has written of this batch, nobody can know.
        with pytest.raises(StreamingQueryException, match=f"'checkpoint.adopt.batch' to '{batches}'"):
            run(after)
    assert run(after, adopted=batches) == 60
    check_exactly(bootstrap, output, range(150))
    for formats, first, end in ((before, 150, 200), (after, 200, 220)):
        fill(bootstrap, topic, range(first, end))
        assert run(formats) == end - first
        check_exactly(bootstrap, output, range(end))


def test_state_and_a_batch_that_was_cut_off_are_taken_over(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """Counts go on where they were; the batch that the old job did not finish is written by both."""
    output, checkpoint = f"{topic}-counts", tmp_path / "checkpoint"
    options = {"kafka.bootstrap.servers": bootstrap, "topic": output, "checkpointLocation": str(checkpoint)}

    def run(source: str) -> None:
        rows = (
            spark.readStream.format(source)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        counts = rows.groupBy(lit("all").alias("key")).count().selectExpr("key", "string(count) as value")
        writer = counts.writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
        if source == "kafka":
            writer = writer.format("kafka").options(**options)
        else:
            adopting = {**options, "checkpoint.adopt.batch": 1}
            writer = writer.foreachBatch(lambda batch, batch_id: exacta.spark.write(batch, batch_id, adopting) and None)
        writer.trigger(availableNow=True).start().awaitTermination()

    for first, end in ((0, 30), (30, 50)):
        fill(bootstrap, topic, range(first, end))
        run("kafka")
    # As if it had been killed when its rows were written.
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    fill(bootstrap, topic, range(50, 60))
    run("exacta")
    assert [value for _, _, value in sorted(read_committed(bootstrap, output))] == [b"30", b"50", b"50", b"60"]
