"""Compaction of streams: what is left of their oldest batches is written into one new segment, away from the others.

This runs in a child process. It reads batches, asks the format of records what is left of them (`ports.compaction`),
and writes that. `rewrite_queue` gives the new segment its name and lets it take the place of others.

Theory of operation. A stream's oldest batches, up to the end of some sealed segment, are read from there and from the
compacted segment that has what an earlier compaction left, and go into a new compacted segment, in the same order. From
then on it has the stream's beginning, and nobody looks for that anywhere else; so the others can be cleaned of it. A
stream that is only carried along goes from an old compacted segment into the new one as it is.

Where there are more keys than memory should hold, some are compacted at a time, over what the time before has written.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SegmentId
from exacta.adapters.local.index.sealed_segment import (
    NewSegment,
    NewSegmentWriter,
    check_indexes,
    open_sealed,
    require_space,
)
from exacta.adapters.local.index.segment_rows import Rows, Segment
from exacta.adapters.local.opening.segment_scan import WINDOW_BYTES
from exacta.ports.compaction import BYTES_PER_KEY, Compact, Compaction, Rules
from exacta.ports.journal import IndexEntry, JournalDamaged

KEY_BYTES = 128 << 20
"""At most so much memory holds keys at a time."""
_CARRIED = Rules(now_ms=0, delete_retention_ms=0)


class Source(NamedTuple):
    """Name a stream and the segments that have its batches, in order of offset.

    Batches below `floor` are dropped, and what was not compacted before begins at `dirty_from`. A stream without
    `rules` is carried along.
    """

    stream: int
    segments: Sequence[SegmentId]
    floor: int
    dirty_from: int
    rules: Rules | None


class Compacted(NamedTuple):
    """The segment that was written, and how many batches were kept because their records cannot be read."""

    new: NewSegment
    unreadable: int


class _Piece(NamedTuple):
    """A part of a stream's batches, in a file."""

    name: str
    segment: Segment
    rows: Rows


def compact(
    files: Files,
    sources: Sequence[Source],
    rewriter: Compact,
    number: int,
    reserve_bytes: int,
    key_bytes: int = KEY_BYTES,
) -> Compacted:
    """Write the compacted segment of this number; raise OSError, also where it would leave less than the reserve.

    Raises JournalDamaged.
    """
    opened = {each: open_sealed(files, each) for source in sources for each in source.segments}
    check_indexes(files, opened.values())
    pieces = {
        source.stream: [
            _Piece(segment.name, segment, rows)
            for segment in (opened[each] for each in source.segments)
            if (rows := segment.rows(source.stream)) is not None
        ]
        for source in sources
    }
    most_records = max(
        (sum(_records_from(piece.rows, source.dirty_from) for piece in pieces[source.stream]) for source in sources),
        default=0,
    )
    slice_count = max(1, -(-most_records * BYTES_PER_KEY // key_bytes))
    most_bytes = sum(piece.rows.size_from(source.floor) for source in sources for piece in pieces[source.stream])
    require_space(files, min(slice_count, 2) * most_bytes + reserve_bytes)
    made: NewSegment | None = None
    unreadable = 0
    for slice_number in range(slice_count):
        before = made
        made, segment, unreadable = _pass(files, sources, pieces, rewriter, number, slice_number, slice_count)
        if before is not None:
            files.remove_gradually(before.temporary_name, lambda: False)
            files.remove(before.temporary_index_name)
        pieces = {stream: [_Piece(made.temporary_name, segment, rows)] for stream, rows in segment.growing.items()}
    assert made is not None
    return Compacted(made, unreadable)


def _records_from(rows: Rows, offset: int) -> int:
    return rows.records_before(rows.high) - rows.records_before(rows.at(offset))


def _pass(
    files: Files,
    sources: Sequence[Source],
    pieces: dict[int, list[_Piece]],
    rewriter: Compact,
    number: int,
    slice_number: int,
    slice_count: int,
) -> tuple[NewSegment, Segment, int]:
    new = NewSegmentWriter(files, SegmentId(number, is_compacted=True), 0)
    unreadable = 0
    try:
        for source in sources:
            compaction = rewriter(source.rules or _CARRIED, slice_number, slice_count)
            _write_stream(files, source, pieces.get(source.stream, []), compaction, new)
            unreadable += compaction.unreadable
        return new.finish(0, 0), new.segment, unreadable
    finally:
        new.close()


def _write_stream(
    files: Files, source: Source, pieces: Sequence[_Piece], compaction: Compaction, new: NewSegmentWriter
) -> None:
    if source.rules is not None:
        for _, batch in _batches(files, source.stream, pieces, max(source.floor, source.dirty_from)):
            compaction.note(batch)
    last_offset = max((piece.rows.last_offsets[piece.rows.high - 1] for piece in pieces), default=-1)
    for entry, batch in _batches(files, source.stream, pieces, source.floor):
        try:
            compaction.check(batch, entry.first_offset, entry.last_offset)
        except ValueError as error:  # what is damaged must not get a new, correct checksum
            where = f"offset {entry.first_offset} of partition id {source.stream}"
            raise JournalDamaged(f"the batch at {where} in {files.directory} is damaged: {error}") from error
        if source.rules is None:
            new.add(entry, batch)
            continue
        left = compaction.rewrite(batch, entry.last_offset == last_offset)
        if left is not None:
            row = entry._replace(max_timestamp_ms=left.max_timestamp_ms, record_count=left.record_count)
            new.add(row, left.batch)


def _batches(
    files: Files, stream: int, pieces: Sequence[_Piece], floor: int
) -> Iterator[tuple[IndexEntry, memoryview]]:
    """Yield the stream's batches, with their index rows, from the first that `floor` leaves."""
    for name, segment, rows in pieces:
        handle = files.open(name)
        window, window_at = memoryview(b""), 0
        try:
            for row in range(rows.at(floor), rows.high):
                size = rows.ends[row] - rows.end_before(row)
                at = segment.file_offset(rows.positions[row])
                begin = at - window_at
                if begin < 0 or begin + size > len(window):
                    window, window_at, begin = memoryview(files.read(handle, max(size, WINDOW_BYTES), at)), at, 0
                if len(window) < begin + size:
                    raise damaged(files, name, at, "the segment ends within a batch")
                yield (
                    IndexEntry(
                        stream,
                        rows.first_offsets[row],
                        rows.last_offsets[row],
                        rows.timestamps[row],
                        0,
                        size,
                        rows.records_before(row + 1) - rows.records_before(row),
                    ),
                    window[begin : begin + size],
                )
        finally:
            files.close(handle)
