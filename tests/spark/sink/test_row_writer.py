"""Rows by the batch: nothing is lost where a batch is full, and rows for one partition keep their order."""

from collections import defaultdict
from itertools import pairwise

import pyarrow as pa
import pytest

from exacta.client.routing import Client
from exacta.client.transactions import end_transaction, init_producer_id
from exacta.spark.options import SinkOptions
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.row_writer import RowWriter
from tests.spark.clusters import new_topic, read_committed

ROWS = 3_000
PARTITIONS = 3


@pytest.fixture
def write(bootstrap):
    """Write columns in slices, in record batches that hold few rows; return the values by partition, in their order."""

    def write(columns):
        topic = new_topic(bootstrap, PARTITIONS)
        table = pa.RecordBatch.from_pydict({"value": pa.array([b"%d" % row for row in range(ROWS)]), **columns})
        options = SinkOptions(bootstrap=bootstrap, topic=topic, batch_size_bytes=500)
        with Client(bootstrap) as client:
            producer = init_producer_id(client, f"{topic}-a", transaction_timeout_ms=60_000)
            writer = RowWriter(client, options, producer, rotation=1)
            for start in range(0, ROWS, 700):
                writer.write(table.slice(start, 700))
            writer.flush()
            writer.close()
            end_transaction(client, producer, commit=True)
        assert writer.rows == ROWS
        found = defaultdict(list)
        for partition, _, value in read_committed(bootstrap, topic):
            found[partition].append(int(value))
        assert sorted(row for rows in found.values() for row in rows) == list(range(ROWS))
        return found

    return write


def keys_of(rows):
    return pa.array([None if row % 5 == 0 else b"%d" % (row % 7) for row in rows], pa.binary())


def test_rows_without_keys_fill_a_batch_before_the_next_partition_is_taken(write):
    found = write({})
    assert set(found) == set(range(PARTITIONS))
    for rows in found.values():
        assert rows == sorted(rows)
    jumps = sum(after != before + 1 for rows in found.values() for before, after in pairwise(rows))
    assert jumps < ROWS // 10


def test_rows_of_one_key_keep_their_order_and_their_partition(write):
    found = write({"key": keys_of(range(ROWS))})
    for key in range(7):
        of_key = {partition: [row for row in rows if row % 5 and row % 7 == key] for partition, rows in found.items()}
        (rows,) = [rows for rows in of_key.values() if rows]
        assert rows == sorted(rows)


def test_rows_that_name_their_partition_keep_their_order(write):
    partitions = pa.array([None if row % 4 == 0 else row % PARTITIONS for row in range(ROWS)], pa.int32())
    found = write({"key": keys_of(range(ROWS)), "partition": partitions})
    for partition, rows in found.items():
        named = [row for row in rows if row % 4]
        assert named == [row for row in range(ROWS) if row % 4 and row % PARTITIONS == partition]


@pytest.mark.parametrize("headers", [[None], [{"key": None, "value": b"x"}]])
def test_a_header_without_a_key_is_refused_in_a_sentence(write, headers):
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    with pytest.raises(SinkError, match="a row has a header without a key"):
        write({"headers": pa.array([headers] * ROWS, kind)})
