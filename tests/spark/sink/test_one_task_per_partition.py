"""The column `partition` that `one_task_per_partition` gives the rows."""

import pyarrow as pa

from exacta.spark.arrow.partitioner import murmur2
from exacta.spark.sink.one_task_per_partition import placed


def test_rows_are_placed_as_the_java_client_does_or_by_their_value():
    keys, values = [b"a", None, None, b"a", None], [b"1", b"1", b"2", b"2", None]
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys), "Value": pa.array(values)})
    found = placed(batch, 7)
    assert found.schema.names == ["key", "Value", "partition"]
    by_key, one, two = (murmur2(text) % 2**31 % 7 for text in (b"a", b"1", b"2"))
    assert found.column(2).to_pylist() == [by_key, one, two, by_key, 0]


def test_a_row_that_names_its_partition_keeps_it():
    columns = {"partition": pa.array([3, None], pa.int32()), "value": pa.array(["x", "y"])}
    found = placed(pa.RecordBatch.from_pydict(columns), 5)
    assert found.schema.names == ["value", "partition"]
    assert found.column(1).to_pylist() == [3, murmur2(b"y") % 2**31 % 5]
