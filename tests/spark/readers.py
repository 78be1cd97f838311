"""Readers, called as Spark calls them but without a virtual machine."""

from collections.abc import Collection

from confluent_kafka import Producer
from pyspark.sql.types import StructType

from exacta.spark.arrow.rows import read_schema
from exacta.spark.options import source_options
from exacta.spark.source.batch_reader import ExactaBatchReader
from exacta.spark.source.source import ExactaStreamReader


def reader_of(bootstrap: str, **options: str) -> ExactaStreamReader:
    given = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest", **options}
    parsed = source_options({name.replace("__", "."): value for name, value in given.items()})
    return ExactaStreamReader(parsed, read_schema(include_headers=parsed.include_headers))


def offsets_of(stored):
    """Leave out which topic it was."""
    return {topic: offsets for topic, offsets in stored.items() if "#" not in topic}


def rows_between(reader, start, end):
    rows = []
    for partition in reader.partitions(start, end):
        for batch in reader.read(partition):
            rows += batch.to_pylist()
    return rows


def batch_of(bootstrap: str, *, columns: Collection[str] | None = None, **options: str) -> ExactaBatchReader:
    """`columns`: those that the user has chosen; all without."""
    given = {"kafka.bootstrap.servers": bootstrap, **options}
    parsed = source_options({name.replace("__", "."): value for name, value in given.items()}, batch=True)
    schema = read_schema(include_headers=parsed.include_headers or columns is not None)
    return ExactaBatchReader(parsed, schema if columns is None else StructType([schema[name] for name in columns]))


def rows_of(reader) -> list:
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def produced(bootstrap: str, topic: str, count: int, *, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for row in range(count):
        producer.produce(topic, value=b"%d" % row, partition=partition)
        producer.flush()  # a batch for each, so that a range can begin anywhere
