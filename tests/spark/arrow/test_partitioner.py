"""Rows go to the partitions to which the Java client sends them."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.spark.arrow.partitioner import murmur2, partitions_of_keys


@pytest.mark.parametrize(
    ("key", "signed"),
    # From the tests of Apache Kafka's own murmur2.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_of_known_keys(key, signed):
    assert murmur2(key) == signed & 0xFFFFFFFF


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 50))
def test_a_column_is_hashed_like_its_keys(keys, partitions):
    array = pa.array([b"before", *keys], pa.binary()).slice(1)
    expected = [-1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions for key in keys]
    assert partitions_of_keys(array, partitions).tolist() == expected
