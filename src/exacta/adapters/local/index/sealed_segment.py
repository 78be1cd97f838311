"""Sealed segments as files that are only read: opening one with its index, and writing a new one of batches alone.

This is what cleaning and compaction have in common. A new segment and its segment index are written durably, under
temporary names that nobody else can have chosen. They become part of the journal by being renamed (`put_in_place`).
"""

import errno
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from exacta.adapters.local import writer
from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files, write_fully
from exacta.adapters.local.format import (
    GROUP_HEADER_BYTES,
    MARK_BYTES,
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    SegmentId,
    pack_entry,
    pack_segment_header,
    temporary_name,
    unpack_segment_header,
)
from exacta.adapters.local.index.segment_index import is_sound, map_segment_index, pack_segment_index
from exacta.adapters.local.index.segment_rows import DamagedIndex, Segment, SegmentIndex
from exacta.ports.journal import Buffer, IndexEntry, JournalEntry

GROUP_BYTES = 1 << 20
GROUP_ROWS = 5_000

OpenSegment: TypeAlias = Callable[[Files, SegmentId], Segment]
"""Opens a sealed segment with its index, as `open_sealed` does; a function that can be imported."""


def read_header(files: Files, segment: Segment) -> SegmentHeader:
    """Return the header of a segment's file; raise JournalDamaged."""
    handle = files.open(segment.name)
    try:
        header = unpack_segment_header(files.read(handle, SEGMENT_HEADER_BYTES, 0))
        segment.size = files.size(handle)
    finally:
        files.close(handle)
    if header is None:
        raise damaged(files, segment.name, 0, "the segment's header is unreadable")
    return header


def open_sealed(files: Files, segment_id: SegmentId) -> Segment:
    """Return the segment with its segment index mapped; look-ups check what they use. Raises JournalDamaged."""
    segment = Segment(*segment_id)
    segment.seal(_map_segment_index(files, segment, read_header(files, segment).mark))
    return segment


def check_indexes(files: Files, segments: Iterable[Segment]) -> None:
    """Raise DamagedIndex if any bit of a segment index is altered: data is about to be removed by what it says."""
    for segment in segments:
        if not is_sound(files, segment.index_name):
            raise DamagedIndex(segment.index_name)


def _map_segment_index(files: Files, segment: Segment, mark: bytes) -> SegmentIndex:
    segment_index = map_segment_index(files, segment.index_name, mark)
    if segment_index is None:
        raise DamagedIndex(segment.index_name)
    return segment_index


def require_space(files: Files, needed_bytes: int) -> None:
    """Raise OSError where fewer bytes are free: the last are what a producer's batch needs, whose failure is final."""
    if (available := files.available_bytes()) < needed_bytes:
        raise OSError(errno.ENOSPC, f"no space to clean in: {needed_bytes} bytes are asked for, {available} are free")


class NewSegment(NamedTuple):
    """A segment that is written, and has no name yet."""

    id: SegmentId
    mark: bytes
    size: int
    temporary_name: str
    temporary_index_name: str


class NewSegmentWriter:
    """Write a segment of batches, in any order of streams, each stream's in order of offset."""

    def __init__(self, files: Files, segment_id: SegmentId, previous_checksum: int) -> None:
        """Create the file; raises OSError. To be closed in any case."""
        self.segment = Segment(*segment_id)
        self._files = files
        self._token = files.random_bytes(4)
        self._header = SegmentHeader(
            segment_id.base, files.random_bytes(MARK_BYTES), previous_checksum, segment_id.generation
        )
        self._position = segment_id.base
        self._payload: list[Buffer] = []
        self._payload_bytes = 0
        self._rows: list[IndexEntry] = []
        self._handle: int | None = files.create(temporary_name(self.segment.name, self._token))
        assert self._handle is not None
        self._writer = writer.Writer(files, self._handle, self._header, previous_checksum, segment_id.base)

    def add(self, row: IndexEntry, batch: Buffer) -> None:
        """Add a batch; its row says where it began elsewhere."""
        self._rows.append(row._replace(start=self._payload_bytes, size=len(batch)))
        self._payload.append(batch)
        self._payload_bytes += len(batch)
        if self._payload_bytes >= GROUP_BYTES or len(self._rows) >= GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        if not self._rows:
            return
        table = b"".join(pack_entry(JournalEntry(b"", (), self._rows), self._payload_bytes))
        payload_position = self._position + GROUP_HEADER_BYTES + len(table)
        for row in self._rows:
            self.segment.add(payload_position, row)
        self._position = self._writer.write_group(self._position, table, self._payload, 1, unsynced=False)
        self._payload, self._rows, self._payload_bytes = [], [], 0

    def finish(self, end: int, last_checksum: int) -> NewSegment:
        """Write the rest, the header last: it stands for the journal up to `end`, where that was the last checksum."""
        segment = self.segment
        self._write_group()
        assert self._handle is not None
        size = self._position - segment.base + SEGMENT_HEADER_BYTES
        header = self._header._replace(end=end, last_checksum=last_checksum, size=size)
        write_fully(self._files, self._handle, [pack_segment_header(header)], 0)
        self._files.sync(self._handle)
        self.close()
        name, index_name = (temporary_name(each, self._token) for each in (segment.name, segment.index_name))
        writer.write_temporary(
            self._files, index_name, pack_segment_index(segment.growing, header.mark, end, last_checksum)
        )
        return NewSegment(segment.id, header.mark, size, name, index_name)

    def close(self) -> None:
        """Close the file; its caller removes a file without a name."""
        if self._handle is not None:
            self._files.close(self._handle)
            self._handle = None


def put_in_place(files: Files, new: NewSegment) -> Segment:
    """Let the segment be part of the journal, at the next opening at the latest; where that fails, nobody knows.

    Raises OSError.
    """
    segment = Segment(*new.id)
    files.rename(new.temporary_index_name, segment.index_name)
    writer.put_in_place(files, new.temporary_name, segment.name)
    segment.seal(_map_segment_index(files, segment, new.mark))
    segment.size = new.size
    return segment
