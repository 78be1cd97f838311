"""The codecs: what is compressed comes back, in other people's framings, and never as more than allowed."""

import os

import pytest
from aiokafka import codec as theirs

from exacta.protocol.kafka.compression import CODECS, GZIP, LZ4, SNAPPY, ZSTD, NotDecompressed, compress, decompress

PLAIN = b"0123456789" * 20_000 + os.urandom(50_000)
LEVELS = {GZIP: -1, LZ4: 9, ZSTD: 3}
THEIRS = {
    GZIP: (theirs.gzip_encode, theirs.gzip_decode),
    SNAPPY: (theirs.snappy_encode, theirs.snappy_decode),
    LZ4: (theirs.lz4_encode, theirs.lz4_decode),
    ZSTD: (theirs.zstd_encode, theirs.zstd_decode),
}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
@pytest.mark.parametrize("plain", [b"", b"x", PLAIN], ids=["nothing", "little", "much"])
def test_what_is_compressed_comes_back(codec: int, plain: bytes) -> None:
    compressed = compress(codec, plain, LEVELS.get(codec, 0))
    assert decompress(codec, memoryview(compressed), len(plain)) == plain


@pytest.mark.parametrize("codec", THEIRS)
def test_others_read_what_we_write_and_we_what_they_write(codec: int) -> None:
    encode, decode = THEIRS[codec]
    assert bytes(decode(compress(codec, PLAIN, LEVELS.get(codec, 0)))) == PLAIN
    assert decompress(codec, bytes(encode(PLAIN)), 1 << 20) == PLAIN


def test_snappy_without_a_frame_is_read() -> None:
    """As librdkafka writes it."""
    assert decompress(SNAPPY, bytes(theirs.snappy_encode(PLAIN, xerial_compatible=False)), 1 << 20) == PLAIN


@pytest.mark.parametrize("codec", THEIRS)
def test_no_more_is_taken_than_allowed(codec: int) -> None:
    compressed = compress(codec, bytes(1 << 20), LEVELS.get(codec, 0))
    with pytest.raises(NotDecompressed):
        decompress(codec, compressed, (1 << 20) - 1)


@pytest.mark.parametrize("codec", THEIRS)
@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_what_is_cut_off_or_spoilt_is_refused(codec: int, cut: float) -> None:
    compressed = compress(codec, PLAIN, LEVELS.get(codec, 0))
    with pytest.raises(NotDecompressed):
        decompress(codec, compressed[: int(len(compressed) * cut)], 1 << 20)
    with pytest.raises(NotDecompressed):
        decompress(codec, b"no such thing", 1 << 20)
