"""Compaction of streams: what is left of their oldest batches is written into one new segment, away from the others.

This runs in a child process. It reads batches, asks the format of records what is left of them (`ports.compaction`),
and writes that. `rewrite_queue` gives the new segment its name and lets it take the place of others.

Theory of operation. A stream's oldest batches, up to the end of some sealed segment, are read from there and from the
compacted segment that has what an earlier compaction left, and go into a new compacted segment, in the same order. From
then on it has the stream's beginning, and nobody looks for that anywhere else; so the others can be cleaned of it. A
stream that is only carried along goes from an old compacted segment into the new one as it is.

Another stream may be joining it (`CompactionOrder`): its batches are read where they lie, and go into the new segment
as the stream's own, at its offsets.

Where there are more keys than memory should hold, some are compacted at a time, over what the time before has written.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import NamedTuple

from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SegmentId
from exacta.adapters.local.index.sealed_segment import (
    NewSegment,
    NewSegmentWriter,
    OpenSegment,
    check_indexes,
    open_sealed,
    require_space,
)
from exacta.adapters.local.index.segment_rows import Rows, Segment
from exacta.adapters.local.opening.segment_scan import WINDOW_BYTES
from exacta.ports.compaction import BYTES_PER_KEY, Buffer, Compact, Compaction, Rules
from exacta.ports.journal import IndexEntry, Joining, JournalDamaged

KEY_BYTES = 128 << 20
"""At most so much memory holds keys at a time."""
_CARRIED = Rules(now_ms=0, delete_retention_ms=0)


class JoiningSource(NamedTuple):
    """Name a stream that is joining another one, and the segments that have its batches, in order."""

    place: Joining
    segments: Sequence[SegmentId]


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
    joining: Sequence[JoiningSource] = ()


class Compacted(NamedTuple):
    """The segment that was written, and how many batches were kept because their records cannot be read."""

    new: NewSegment
    unreadable: int


class _Piece(NamedTuple):
    """A part of a stream's batches: the rows from `low` to `high` (exclusive) in a file."""

    name: str
    segment: Segment
    rows: Rows
    low: int
    high: int
    place: Joining | None = None
    """The place of what is joining; its rows have numbers of their own."""

    @property
    def shift(self) -> int:
        """The stream's offsets are higher by so much than those of the rows."""
        return 0 if self.place is None else self.place.first_offset

    @property
    def last_offset(self) -> int:
        return self.rows.last_offsets[self.high - 1] + self.shift

    @property
    def size(self) -> int:
        return self.rows.end_before(self.high) - self.rows.end_before(self.low)

    @property
    def record_count(self) -> int:
        return self.rows.records_before(self.high) - self.rows.records_before(self.low)


def compact(
    files: Files,
    sources: Sequence[Source],
    rewriter: Compact,
    number: int,
    reserve_bytes: int,
    key_bytes: int = KEY_BYTES,
    open_segment: OpenSegment = open_sealed,
) -> Compacted:
    """Write the compacted segment of this number; raise OSError, also where it would leave less than the reserve.

    Raises JournalDamaged.
    """
    lists = [source.segments for source in sources]
    lists += [each.segments for source in sources for each in source.joining]
    opened = {each: open_segment(files, each) for each in sorted({each for segments in lists for each in segments})}
    check_indexes(files, opened.values())
    pieces = {source.stream: _pieces_of(source, opened) for source in sources}
    most_records = max(
        (sum(each.record_count for each in _from(source.dirty_from, pieces[source.stream])) for source in sources),
        default=0,
    )
    slice_count = max(1, -(-most_records * BYTES_PER_KEY // key_bytes))
    most_bytes = sum(piece.size for of_stream in pieces.values() for piece in of_stream)
    require_space(files, min(slice_count, 2) * most_bytes + reserve_bytes)
    made: NewSegment | None = None
    unreadable = 0
    for slice_number in range(slice_count):
        before = made
        made, segment, unreadable = _pass(files, sources, pieces, rewriter, number, slice_number, slice_count)
        if before is not None:
            files.remove_gradually(before.temporary_name, lambda: False)
            files.remove(before.temporary_index_name)
        pieces = {
            stream: [_Piece(made.temporary_name, segment, rows, rows.low, rows.high)]
            for stream, rows in segment.growing.items()
        }
    assert made is not None
    return Compacted(made, unreadable)


def _pieces_of(source: Source, opened: Mapping[SegmentId, Segment]) -> list[_Piece]:
    """Return what the floor leaves of a source, in order of offset, with what is joining in its places."""

    def whole(segments: Sequence[SegmentId], stream: int, place: Joining | None = None) -> Iterator[_Piece]:
        for segment in map(opened.__getitem__, segments):
            rows = segment.rows(stream)
            if rows is not None:
                yield _Piece(segment.name, segment, rows, rows.low, rows.high, place)

    pieces: list[_Piece] = []
    waiting = deque(source.joining)

    def join_below(offset: float) -> None:
        while waiting and waiting[0].place.first_offset < offset:
            place, segments = waiting.popleft()
            pieces.extend(whole(segments, place.stream, place))

    behind = 0
    for piece in whole(source.segments, source.stream):
        low = piece.rows.at(behind)  # after a repair, batches that were compacted may be there again
        behind = piece.last_offset + 1
        while waiting and waiting[0].place.first_offset <= piece.last_offset:
            at = piece.rows.at(waiting[0].place.first_offset)
            pieces.append(piece._replace(low=low, high=at))
            join_below(piece.rows.first_offsets[at])
            low = at
        pieces.append(piece._replace(low=low))
    join_below(inf)
    return list(_from(source.floor, pieces))


def _from(floor: int, pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    """Yield what is left of pieces from an offset of their stream on."""
    for piece in pieces:
        low = max(piece.low, piece.rows.at(floor - piece.shift))
        if low < piece.high:
            yield piece._replace(low=low)


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
        for piece, stored, whole in _batches(files, _from(source.dirty_from, pieces)):
            with _telling_where(files, source, piece, stored):
                compaction.note(_placed(compaction, piece, stored, whole)[1])
    last_offset = pieces[-1].last_offset if pieces else -1
    for piece, stored, whole in _batches(files, pieces):
        with _telling_where(files, source, piece, stored):  # what is damaged must not get a new, correct checksum
            compaction.check(whole, stored.first_offset, stored.last_offset)
        entry, batch = _placed(compaction, piece, stored._replace(stream=source.stream), whole)
        if source.rules is None:
            new.add(entry, batch)
            continue
        left = compaction.rewrite(batch, entry.last_offset == last_offset)
        if left is not None:
            row = entry._replace(max_timestamp_ms=left.max_timestamp_ms, record_count=left.record_count)
            new.add(row, left.batch)


@contextmanager
def _telling_where(files: Files, source: Source, piece: _Piece, stored: IndexEntry) -> Iterator[None]:
    """Raise JournalDamaged in the place of a batch's ValueError."""
    try:
        yield
    except ValueError as error:
        where = f"offset {stored.first_offset + piece.shift} of partition id {source.stream}"
        raise JournalDamaged(f"the batch at {where} in {files.directory} is damaged: {error}") from error


def _placed(compaction: Compaction, piece: _Piece, entry: IndexEntry, batch: Buffer) -> tuple[IndexEntry, Buffer]:
    """Return a row and its batch as they lie in the stream that is compacted."""
    if piece.place is None:
        return entry, batch
    first_offset, last_offset = entry.first_offset + piece.shift, entry.last_offset + piece.shift
    moved = compaction.moved(batch, first_offset, piece.place.append_time_ms)
    return entry._replace(first_offset=first_offset, last_offset=last_offset), moved


def _batches(files: Files, pieces: Iterable[_Piece]) -> Iterator[tuple[_Piece, IndexEntry, memoryview]]:
    """Yield batches with their index rows, all as they are stored; the rows name no stream."""
    for piece in pieces:
        name, segment, rows, low, high, _ = piece
        handle = files.open(name)
        window, window_at = memoryview(b""), 0
        end = segment.file_offset(rows.positions[high - 1]) + rows.ends[high - 1] - rows.end_before(high - 1)
        try:
            for row in range(low, high):
                size = rows.ends[row] - rows.end_before(row)
                at = segment.file_offset(rows.positions[row])
                begin = at - window_at
                if begin < 0 or begin + size > len(window):
                    window_bytes = max(size, min(WINDOW_BYTES, end - at))
                    window, window_at, begin = memoryview(files.read(handle, window_bytes, at)), at, 0
                if len(window) < begin + size:
                    raise damaged(files, name, at, "the segment ends within a batch")
                yield (
                    piece,
                    IndexEntry(
                        -1,
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
