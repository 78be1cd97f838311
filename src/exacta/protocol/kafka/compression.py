"""The codecs of record batches, in the framings that Kafka's clients write and read, by a native library.

Snappy is framed as the Java client does it (xerial's blocks); librdkafka writes one block without a frame, which is
read too. LZ4 frames have independent blocks, for the Java client reads no others.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

Buffer = bytes | bytearray | memoryview

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS: Final[dict[str, int]] = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
"""The codecs by the names of the configuration `compression.type`."""

LEVELS: Final = {GZIP: -1, LZ4: 9, ZSTD: 3}
"""Kafka's own, where nobody has chosen; Snappy has none."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS: Final = struct.pack(">ii", 1, 1)
_XERIAL_HEADER_BYTES: Final = len(_XERIAL_MAGIC) + len(_XERIAL_VERSIONS)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SIZE: Final = struct.Struct(">i")
_FIRST_GUESS_BYTES: Final = 64 * 1024
_NO_ROOM: Final = "write whole buffer"
"""The library has no exception of its own for this; its text says it. Only the fault's name depends on it."""


class NotDecompressed(Exception):
    """The bytes are none that the codec has made, or are more than may be."""


class TooMuch(NotDecompressed):
    """The bytes are more than may be, as far as that can be told."""


def compress(codec: int, plain: Buffer, level: int) -> bytes:
    """Compress; Snappy has no levels."""
    import cramjam  # here: few topics ask for it, and every start would pay for it

    if codec == NONE:
        return bytes(plain)
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(plain, level=6 if level < 0 else level))
    if codec == SNAPPY:
        blocks = (
            bytes(cramjam.snappy.compress_raw(plain[start : start + _XERIAL_BLOCK_BYTES]))
            for start in range(0, len(plain), _XERIAL_BLOCK_BYTES)
        )
        return b"".join([_XERIAL_MAGIC, _XERIAL_VERSIONS, *(part for each in blocks for part in _sized(each))])
    if codec == LZ4:
        frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        frame.compress(plain)
        return bytes(frame.finish())
    return bytes(cramjam.zstd.compress(plain, level=level))


def _sized(block: bytes) -> tuple[bytes, bytes]:
    return _SIZE.pack(len(block)), block


def decompress(codec: int, compressed: Buffer, most_bytes: int) -> bytes:
    """Return what was compressed, of at most `most_bytes`; raises `NotDecompressed`."""
    import cramjam

    if codec == NONE:
        return bytes(compressed)
    try:
        if codec == SNAPPY:
            return b"".join(_snappy_blocks(compressed, most_bytes))
        into: Callable[[Any, Any], int] = {
            GZIP: cramjam.gzip.decompress_into,
            LZ4: cramjam.lz4.decompress_into,
            ZSTD: cramjam.zstd.decompress_into,
        }[codec]
        return _grown(into, compressed, most_bytes)
    except cramjam.DecompressionError as error:
        raise (TooMuch if _NO_ROOM in str(error) else NotDecompressed)(str(error)) from error


def _grown(into: Callable[[Any, Any], int], compressed: Buffer, most_bytes: int) -> bytes:
    """Decompress into a buffer that grows until it is large enough: no more is ever taken than `most_bytes`."""
    import cramjam

    room = min(most_bytes, max(_FIRST_GUESS_BYTES, 4 * len(compressed)))
    while True:
        plain = bytearray(room)
        try:
            return bytes(memoryview(plain)[: into(compressed, plain)])
        except cramjam.DecompressionError:
            if room >= most_bytes:
                raise
            room = min(most_bytes, 4 * room)


def _snappy_blocks(compressed: Buffer, most_bytes: int) -> Iterator[bytes]:
    view = memoryview(compressed)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield _snappy_block(view, most_bytes)
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(view):
        if position + _SIZE.size > len(view):
            raise NotDecompressed("a block's size is cut off")
        (size,) = _SIZE.unpack_from(view, position)
        position += _SIZE.size
        if not 0 <= size <= len(view) - position:
            raise NotDecompressed(f"a block of {size} bytes is not there")
        block = _snappy_block(view[position : position + size], most_bytes)
        yield block
        most_bytes -= len(block)
        position += size


def _snappy_block(block: memoryview, most_bytes: int) -> bytes:
    import cramjam

    size = cramjam.snappy.decompress_raw_len(block)
    if size > most_bytes:
        raise TooMuch(f"there are more than {most_bytes} bytes in it")
    return bytes(cramjam.snappy.decompress_raw(block))
