"""Records encoded by columns, read by aiokafka's decoder; and where batches are cut."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from exacta.client.producer_settings import COMPRESSION
from exacta.client.record_batch import BatchBuilder
from exacta.client.transactions import Producer
from exacta.protocol.kafka.records import HEADER_SIZE, validate_batch
from exacta.spark.arrow.encoding import RecordColumns

PRODUCER = Producer("t", 7, 3)


def batches_of(*writes, most_bytes=1 << 20, compression="none"):
    """Encode rows (key, value, headers), each write at its time, as a partition's queue does; return the batches."""
    found, builder, sequence = [], None, 0
    for time_ms, rows, with_headers in writes:
        keys, values, headers = zip(*rows, strict=True) if rows else ((), (), ())
        columns = RecordColumns(
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            headers if with_headers else None,
            most_batch_bytes=most_bytes,
        )
        while True:
            builder = builder or BatchBuilder(PRODUCER, sequence, compression=compression, most_bytes=most_bytes)
            builder.add(columns, time_ms)
            if not columns.left:
                break
            found.append(builder.build())
            sequence += builder.count
            builder = None
    return [*found, builder.build()] if builder is not None and builder.count else found


def decoded(batches):
    """Return time, key, value and headers of every record, and check what a broker checks."""
    found, sequence = [], 0
    for batch in batches:
        header = validate_batch(batch)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, sequence)
        assert header.transactional
        sequence += header.record_count
        found_in: Any = _batches(batch)
        (records,) = found_in
        assert [record.offset for record in records] == list(range(header.record_count))
        assert {record.timestamp for record in records} <= set(range(header.base_timestamp, header.max_timestamp + 1))
        found += [(each.timestamp, each.key, each.value, [*each.headers]) for each in records]
    return found


def _batches(data):
    reader = MemoryRecords(data)
    while reader.has_next():
        yield [*reader.next_batch()]


field = st.none() | st.binary(max_size=5) | st.sampled_from([63, 64, 8_191, 8_192]).map(bytes)
header = st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), st.none() | st.binary(max_size=3))
row = st.tuples(field, field, st.lists(header, max_size=2))
write = st.tuples(st.integers(1_000, 1_200), st.lists(row, max_size=30), st.booleans())


@given(st.lists(write, max_size=4), st.sampled_from([70, 200, 3_000, 1 << 20]), st.sampled_from([*COMPRESSION]))
def test_what_is_encoded_is_decoded(writes, most_bytes, compression):
    writes = [(1_000 + sum(time for time, _, _ in writes[:at]), *rest) for at, (_, *rest) in enumerate(writes)]
    batches = batches_of(*writes, most_bytes=most_bytes, compression=compression)
    assert decoded(batches) == [
        (time_ms, key, value, headers if with_headers else [])
        for time_ms, rows, with_headers in writes
        for key, value, headers in rows
    ]
    for batch in batches:
        # A batch that is larger than asked holds one record.
        assert len(batch) <= most_bytes or validate_batch(batch).record_count == 1


def test_a_clock_that_is_set_back():
    batches = batches_of((5_000, [(b"k", b"1", [])], False), (4_000, [(None, b"2", [])], False))
    assert len(batches) == 1
    (records,) = _batches(batches[0])
    assert [(record.timestamp, record.value) for record in records] == [(5_000, b"1"), (4_000, b"2")]


@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_batches_are_nearly_full_also_where_they_are_encoded_ahead(size):
    rows: list[Any] = [
        (None, b"%0*d" % (size, number), []) for number in range(9_000_000 // size if size > 10 else 200_000)
    ]
    batches = batches_of((1_000, rows, False), most_bytes=256 * 1024)
    assert [value for _, _, value, _ in decoded(batches)] == [value for _, value, _ in rows]
    for batch, _ in pairwise(batches):
        assert len(batch) > 256 * 1024 - max(size, 40_000) - HEADER_SIZE


@pytest.mark.parametrize("most_bytes", [1, 60, 62, 256 * 1024, 1 << 20])
def test_many_short_rows_that_come_late_make_lengths_longer(most_bytes):
    """The length of a record takes another byte for a later time and a higher offset."""
    rows: list[Any] = [[(None, b"x" * size, []) for _ in range(10_000 if most_bytes > 100 else 10)] for size in (5, 55)]
    batches = batches_of((1_000, rows[0], False), (1_070, rows[1], False), most_bytes=most_bytes)
    assert [value for _, _, value, _ in decoded(batches)] == [value for each in rows for _, value, _ in each]


def test_rows_for_one_partition_after_another_go_behind_what_is_there():
    columns = RecordColumns(None, pa.array([b"x" * 40] * 10), None, most_batch_bytes=200)
    first = BatchBuilder(PRODUCER, 0, compression="none", most_bytes=200)
    first.add(columns, 1_000)
    begun = BatchBuilder(PRODUCER, 0, compression="none", most_bytes=200)
    begun.add(RecordColumns(None, pa.array([b"y"]), None, most_batch_bytes=200), 1_000)
    left = columns.left
    begun.add(columns, 1_000)
    assert (begun.count, columns.left) == (1, left), "its batch must end first"
    fresh = BatchBuilder(PRODUCER, 1, compression="none", most_bytes=200)
    fresh.add(columns, 1_000)
    assert fresh.count == first.count == left - columns.left
