"""The codecs of entries, in the framings that Pulsar's clients write and read, by a native library.

LZ4 is one raw block, Snappy one block without a frame, and the others are streams of their own. An entry says how large
its payload was: clients make room for exactly that much, so that more or less is a fault.
"""

from collections.abc import Callable
from typing import Any, Final

from exacta.protocol.pulsar.decoding import Buffer
from exacta.protocol.pulsar.messages_pb2 import CompressionType

CODECS: Final = frozenset(CompressionType.values())
"""The numbers of the codecs that there are."""

_LEVELS: Final = {CompressionType.ZLIB: 6, CompressionType.ZSTD: 3}
"""The libraries' own, which Pulsar's clients leave as they are. LZ4 and Snappy have none."""


class EntryNotDecompressed(Exception):
    """The bytes are none that the codec has made, or were not as many as is said."""


def compress(codec: CompressionType, plain: Buffer) -> bytes:
    """Compress a payload, as a whole."""
    import cramjam  # here: it is needed only where something is compressed, and every start would pay for it

    if codec == CompressionType.NONE:
        return bytes(plain)
    if codec == CompressionType.LZ4:
        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    if codec == CompressionType.SNAPPY:
        return bytes(cramjam.snappy.compress_raw(plain))
    if codec == CompressionType.ZLIB:
        return bytes(cramjam.zlib.compress(plain, level=_LEVELS[codec]))
    return bytes(cramjam.zstd.compress(plain, level=_LEVELS[codec]))


def decompress(codec: CompressionType, compressed: Buffer, size: int) -> bytes:
    """Return what was compressed, which has exactly `size` bytes; raises `EntryNotDecompressed`.

    No more room is ever taken than for this many bytes. The caller has decided how many those may be.
    """
    import cramjam

    if codec == CompressionType.NONE:
        if len(compressed) != size:
            raise EntryNotDecompressed(f"there are {len(compressed)} bytes, where {size} are said")
        return bytes(compressed)
    into: Callable[[Any, Any], int] = {
        CompressionType.LZ4: cramjam.lz4.decompress_block_into,
        CompressionType.ZLIB: cramjam.zlib.decompress_into,
        CompressionType.ZSTD: cramjam.zstd.decompress_into,
        CompressionType.SNAPPY: cramjam.snappy.decompress_raw_into,
    }[codec]
    plain = bytearray(size)
    try:
        found = into(compressed, plain)
    except cramjam.DecompressionError as error:
        raise EntryNotDecompressed(str(error)) from error
    if found != size:
        raise EntryNotDecompressed(f"there are {found} bytes in it, where {size} are said")
    return bytes(plain)
