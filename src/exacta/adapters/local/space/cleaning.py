"""Cleaning of segments: the choice of sealed segments whose space is freed, and the writing of their replacement.

This runs in a child process, and writes a cleaned segment as a temporary file. `rewrite_queue` gives the file its name,
lets readers change over, removes the files that were replaced, and decides what a failure means.

Theory of operation. A batch is alive if its stream is, and it does not lie below the stream's floor. Events need not be
kept if two later snapshots hold their outcome. So a run of neighbouring segments of which at most half is alive is
written again, as one segment without events, in the same order of batches. It has the base of the first one, and says
where the last one ended. All of it is checked while it is read: a damaged batch must not get a new, correct checksum.
If nothing in the oldest segments is alive they are dropped, and the journal begins later.

A crash leaves the old files, or both. The new segment gets its name when it and its segment index are durable. From
then on it stands in the place of the old ones (`layout`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import ROW_BYTES, SEGMENT_HEADER_BYTES, SegmentId
from exacta.adapters.local.index.sealed_segment import (
    NewSegment,
    NewSegmentWriter,
    OpenSegment,
    check_indexes,
    open_sealed,
    read_header,
    require_space,
)
from exacta.adapters.local.index.segment_rows import DamagedIndex, Segment
from exacta.adapters.local.opening.segment_scan import SegmentScan
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.local.space import reserve

SPARED_BYTES = 256 << 10
"""So much of a disk with a reserve is left alone: sizes are known about, and others write meanwhile."""
MOST_SEGMENTS = 16
"""At most this many segments are made one at once, which bounds the time of that and of the readers' change-over."""


class Choice(NamedTuple):
    """Neighbouring segments to clean; where `drops`, they are the oldest ones, and nothing in them is alive."""

    segments: Sequence[Segment]
    drops: bool


class Made(NamedTuple):
    """Tell what was done: `new` is written in place of these segments; None: they can be dropped.

    If there are no segments, `waits_for_snapshot` says whether there will be some after a later snapshot.
    """

    segments: Sequence[SegmentId]
    freed_bytes: int = 0
    new: NewSegment | None = None
    waits_for_snapshot: bool = False


def make_room(
    files: Files,
    sealed_ids: Sequence[SegmentId],
    floors: Mapping[int, int],
    segment_bytes: int,
    open_segment: OpenSegment = open_sealed,
) -> Made:
    """Choose among the oldest, sealed segments, and write what takes their place; raise OSError or JournalDamaged."""
    replays_begin_at = snapshot_files.replays_begin_at(files)
    sealed = [open_segment(files, each) for each in sealed_ids]
    # What one says of its end is checked before the choice: one left out by that would part its neighbours.
    for each, following in pairwise(sealed):
        if each.index is None or each.index.end != following.base:
            raise DamagedIndex(each.index_name)
    unneeded = [each for each in sealed if each.index is not None and each.index.end <= replays_begin_at]
    most_bytes = _most_bytes(files, segment_bytes)
    choice = choose(unneeded, floors, segment_bytes, most_bytes)
    if choice is None:
        if most_bytes is not None and choose(unneeded, floors, segment_bytes) is not None:
            require_space(files, SPARED_BYTES + segment_bytes)
        waits = len(unneeded) < len(sealed) and choose(sealed, floors, segment_bytes) is not None
        return Made((), waits_for_snapshot=waits)
    check_indexes(files, choice.segments)
    ids = [segment.id for segment in choice.segments]
    freed_bytes = sum(segment.size for segment in choice.segments)
    if choice.drops:
        return Made(ids, freed_bytes)
    if most_bytes is None:
        require_space(files, freed_bytes + segment_bytes)
    new = write(files, choice.segments, floors)
    return Made(ids, freed_bytes - new.size, new)


def _most_bytes(files: Files, segment_bytes: int) -> int | None:
    """Return how large a new segment may be on a disk with a reserve; None: without one much more must be free.

    A reserve is for this, too: on a full disk the cleaning comes first, and what it leaves is a producer's.
    """
    if reserve.NAME not in files.names():
        return None
    return min(segment_bytes, files.available_bytes() - SPARED_BYTES)


def choose(
    segments: Sequence[Segment], floors: Mapping[int, int], segment_bytes: int, most_bytes: int | None = None
) -> Choice | None:
    """Choose among these, the oldest ones, sealed, whose events nobody will replay; None: nothing is worth it.

    What takes their place has at most `segment_bytes`, and at most `most_bytes`, if that is given.
    """
    sizes = [cleaned_bytes(segment, floors) for segment in segments]
    dead = next((at for at, size in enumerate(sizes) if size > SEGMENT_HEADER_BYTES), len(sizes))
    if dead:
        return Choice(segments[: min(dead, MOST_SEGMENTS)], drops=True)
    most = segment_bytes if most_bytes is None else most_bytes
    fits = [most_bytes is None or size <= most_bytes for size in sizes]
    worth_it = [each and size * 2 <= of.size for each, size, of in zip(fits, sizes, segments, strict=True)]
    if True not in worth_it:
        return None
    begin = worth_it.index(True)
    end, total = begin + 1, sizes[begin]
    while end < len(segments) and end - begin < MOST_SEGMENTS and total + sizes[end] <= most:
        # Also a small neighbour that is all alive: else years of cleaning leave thousands of files.
        if not worth_it[end] and segments[end].size * 2 > segment_bytes:
            break
        total += sizes[end]
        end += 1
    # What is left of it was mostly made one before: it is written once more only for as much that is new.
    while begin and end - begin < MOST_SEGMENTS and sizes[begin - 1] <= min(total, most - total):
        begin -= 1
        total += sizes[begin]
    return Choice(segments[begin:end], drops=False)


def cleaned_bytes(segment: Segment, floors: Mapping[int, int]) -> int:
    """Return about how large the segment would be, cleaned: a header alone if nothing in it is alive."""
    size = SEGMENT_HEADER_BYTES
    for stream in segment.streams:
        floor = floors.get(stream)
        if floor is not None:
            rows = segment.rows(stream)
            assert rows is not None
            size += rows.size_from(floor) + (rows.high - rows.at(floor)) * ROW_BYTES
    return size


def write(files: Files, old: Sequence[Segment], floors: Mapping[int, int]) -> NewSegment:
    """Write one segment with what is alive in these, durably; raise OSError or JournalDamaged."""
    first, last = old[0], old[-1].index
    assert last is not None
    new_id = SegmentId(first.base, first.generation + 1)
    new = NewSegmentWriter(files, new_id, read_header(files, first).previous_checksum)
    try:
        for segment in old:
            _copy(files, segment, floors, new)
        return new.finish(last.end, last.last_checksum)
    finally:
        new.close()


def _copy(files: Files, segment: Segment, floors: Mapping[int, int], new: NewSegmentWriter) -> None:
    handle = files.open(segment.name)
    try:
        scan = SegmentScan(files, handle)
        if scan.header is None:
            raise damaged(files, segment.name, 0, "the segment's header is unreadable")
        for group in scan.groups():
            payload_offset = segment.file_offset(group.payload_position)
            for entry in group.entries:
                for row in entry.rows:
                    floor = floors.get(row.stream)
                    if floor is not None and row.last_offset >= floor:
                        new.add(row, files.read(handle, row.size, payload_offset + entry.payload_start + row.start))
        if scan.fault is not None:
            raise damaged(files, segment.name, scan.fault.offset, scan.fault.reason)
    finally:
        files.close(handle)
