"""Bytes of a segment index: the file beside a sealed segment that says where its batches lie, mapped into memory.

This module packs, unpacks and checks them. A segment index can always be made again from its segment.
"""

from array import array
from collections.abc import Iterable, Mapping
from itertools import accumulate
from struct import Struct

from crc32c import crc32c

from exacta.adapters.local.files import Files
from exacta.adapters.local.format import VERSION
from exacta.adapters.local.index.segment_rows import BLOCK_NUMBERS, COLUMN_COUNT, NUMBER_BYTES, Rows, SegmentIndex
from exacta.ports.journal import Buffer

# magic, version, checksum of all that follows it, mark and end of the segment, checksum of its last group, how many
# streams and rows
_HEADER = Struct("=8sII8sQIIQ")
HEADER_BYTES = _HEADER.size
# In the machine's own byte order, as the columns are. The magic is wrong for a machine of the other order, which makes
# the segment index again.
_MAGIC = (0x4558414354412D4B).to_bytes(8, "little")
_CHECKED_FROM = 16
_CHECKSUM_BYTES = 4
_WINDOW_BYTES = 1 << 20


def pack_segment_index(growing: Mapping[int, Rows], mark: bytes, end: int, last_checksum: int) -> list[Buffer]:
    """Return the buffers of a segment index: the segment has this mark and these rows, and ends at `end`."""
    streams = array("q", sorted(growing))
    row_ends = array("q", accumulate(growing[stream].high for stream in streams))
    row_count = row_ends[-1] if row_ends else 0
    by_stream = [growing[stream].columns() for stream in streams]
    columns: Iterable[Buffer] = (
        memoryview(columns[number]).cast("B") for number in range(COLUMN_COUNT) for columns in by_stream
    )
    numbers: list[Buffer] = [memoryview(streams).cast("B"), memoryview(row_ends).cast("B"), *columns]
    buffers = [*numbers, memoryview(_block_checksums(numbers)).cast("B")]

    def header(checksum: int) -> bytes:
        return _HEADER.pack(_MAGIC, VERSION, checksum, mark, end, last_checksum, len(streams), row_count)

    checksum = crc32c(header(0)[_CHECKED_FROM:])
    for buffer in buffers:
        checksum = crc32c(buffer, checksum)
    return [header(checksum), *buffers]


def _block_checksums(numbers: Iterable[Buffer]) -> "array[int]":
    """Return the checksum of each block of these numbers, which may begin and end anywhere in these buffers."""
    whole = BLOCK_NUMBERS * NUMBER_BYTES
    checksums = array("I")
    checksum, room = 0, whole
    for buffer in numbers:
        at = 0
        while at < len(buffer):
            piece = buffer[at : at + room]
            checksum, at, room = crc32c(piece, checksum), at + len(piece), room - len(piece)
            if not room:
                checksums.append(checksum)
                checksum, room = 0, whole
    if room < whole:
        checksums.append(checksum)
    return checksums


def unpack_segment_index(name: str, data: memoryview, mark: bytes | None) -> SegmentIndex | None:
    """Return the segment index with its columns as views of `data`; None if its segment has another mark.

    Without a mark the index of any segment is taken: the caller knows that it belongs there.

    Its numbers are checked when they are looked up; the rest is unchecked (see `is_sound`).
    """
    if len(data) < HEADER_BYTES:
        return None
    magic, version, _, found_mark, end, last_checksum, stream_count, row_count = _HEADER.unpack_from(data)
    if (magic, version) != (_MAGIC, VERSION) or mark not in (found_mark, None):
        return None
    number_count = 2 * stream_count + COLUMN_COUNT * row_count
    checksums_at = HEADER_BYTES + number_count * NUMBER_BYTES
    if len(data) != checksums_at + -(-number_count // BLOCK_NUMBERS) * _CHECKSUM_BYTES:
        return None
    content = data[HEADER_BYTES:checksums_at]
    numbers = content.cast("q")
    streams, row_ends = numbers[:stream_count], numbers[stream_count : 2 * stream_count]
    rows = numbers[2 * stream_count :]
    columns = [rows[at * row_count : (at + 1) * row_count] for at in range(COLUMN_COUNT)]
    return SegmentIndex(name, end, last_checksum, streams, row_ends, columns, content, data[checksums_at:].cast("I"))


def map_segment_index(files: Files, name: str, mark: bytes) -> SegmentIndex | None:
    """Map a segment index into memory; return None if its segment has another mark. Raises OSError."""
    return unpack_segment_index(name, files.map(name), mark)


def is_sound(files: Files, name: str) -> bool:
    """Check every byte of a segment index by reading: touched pages of a mapping count as this process's memory."""
    handle = files.open(name)
    try:
        data = files.read(handle, _WINDOW_BYTES, 0)
        if len(data) < HEADER_BYTES:
            return False
        wanted = _HEADER.unpack_from(data)[2]
        checksum, at = crc32c(data[_CHECKED_FROM:]), len(data)
        while len(data) == _WINDOW_BYTES:
            data = files.read(handle, _WINDOW_BYTES, at)
            checksum, at = crc32c(data, checksum), at + len(data)
        return bool(checksum == wanted)
    finally:
        files.close(handle)
