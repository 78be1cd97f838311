"""A query goes on from its checkpoint when its format changes from `kafka` to `exacta`, and back.

What `docs/how-to/from-kafka.md` says of checkpoints.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.clusters import check_exactly
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

    def run(formats: tuple[str, str]) -> int:
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
        query = (
            rows.select("key", "value")
            .writeStream.format(sink)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", output)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    for formats, first, end in ((before, 0, 90), (after, 90, 150), (before, 150, 200), (after, 200, 220)):
        fill(bootstrap, topic, range(first, end))
        assert run(formats) == end - first
        check_exactly(bootstrap, output, range(end))
