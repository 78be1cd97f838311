"""Inspection of a journal that is not opened: every byte is checked, nothing is changed, and no fault ends it.

A fault is judged as `opening.recovery` judges it, but only reported. `docs/reference/journal-format.md` has the table
of faults; a verdict says which of its rows it is.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from exacta.adapters.local import format_file
from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import (
    FORMAT_NAME,
    REPAIR_NAME,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    file_name,
    positions_of,
    segments_of,
    unpack_snapshot,
)
from exacta.adapters.local.format_file import UnsupportedFormat
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.layout import begin_of_replay, lay_out
from exacta.adapters.local.opening.recovery import evidence_of_damage, misplaced, sealed_at
from exacta.adapters.local.opening.segment_scan import ScanFault, ScannedGroup, SegmentScan
from exacta.ports.journal import Schema


class Verdict(Enum):
    """The meaning of a fault."""

    DAMAGED = "damaged"
    """Durable data is altered or missing; the journal is not opened, or cannot be replayed."""
    CUT_SHORT = "cut short"
    """Writes in flight were cut short when process or machine stopped, never durable; the next start cuts them off."""
    MADE_AGAIN = "made again"
    """The next start makes the file again, which costs time and nothing else."""


class Finding(NamedTuple):
    """Tell what is not as it was written, and where; `offset` is a byte of the file."""

    name: str
    offset: int
    reason: str
    verdict: Verdict


class SoundGroup(NamedTuple):
    """A sound group, and where it lies."""

    name: str
    offset: int
    group: ScannedGroup


def inspect(files: Files, schema: Schema | None = None) -> Iterator[SoundGroup | Finding]:
    """Yield all groups that can be read, and everything that is not as it was written, in the journal's order.

    The directory must be locked. Without a schema, the journal's schema is not judged. Raises OSError, and
    UnsupportedFormat for a directory that another version wrote: nothing is known of damage to it.
    """
    names = files.names()
    if REPAIR_NAME in names:
        yield Finding(REPAIR_NAME, 0, "a repair was interrupted", Verdict.DAMAGED)
    yield from _format(files, names, schema)
    segments, compacted, _, _, faults = lay_out(files, names)
    for fault in faults:
        yield Finding(fault.name, 0, fault.reason, Verdict.DAMAGED)
    snapshots = positions_of(names, SNAPSHOT_SUFFIX)
    if not segments and snapshots:
        yield Finding(file_name(snapshots[-1], SNAPSHOT_SUFFIX), 0, "there is no segment", Verdict.DAMAGED)
    previous: int | None = None
    for segment, following in pairwise([*segments, None]):
        assert segment is not None
        walk = _SegmentInspection(files, segment, previous)
        yield from walk.groups(None if following is None else following.base)
        if following is not None:
            yield from walk.segment_index(names)
        elif snapshots and snapshots[-1] > walk.end:
            reason = f"the journal ends before its snapshot of {snapshots[-1]}"
            yield Finding(segment.name, walk.size, reason, Verdict.DAMAGED)
        previous = walk.last_checksum
    for segment in compacted:
        walk = _SegmentInspection(files, segment, None)
        yield from walk.groups(0)
        yield from walk.segment_index(names)
    newest = 0
    for position in snapshots:
        name = file_name(position, SNAPSHOT_SUFFIX)
        if unpack_snapshot(read_file(files, name), position) is None:
            yield Finding(name, 0, "it is not what was written", Verdict.MADE_AGAIN)
        else:
            newest = position
    if segments and begin_of_replay(segments, newest) is None:
        yield Finding(segments[0].name, 0, "events are gone that no sound snapshot holds", Verdict.DAMAGED)


def _format(files: Files, names: list[str], schema: Schema | None) -> Iterator[Finding]:
    if FORMAT_NAME not in names:
        if segments_of(names, SEGMENT_SUFFIX):
            yield Finding(FORMAT_NAME, 0, "it is missing", Verdict.DAMAGED)
        return
    found = format_file.load(files)
    if found is None:
        yield Finding(FORMAT_NAME, 0, "it is not what was written", Verdict.DAMAGED)
    elif not format_file.is_read(found, schema):
        raise UnsupportedFormat(format_file.refusal(files, found, schema))


class _SegmentInspection:
    """Walk over one segment; afterwards `end` and `last_checksum` (None: not known) say where the walk ended."""

    def __init__(self, files: Files, segment: Segment, previous_checksum: int | None) -> None:
        self.segment = segment
        self.end = segment.base
        self.size = 0
        self.last_checksum: int | None = None
        self._files = files
        self._previous_checksum = previous_checksum
        self._mark = b""
        self._is_whole = True

    def groups(self, end: int | None) -> Iterator[SoundGroup | Finding]:
        """Yield what lies in it, up to `end`, where the next segment begins (None: it is the last one)."""
        handle = self._files.open(self.segment.name)
        try:
            scan = SegmentScan(self._files, handle)
            self.size = scan.size
            header = scan.header
            if header is None:
                # Case 2: a crash while the segment was begun. What is longer, or followed by another, was whole once.
                was_begun = end is None and scan.size <= SEGMENT_HEADER_BYTES
                verdict = Verdict.CUT_SHORT if was_begun else Verdict.DAMAGED
                yield self._fault(0, "the segment's header is unreadable", verdict)
                return
            reason = misplaced(header, self.segment, self._previous_checksum)
            if reason is not None:
                yield self._fault(0, reason, Verdict.DAMAGED)
            if header.base != self.segment.base:
                return
            self._mark = header.mark
            yield from self._scan(scan, is_last=end is None)
            self.end, last_checksum = sealed_at(header, scan)
            self.last_checksum = last_checksum if scan.fault is None else None
            if end is not None and self._is_whole and self.end != end:  # case 11
                yield self._fault(scan.offset, f"it ends at position {self.end}, not {end}", Verdict.DAMAGED)
            if header.was_written_at_once and self._is_whole and scan.size != header.size:
                yield self._fault(scan.size, f"it has {scan.size} bytes, not {header.size}", Verdict.DAMAGED)
        finally:
            self._files.close(handle)

    def _scan(self, scan: SegmentScan, *, is_last: bool) -> Iterator[SoundGroup | Finding]:
        while True:
            at = scan.offset
            for group in scan.groups():
                if self._is_whole:
                    for entry in group.entries:
                        for row in entry.rows:
                            self.segment.add(group.payload_position + entry.payload_start, row)
                yield SoundGroup(self.segment.name, at, group)
                at = scan.offset
            if scan.fault is None:
                return
            finding = self._judged(scan, scan.fault, is_last=is_last)
            yield finding
            later = next(scan.later_groups(scan.fault.offset + 1), None)
            if later is None or finding.verdict is Verdict.CUT_SHORT:
                return
            scan.resume(*later)

    def _judged(self, scan: SegmentScan, fault: ScanFault, *, is_last: bool) -> Finding:
        if not is_last or not self._is_whole:  # what follows damage was not cut short
            return self._fault(fault.offset, fault.reason, Verdict.DAMAGED)
        evidence = evidence_of_damage(scan, fault)
        if evidence is None:
            return self._fault(fault.offset, fault.reason, Verdict.CUT_SHORT)
        return self._fault(fault.offset, fault.reason + evidence, Verdict.DAMAGED)

    def _fault(self, offset: int, reason: str, verdict: Verdict) -> Finding:
        self._is_whole = False
        return Finding(self.segment.name, offset, reason, verdict)

    def segment_index(self, names: list[str]) -> Iterator[Finding]:
        """Compare the segment index with one that is made now; that takes a whole segment."""
        name = self.segment.index_name
        if name not in names:
            yield Finding(name, 0, "it is missing", Verdict.MADE_AGAIN)
        elif self._is_whole:
            assert self.last_checksum is not None
            wanted = b"".join(pack_segment_index(self.segment.growing, self._mark, self.end, self.last_checksum))
            if read_file(self._files, name) != wanted:
                yield Finding(name, 0, "it does not fit its segment", Verdict.MADE_AGAIN)
