"""Freeing space: which sealed segments are worth it, and what is written in their place.

Runs on the keeping thread. Owns the choice and the writing of a cleaned segment; when readers change over, what a
failure means, and the removal of the files that were replaced are the cleaner's.

Theory of operation. A batch is alive if its stream is, and it does not lie below the stream's floor. Events need not be
kept at all where two later snapshots hold what they came to. So a run of neighbouring segments of which at most half
is alive is written anew, as one segment without events, in the same order of batches; it bears the base of the first
one, and says where the last one ended. All of it is checked while it is read: a damaged batch must not get a new,
correct checksum. Where the oldest segments have nothing alive they are dropped, and the journal begins later.

A crash leaves the old files, or both: the new one gets its name when it is durable, and its sidecar is; from then on
it stands in the place of the old ones (`layout`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from exacta.adapters.local import writer
from exacta.adapters.local.files import Files, write_fully
from exacta.adapters.local.format import (
    GROUP_HEADER_BYTES,
    MARK_BYTES,
    ROW_BYTES,
    SEGMENT_HEADER_BYTES,
    TEMPORARY_SUFFIX,
    SegmentHeader,
    TableEntry,
    pack_entry,
    pack_segment_header,
)
from exacta.adapters.local.recovery import damaged, write_sidecar
from exacta.adapters.local.rows import Segment, Sidecar
from exacta.adapters.local.scan import SegmentScan
from exacta.ports.journal import Buffer, Entry, IndexEntry

MOST_SEGMENTS = 16
"""How many are made one at once: a bound on the time that it takes, and that readers change over in."""
GROUP_BYTES = 1 << 20
GROUP_ROWS = 5_000
STREAMS_AT_ONCE = 200
SYNC_BYTES = 8 << 20
"""So much is written between two syncs: what piles up delays the sync of a producer's batch."""


class Choice(NamedTuple):
    """Neighbouring segments to clean; where `drops`, they are the oldest ones, and nothing in them is alive."""

    segments: Sequence[Segment]
    drops: bool


def choose(segments: Sequence[Segment], floors: Mapping[int, int], segment_bytes: int) -> Choice | None:
    """Choose among these, the oldest ones, sealed, whose events nobody will replay; None: nothing is worth it."""
    sizes = [cleaned_bytes(segment, floors) for segment in segments]
    dead = next((at for at, size in enumerate(sizes) if size > SEGMENT_HEADER_BYTES), len(sizes))
    if dead:
        return Choice(segments[: min(dead, MOST_SEGMENTS)], drops=True)
    worth_it = [size * 2 <= segment.size for size, segment in zip(sizes, segments, strict=True)]
    if True not in worth_it:
        return None
    begin = worth_it.index(True)
    end, total = begin + 1, sizes[begin]
    while end < len(segments) and end - begin < MOST_SEGMENTS and total + sizes[end] <= segment_bytes:
        # Also a small neighbour that is all alive: else years of cleaning leave thousands of files.
        if not worth_it[end] and segments[end].size * 2 > segment_bytes:
            break
        total += sizes[end]
        end += 1
    # What is left of it was mostly made one before: it is written once more only for as much that is new.
    while begin and end - begin < MOST_SEGMENTS and sizes[begin - 1] <= min(total, segment_bytes - total):
        begin -= 1
        total += sizes[begin]
    return Choice(segments[begin:end], drops=False)


def cleaned_bytes(segment: Segment, floors: Mapping[int, int]) -> int:
    """Return about how large the segment would be, cleaned: a header alone if nothing in it is alive."""
    sidecar = segment.sidecar
    assert sidecar is not None
    size = SEGMENT_HEADER_BYTES
    for number, stream in enumerate(sidecar.streams):
        if not number % STREAMS_AT_ONCE:
            time.sleep(0)  # lets the event loop's thread have the interpreter
        floor = floors.get(stream)
        if floor is not None:
            rows = segment.rows(stream)
            assert rows is not None
            size += rows.size_from(floor) + (rows.high - rows.at(floor)) * ROW_BYTES
    return size


def write(
    files: Files, old: Sequence[Segment], floors: Mapping[int, int], is_wanted: Callable[[], bool]
) -> tuple[Segment, Sidecar]:
    """Write one segment with what is alive in these, durably, but not in their place yet; return it with its sidecar.

    Raises OSError or JournalDamaged, and leaves no trace then, or NotWanted, as soon as `is_wanted` says no.
    """
    new = Segment(old[0].base, old[0].generation + 1)
    temporary_name = new.name + TEMPORARY_SUFFIX
    handle = files.create(temporary_name)
    try:
        try:
            header = _Copy(files, handle, new, floors, is_wanted).copy(old)
        finally:
            files.close(handle)
        new.size = header.size
        return new, write_sidecar(files, new, header.mark, header.end, header.last_checksum)
    except BaseException:
        with suppress(OSError):
            files.remove(temporary_name)
        raise


def put_in_place(files: Files, new: Segment) -> None:
    """Let the segment take the place of those that it was made from, at the next opening at the latest."""
    writer.put_in_place(files, new.name + TEMPORARY_SUFFIX, new.name)


class NotWanted(Exception):
    """The journal is being closed."""


class _Copy:
    """The new segment in the making."""

    def __init__(
        self, files: Files, handle: int, new: Segment, floors: Mapping[int, int], is_wanted: Callable[[], bool]
    ) -> None:
        self._files = files
        self._is_wanted = is_wanted
        self._handle = handle
        self._new = new
        self._floors = floors
        self._position = self._synced = new.base
        self._payload: list[Buffer] = []
        self._payload_bytes = 0
        self._rows: list[IndexEntry] = []

    def copy(self, old: Sequence[Segment]) -> SegmentHeader:
        """Write all of it, the header last; return that."""
        first = old[0].base
        last = old[-1].sidecar
        assert last is not None
        header = SegmentHeader(first, self._files.random_bytes(MARK_BYTES), 0, self._new.generation)
        for segment in old:
            handle = self._files.open(segment.name)
            try:
                scan = SegmentScan(self._files, handle)
                if scan.header is None:
                    raise damaged(self._files, segment.name, 0, "the segment's header is unreadable")
                if segment is old[0]:
                    header = header._replace(previous_checksum=scan.header.previous_checksum)
                    self._writer = writer.Writer(self._files, self._handle, header, header.previous_checksum, first)
                for group in scan.groups():
                    if not self._is_wanted():
                        raise NotWanted
                    time.sleep(0)
                    for entry in group.entries:
                        self._take(handle, segment.file_offset(group.payload_position), entry)
                if scan.fault is not None:
                    raise damaged(self._files, segment.name, scan.fault.offset, scan.fault.reason)
            finally:
                self._files.close(handle)
        self._write_group()
        size = self._position - first + SEGMENT_HEADER_BYTES
        header = header._replace(end=last.end, last_checksum=last.last_checksum, size=size)
        write_fully(self._files, self._handle, [pack_segment_header(header)], 0)
        self._files.sync(self._handle)
        return header

    def _take(self, handle: int, payload_offset: int, entry: TableEntry) -> None:
        for row in entry.rows:
            floor = self._floors.get(row.stream)
            if floor is None or row.last_offset < floor:
                continue
            data = self._files.read(handle, row.size, payload_offset + entry.payload_start + row.start)
            self._rows.append(row._replace(start=self._payload_bytes))
            self._payload.append(data)
            self._payload_bytes += row.size
            if self._payload_bytes >= GROUP_BYTES or len(self._rows) >= GROUP_ROWS:
                self._write_group()

    def _write_group(self) -> None:
        if not self._rows:
            return
        table = b"".join(pack_entry(Entry(b"", (), self._rows), self._payload_bytes))
        payload_position = self._position + GROUP_HEADER_BYTES + len(table)
        for row in self._rows:
            self._new.add(payload_position, row)
        self._position = self._writer.write_group(self._position, table, self._payload, 1, unsynced=False)
        self._payload, self._rows, self._payload_bytes = [], [], 0
        if self._position - self._synced >= SYNC_BYTES:
            self._files.sync_data(self._handle)
            self._synced = self._position
