"""Replay: reads the events of a journal from a snapshot on, at a start and to fold the next snapshot."""

from collections.abc import Callable, Iterator, Sequence

from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SNAPSHOT_SUFFIX, file_name
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.layout import begin_of_replay
from exacta.adapters.local.opening.segment_scan import SegmentScan


def segments_after(files: Files, segments: Sequence[Segment], position: int) -> Sequence[Segment]:
    """Return those of the journal's segments that have the events from `position` on; raise JournalDamaged."""
    first = begin_of_replay(segments, position)
    if first is None:
        raise damaged(files, segments[0].name, 0, "events are gone that no sound snapshot holds")  # case 16
    return segments[first:]


def events(
    files: Files,
    segments: Sequence[Segment],
    position: int,
    end: int | None = None,
    reached: Callable[[int], object] = lambda reached: None,
) -> Iterator[bytes]:
    """Yield the events from `position` to `end` (None: to the last), both boundaries of groups, in these segments.

    `reached` is told the end of each group before its events come.
    Raises JournalDamaged where what is stored is not what was written, OSError where it cannot be read.
    """
    ended = position
    for segment in segments:
        handle = files.open(segment.name)
        try:
            scan = SegmentScan(files, handle)
            if scan.header is None:
                raise damaged(files, segment.name, 0, "the segment's header is unreadable")
            while end is None or scan.end < end:  # what follows `end` may be in the midst of being written
                group = next(scan.groups(), None)
                if group is None:
                    break
                if group.position < position < group.end:
                    name = file_name(position, SNAPSHOT_SUFFIX)
                    raise damaged(files, name, 0, "the snapshot ends within a group")
                if group.position >= position:
                    reached(group.end)
                    for entry in group.entries:
                        yield entry.event
            if scan.fault is not None:
                raise damaged(files, segment.name, scan.fault.offset, scan.fault.reason)
            ended = scan.end
        finally:
            files.close(handle)
    assert end is None or ended == end, "a position is a boundary between groups"
