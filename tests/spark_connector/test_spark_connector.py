"""Spark's own Kafka connector reads from and writes to Exacta as it would with Apache Kafka: batch and streaming."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, upper
from pyspark.sql.types import Row

Read = Callable[..., DataFrame]


@pytest.fixture
def read(spark: SparkSession, bootstrap: str, topic: str) -> Read:
    """A batch read of the topic."""

    def read(of: str = topic, **options: object) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", of)
        return reader.options(**options).load()

    return read


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Return rows with a key, a value, a partition and headers, all told by their number."""
    return spark.range(first, end).selectExpr(
        "cast(id as string) as key",
        "concat('v-', id) as value",
        "cast(id % 3 as int) as partition",
        "array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary))) as headers",
    )


def write(frame: DataFrame, bootstrap: str, topic: str, **options: object) -> None:
    """Append rows in a batch."""
    frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).options(
        **options
    ).save()


def numbers(frame: DataFrame) -> list[int]:
    """Return the sorted numbers of the rows read."""
    return sorted(int(bytes(row.value).removeprefix(b"v-")) for row in frame.select("value").collect())


def test_a_batch_comes_back_whole(spark: SparkSession, bootstrap: str, topic: str, read: Read) -> None:
    write(rows(spark, 0, 300), bootstrap, topic)
    found = read(includeHeaders="true").collect()
    assert len(found) == 300
    for row in found:
        number = int(row.key)
        assert bytes(row.value) == b"v-%d" % number
        assert row.partition == number % 3
        assert row.headers == [Row(key="h", value=bytearray(b"%d" % number))]
        assert row.topic == topic
        assert row.timestampType == 0
    for partition in range(3):
        offsets = sorted(row.offset for row in found if row.partition == partition)
        assert offsets == list(range(100))


def test_a_batch_reads_between_offsets(spark: SparkSession, bootstrap: str, topic: str, read: Read) -> None:
    write(rows(spark, 0, 300), bootstrap, topic)
    starting = json.dumps({topic: {"0": 10, "1": -2, "2": 99}})
    ending = json.dumps({topic: {"0": 20, "1": 5, "2": -1}})
    found = read(startingOffsets=starting, endingOffsets=ending).collect()
    expected = [(0, offset) for offset in range(10, 20)] + [(1, offset) for offset in range(5)] + [(2, 99)]
    assert sorted((row.partition, row.offset) for row in found) == expected


def test_a_batch_reads_from_a_timestamp(spark: SparkSession, bootstrap: str, topic: str, read: Read) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(30):
        producer.produce(topic, b"v-%d" % number, partition=number % 3, timestamp=1_700_000_000_000 + number * 1_000)
        # One batch each: a broker finds a batch by time, not the record inside it.
        producer.flush()
    assert numbers(read(startingTimestamp="1700000015000")) == list(range(15, 30))
    ending = json.dumps({topic: {str(partition): 1_700_000_015_000 for partition in range(3)}})
    assert numbers(read(startingOffsets="earliest", endingOffsetsByTimestamp=ending)) == list(range(15))


def test_a_batch_may_be_split_further_than_the_partitions(
    spark: SparkSession, bootstrap: str, topic: str, read: Read
) -> None:
    write(rows(spark, 0, 300), bootstrap, topic)
    found = read(minPartitions="7")
    assert found.rdd.getNumPartitions() > 3
    assert numbers(found) == list(range(300))


def test_each_row_may_name_its_topic(spark: SparkSession, bootstrap: str, topic: str, read: Read) -> None:
    other = f"{topic}-made-by-writing"
    frame = (
        rows(spark, 0, 5)
        .withColumn("topic", lit(topic))
        .unionByName(
            # It is made by the writing, and Spark's producer chooses the partition.
            rows(spark, 5, 10).drop("partition").withColumn("topic", lit(other)),
            allowMissingColumns=True,
        )
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).save()
    assert numbers(read()) == list(range(5))
    assert numbers(read(other)) == list(range(5, 10))
    pattern = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    assert numbers(pattern.option("subscribePattern", f"{topic}.*").load()) == list(range(10))


def test_aborted_rows_are_not_read(spark: SparkSession, bootstrap: str, topic: str, read: Read) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-id"})
    producer.init_transactions(30)
    for number in range(40):
        producer.begin_transaction()
        producer.produce(topic, b"v-%d" % number, partition=number % 2)
        producer.flush()
        producer.commit_transaction(30) if number % 4 else producer.abort_transaction(30)
    committed = [number for number in range(40) if number % 4]
    assert numbers(read(**{"kafka.isolation.level": "read_committed"})) == committed
    assert numbers(read()) == list(range(40))


def test_a_stream_reads_and_writes(spark: SparkSession, bootstrap: str, topic: str, read: Read, tmp_path: Path) -> None:
    output = f"{topic}-output"

    def run(max_offsets: int) -> int:
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", max_offsets)
            .load()
        )
        query = (
            stream.select("key", upper(col("value").cast("string")).alias("value"))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", output)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(1 for progress in query.recentProgress if progress.numInputRows)

    write(rows(spark, 0, 90), bootstrap, topic)
    assert run(30) == 3
    write(rows(spark, 90, 120), bootstrap, topic)
    # The second run begins where the checkpoint of the first says.
    assert run(30) == 1
    found = read(output).collect()
    assert sorted(bytes(row.value) for row in found) == sorted(b"V-%d" % number for number in range(120))


def test_a_stream_keeps_state(spark: SparkSession, bootstrap: str, topic: str, read: Read, tmp_path: Path) -> None:
    output = f"{topic}-counts"
    for first in (0, 30):
        write(rows(spark, first, first + 30), bootstrap, topic)
        counts = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .groupBy(col("partition").cast("string").alias("key"))
            .count()
        )
        query = (
            counts.select("key", col("count").cast("string").alias("value"))
            .writeStream.format("kafka")
            .outputMode("update")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", output)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = sorted((bytes(row.key), bytes(row.value)) for row in read(output).collect())
    assert found == sorted((b"%d" % partition, count) for partition in range(3) for count in (b"10", b"20"))
