"""Pulsar's codecs: what its clients write is read, within bounds. `test_real_client.py` reads the clients' own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar.compression import CODECS, EntryNotDecompressed, compress, decompress
from exacta.protocol.pulsar.messages_pb2 import CompressionType

codecs = st.sampled_from(sorted(CODECS))
COMPRESSING = sorted(CODECS - {CompressionType.NONE})
APPLES = b"apples " * 100


@given(codecs, st.binary(max_size=300) | st.integers(0, 100_000).map(bytes))
def test_what_is_compressed_comes_back(codec: CompressionType, plain: bytes) -> None:
    assert decompress(codec, compress(codec, plain), len(plain)) == plain


@pytest.mark.parametrize("codec", COMPRESSING)
def test_it_becomes_smaller(codec: CompressionType) -> None:
    assert len(compress(codec, APPLES)) < len(APPLES) // 4


@pytest.mark.parametrize("codec", sorted(CODECS))
@pytest.mark.parametrize("size", [0, len(APPLES) - 1, len(APPLES) + 1])
def test_another_size_than_is_said_is_a_fault(codec: CompressionType, size: int) -> None:
    with pytest.raises(EntryNotDecompressed):
        decompress(codec, compress(codec, APPLES), size)


@given(codecs, st.binary(max_size=60), st.integers(0, 1_000))
def test_any_bytes_are_decompressed_or_refused(codec: CompressionType, data: bytes, size: int) -> None:
    try:
        plain = decompress(codec, data, size)
    except EntryNotDecompressed:
        return
    assert len(plain) == size


@given(codecs, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_bytes_are_decompressed_or_refused(codec: CompressionType, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(compress(codec, APPLES))
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    try:
        plain = decompress(codec, bytes(damaged), len(APPLES))
    except EntryNotDecompressed:
        return
    assert len(plain) == len(APPLES)
