"""Keys go where the Java client puts them, and where the sink puts them."""

from random import Random

import pytest

from exacta.client.partitioner import murmur2, partition_of_key
from exacta.spark.arrow import partitioner as by_columns


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_hashes_of_the_java_clients_own_tests(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32


def test_both_ways_to_hash_agree() -> None:
    random = Random(1)
    for length in range(40):
        key = random.randbytes(length)
        assert murmur2(key) == by_columns.murmur2(key)


def test_the_sign_is_cleared() -> None:
    assert partition_of_key(b"21", 7) == ((-973932308) & 0x7FFFFFFF) % 7
