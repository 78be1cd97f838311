"""The journal in local files: one directory, one process.

Owns the event-loop side: what an append checks and frames before it is handed to the journal thread, what becomes
visible when it returns, when to roll, when to ask for a snapshot. The threads' side is in `writer`, `reading`,
`snapshots` and `cleaner`; what the files contain in `format`; opening them in `recovery`.

Theory of operation. Three threads beside the event loop: the *journal thread* appends groups, syncs, and begins new
segments; the *reading threads* (`reading`) read what is not in the page cache, and give back what leaves it; the
*keeping thread* writes segment indexes and snapshots and frees space, one after the other: their syncs take long and
must not hold up appends. All state here is touched on the event-loop thread only; the threads get what they need with
the job and answer through `call_soon`.

An append is one write and one fdatasync. A small group can also be written on the event loop itself, ahead of the sync
of a later append: a copy into the page cache costs a tenth of waking a thread and hearing from it. Or along with a
sync, if that is asked for and the disk has been quick lately (`pace`, decision 0023). The first failure of any of these
is final (docs/explanation/architecture.md#traps): after a failed fsync the kernel may have dropped the pages, so a
repeated one proves nothing.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from exacta.adapters.local.files import Files, PosixFiles
from exacta.adapters.local.format import GROUP_HEADER_BYTES, pack_entry
from exacta.adapters.local.index.segment_rows import DamagedIndex, Segment, SegmentIndex
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.opening import recovery
from exacta.adapters.local.opening.unsynced_end import Tail
from exacta.adapters.local.page_cache import KEPT_BYTES, Growth
from exacta.adapters.local.reading import Reader
from exacta.adapters.local.snapshots.snapshot_schedule import Done as SnapshotDone
from exacta.adapters.local.snapshots.snapshot_schedule import Snapshotter
from exacta.adapters.local.space.compaction_plan import Compactor
from exacta.adapters.local.space.rewrite_queue import Cleaner
from exacta.adapters.local.sync_pace import Pace
from exacta.adapters.local.worker import NewWorker, Worker
from exacta.ports.compaction import Compact
from exacta.ports.journal import (
    Appended,
    AppendResult,
    Buffer,
    Cleaned,
    CompactionOrder,
    Conflict,
    Entry,
    Extent,
    Failed,
    Fold,
    IndexEntry,
    JournalDamaged,
    JournalError,
    TimeEntry,
)

SEGMENT_BYTES = 128 << 20
# Beyond so many events a replay would take seconds, even if they do not fill a segment.
SNAPSHOT_EVENTS = 200_000
# The most that the event loop copies in one write, some ten microseconds; and, with what was written ahead, the most
# that it waits to see synced.
AT_ONCE_BYTES = 64 << 10
# The most that recovery has to write once more.
UNSYNCED_BYTES = 4 << 20

logger = logging.getLogger(__name__)


_PlacedRows = tuple[int, Sequence[IndexEntry]]
"""Where an entry's payload begins, as a position, and its index."""


class _Framed(NamedTuple):
    """A group as it will be written; `end` is the position after it."""

    table: bytes
    payload: Sequence[Buffer]
    entry_count: int
    end: int
    rows: Sequence[_PlacedRows]


class _Sealed(NamedTuple):
    """What the writer knew of the segment that it left."""

    mark: bytes
    last_checksum: int


class _Outcome(NamedTuple):
    """What the journal thread made of an append; `sealed` if it rolled."""

    result: Appended | Failed
    sealed: _Sealed | None


class LocalJournal:
    """Implement `exacta.ports.journal.Journal` in a directory; made by `open`."""

    def __init__(
        self,
        files: Files,
        recovered: recovery.Recovered,
        call_soon: Callable[..., object],
        segment_bytes: int,
        snapshot_events: int,
        unsynced_writes: bool,
        new_worker: NewWorker,
        elapsed_seconds: Callable[[], float],
        busy_seconds: Callable[[], float],
    ) -> None:
        self.position = recovered.position
        self._files = files
        self._call_soon = call_soon
        self._segment_bytes = segment_bytes
        self._segments = recovered.segments
        self._wants_seal = False
        self._elapsed_seconds = elapsed_seconds
        self._busy_seconds = busy_seconds
        self._pace = Pace()
        self._cache_growth = Growth()
        self._index = recovered.index
        self._index.on_damage = self._damaged
        self._on_failure: Callable[[Failed], None] = lambda failed: None
        self._writer = recovered.writer
        self._tail = Tail(files, recovered.position)
        self._unsynced_writes = unsynced_writes
        self.may_have_lost = self._tail.may_have_lost
        self._reader = Reader(files, call_soon, new_worker)
        self._journal_thread = new_worker("exacta-journal", 1)
        self._keeping_thread = new_worker("exacta-journal-keep", 1)
        self._failure: Failed | None = None
        # The append in flight: the position at its end, and the index rows with the position of their payload.
        self._in_flight_end: int | None = None
        self._in_flight_rows: Sequence[_PlacedRows] = []
        self._outcome: _Outcome | None = None  # set by the journal thread, taken by `_settle`
        self._new_segment_indexes: deque[tuple[Segment, SegmentIndex]] = deque()  # filled by the keeping thread
        self._missing_segment_indexes: deque[tuple[Segment, int, _Sealed]] = (
            deque()
        )  # likewise, and tried again by `clean`
        self._aside = files.aside()
        self._snapshotter = Snapshotter(
            files, self._aside, self._keeping_thread, self._post, snapshot_events=snapshot_events
        )
        self._cleaner = Cleaner(
            files,
            self._aside,
            self._keeping_thread,
            self._post,
            segment_bytes=segment_bytes,
            change_over=self._change_over,
            want_snapshot=self._snapshotter.want,
            on_damage=self._damaged,
        )
        self._compactor = Compactor(
            recovered.compacted,
            recovered.next_compacted,
            self._index,
            self._reader,
            self._cleaner,
            self._post,
            segment_bytes=segment_bytes,
        )

    @classmethod
    def open(
        cls,
        directory: Path | Files,
        call_soon: Callable[..., object],
        *,
        segment_bytes: int = SEGMENT_BYTES,
        snapshot_events: int = SNAPSHOT_EVENTS,
        unsynced_writes: bool = True,
        new_worker: NewWorker = Worker,
        elapsed_seconds: Callable[[], float] = time.perf_counter,
        busy_seconds: Callable[[], float] = time.thread_time,
    ) -> "LocalJournal":
        """Open the journal in `directory`, created if need be; blocks until it is recovered.

        `call_soon(callback, *args)` is called from any thread and must run the callback on the event loop. A segment is
        sealed once it has `segment_bytes`. Without `unsynced_writes`, `write` takes only what it is to make durable.
        `new_worker` makes what runs the journal's jobs: threads, but in simulations. `elapsed_seconds` measures how
        long a sync takes, `busy_seconds` the processor time of the thread that writes: how long it waits for the
        interpreter's lock says nothing of the disk or the memory. Raises JournalError: DirectoryInUse, JournalDamaged,
        UnsupportedFormat, or itself where the operating system refuses.
        """
        files = PosixFiles(directory) if isinstance(directory, Path) else directory
        try:
            files.lock()
            try:
                recovered = recovery.recover(files)
                return cls(
                    files,
                    recovered,
                    call_soon,
                    segment_bytes,
                    snapshot_events,
                    unsynced_writes,
                    new_worker,
                    elapsed_seconds,
                    busy_seconds,
                )
            except BaseException:
                files.unlock()
                raise
        except OSError as error:
            raise JournalError(f"the journal in {files.directory} cannot be opened: {error}") from error

    def on_failure(self, callback: Callable[[Failed], None]) -> None:
        """See `JournalReader.on_failure`."""
        self._on_failure = callback

    def _damaged(self, damage: DamagedIndex) -> None:
        if self._failure is None:
            self._failure = Failed(f"in {self._files.directory}, {damage}")
            self._on_failure(self._failure)

    # --- appending ---------------------------------------------------------------------------------------------------

    def append(self, expected_position: int, entries: Sequence[Entry], done: Callable[[AppendResult], None]) -> int:
        """See `Journal.append`."""
        position = self.position
        if self._failure is not None:
            self._call_soon(done, self._failure)
            return position
        if expected_position != position:
            self._call_soon(done, Conflict(position))
            return position
        assert self._in_flight_end is None, "one append at a time"
        if not entries and self._writer.durable_end == position:
            raise ValueError("an append needs entries where all is durable")
        group = self._frame(entries) if entries else None
        end, rows = (group.end, group.rows) if group is not None else (position, [])
        self._in_flight_end = end
        self._in_flight_rows = rows
        self._snapshotter.count(len(entries))
        roll = group is not None and self._is_full
        self._journal_thread.submit(lambda: self._append(position, group, roll, done))
        return end

    @property
    def is_quick(self) -> bool:
        """See `Journal.is_quick`."""
        return self._pace.is_quick and self._goes_on

    @property
    def _goes_on(self) -> bool:
        """Whether a group needs nothing but to be written: this opening has a note, and its segment has room."""
        return self._tail.has_begun and not self._is_full

    @property
    def _is_full(self) -> bool:
        return self._wants_seal or self.position - self._segments[-1].base >= self._segment_bytes

    def write(self, expected_position: int, entries: Sequence[Entry], *, durably: bool = False) -> AppendResult | None:
        """See `Journal.write`."""
        position = self.position
        if self._failure is not None:
            return self._failure
        if expected_position != position:
            return Conflict(position)
        assert self._in_flight_end is None, "no write while an append is in flight"
        if not entries:
            raise ValueError("a write needs entries")
        if not (self.is_quick if durably else self._unsynced_writes and self._goes_on):
            return None
        unsynced = position - self._writer.durable_end
        size = sum(len(entry.event) + sum(map(len, entry.payload)) for entry in entries)
        if unsynced >= UNSYNCED_BYTES or size + (unsynced if durably else 0) > AT_ONCE_BYTES:
            return None
        group = self._frame(entries)
        try:
            end = self._writer.write_group(
                position, group.table, group.payload, group.entry_count, unsynced=not durably
            )
            if durably:
                self._sync(end)
            else:
                self._tail.wrote(end)
        except OSError as error:
            self._failure = Failed(str(error))
            return self._failure
        assert end == group.end
        self._snapshotter.count(len(entries))
        self._take_in(end, group.rows)
        return Appended(end)

    def _frame(self, entries: Sequence[Entry]) -> _Framed:
        table_parts: list[bytes] = []
        payload: list[Buffer] = []
        payload_size = 0
        rows: list[tuple[int, Sequence[IndexEntry]]] = []
        last_offsets: dict[int, int] = {}
        for entry in entries:
            start = payload_size
            for buffer in entry.payload:
                payload_size += len(buffer)
            payload += entry.payload
            if entry.index:
                self._check_index(entry.index, payload_size - start, last_offsets)
                rows.append((start, entry.index))
            table_parts += pack_entry(entry, payload_size - start)
        table = b"".join(table_parts)
        payload_position = self.position + GROUP_HEADER_BYTES + len(table)
        placed = [(payload_position + start, index) for start, index in rows]
        return _Framed(table, payload, len(entries), payload_position + payload_size, placed)

    def _check_index(self, index: Sequence[IndexEntry], payload_size: int, last_offsets: dict[int, int]) -> None:
        for row in index:
            stream, first_offset, last_offset, _, start, size, _ = row
            if start < 0 or size < 0 or start + size > payload_size:
                raise ValueError(f"{row} points outside its payload of {payload_size} bytes")
            before = last_offsets.get(stream)
            if before is None:
                before = self._index.last_offset(stream)
            if not before < first_offset <= last_offset:
                raise ValueError(f"{row} goes back in its stream, which is at {before}")
            last_offsets[stream] = last_offset

    def _append(self, position: int, group: _Framed | None, roll: bool, done: Callable[[AppendResult], None]) -> None:
        """Write one group if there is one, and sync; on the journal thread."""
        result: Appended | Failed = Failed("the append did not finish")
        sealed: _Sealed | None = None
        try:
            if roll:
                sealed = _Sealed(self._writer.mark, self._writer.last_checksum)
                self._writer.roll(position)
            end = position
            if group is not None:
                began = self._busy_seconds()
                end = self._writer.write_group(position, group.table, group.payload, group.entry_count, unsynced=False)
                self._cache_growth.took(end - position, self._busy_seconds() - began)
            self._sync(end)
            if not self._tail.has_begun:
                self._tail.begin(end, unsynced_writes=self._unsynced_writes)
            result = Appended(end)
        except OSError as error:
            result = Failed(str(error))
        finally:
            self._outcome = _Outcome(result, sealed)
            self._post(self._finish_append, result, done)

    def _sync(self, end: int) -> None:
        began = self._elapsed_seconds()
        self._writer.sync(end)
        self._pace.took(self._elapsed_seconds() - began)

    def _finish_append(self, result: Appended | Failed, done: Callable[[AppendResult], None]) -> None:
        self._settle()
        done(result)

    def _settle(self) -> None:
        """Make the group that was in flight visible, or the journal unusable; on the event loop, or while closing."""
        if self._outcome is None:
            return
        (result, sealed), self._outcome = self._outcome, None
        end, self._in_flight_end = self._in_flight_end, None
        if isinstance(result, Failed):
            self._failure = result
            return
        assert result.position == end, "the journal thread framed another group than was announced"
        if sealed is not None:
            self._begin_segment(sealed)
        self._take_in(result.position, self._in_flight_rows)
        self._in_flight_rows = []

    def _take_in(self, end: int, rows: Sequence[_PlacedRows]) -> None:
        for payload_position, index in rows:
            self._index.add(payload_position, index)
        self.position = end

    def _begin_segment(self, sealed: _Sealed) -> None:
        """Follow the journal thread, which rolled: seal the segment that was active and take in the new one."""
        old_segment = self._segments[-1]
        old_segment.size = old_segment.file_offset(self.position)
        self._wants_seal = False
        segment = Segment(self.position)
        segment.handle = self._writer.handle  # stays as it is until the next append, which only we can ask for
        self._segments.append(segment)
        self._index.add_segment(segment)
        self._reader.seal(old_segment)
        can_give_back = self._reader.cached_bytes >= KEPT_BYTES + old_segment.size
        if self._cache_growth.is_refused(can_give_back):
            self._reader.release(old_segment.size, KEPT_BYTES)
        self._snapshotter.want()
        end = self.position
        self._keeping_thread.submit(lambda: self._write_segment_index(old_segment, end, sealed))

    def _write_segment_index(self, segment: Segment, end: int, sealed: _Sealed) -> None:
        """Write it on the keeping thread. Without one the next opening is slower, and nothing is cleaned."""
        try:
            segment_index = recovery.write_segment_index(self._files, segment, sealed.mark, end, sealed.last_checksum)
        except (OSError, JournalDamaged) as error:
            logger.warning("the segment index of %s could not be written: %s", segment.name, error)
            self._missing_segment_indexes.append((segment, end, sealed))
            return
        self._new_segment_indexes.append((segment, segment_index))
        self._post(self._use_segment_indexes)

    def _use_segment_indexes(self) -> None:
        while self._new_segment_indexes:
            segment, segment_index = self._new_segment_indexes.popleft()
            segment.seal(segment_index)

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            self._call_soon(callback, *args)

    # --- snapshots and replay ----------------------------------------------------------------------------------------

    @property
    def wants_snapshot(self) -> bool:
        """See `Journal.wants_snapshot`."""
        return self._snapshotter.is_wanted

    def save_snapshot(self, blob: bytes, position: int, done: SnapshotDone | None = None) -> None:
        """See `Journal.save_snapshot`."""
        is_durable = self._in_flight_end is None and self._writer.durable_end == self.position
        if position != self.position or not is_durable or self._failure is not None:
            raise ValueError(f"position {position} is not that of a durable journal")
        self._snapshotter.save(blob, position, done)

    def fold_snapshot(self, fold: Fold, done: SnapshotDone) -> None:
        """See `Journal.fold_snapshot`."""
        self._snapshotter.fold(fold, self._segments, min(self.position, self._writer.durable_end), done)

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Journal.replay`."""
        return self._snapshotter.replay(self._segments)

    # --- cleaning ----------------------------------------------------------------------------------------------------

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """See `Journal.clean`."""
        while self._missing_segment_indexes:
            missing = self._missing_segment_indexes.popleft()
            self._keeping_thread.submit(lambda missing=missing: self._write_segment_index(*missing))  # type: ignore[misc]
        sealed = self._sealed()
        waits_for_segment_index = len(sealed) + 1 < len(self._segments)
        kept = {stream: max(floor, self._index.compacted_to(stream)) for stream, floor in floors.items()}

        def clean() -> None:
            self._cleaner.clean(sealed, kept, waits_for_segment_index, done)

        self._compactor.drop_unneeded(floors, clean)

    def _sealed(self) -> list[Segment]:
        """Return the oldest segments, up to the first that has no segment index."""
        return list(takewhile(lambda segment: segment.index is not None, self._segments))

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """See `Journal.compactable`."""
        return self._compactor.compactable(stream, end_offset)

    def compacted_to(self, stream: int) -> int:
        """See `Journal.compacted_to`."""
        return self._index.compacted_to(stream)

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """See `Journal.compact`."""
        self._compactor.compact(orders, floors, rewriter, done)

    def seal(self) -> None:
        """See `Journal.seal`."""
        self._wants_seal = self.position > self._segments[-1].base

    def sealed_to(self, stream: int) -> int:
        """See `Journal.sealed_to`."""
        rows = self._segments[-1].rows(stream)
        return self._index.last_offset(stream) + 1 if rows is None else rows.first_offsets[rows.low]

    def _change_over(self, old: Sequence[Segment], new: Segment | None, then: Callable[[], None]) -> None:
        """Find batches in the new segment from now on; call back once nobody reads in the old ones any more."""
        at = self._segments.index(old[0])
        self._segments[at : at + len(old)] = [] if new is None else [new]
        self._index.replace(old, new)
        self._reader.retire(old, then)

    # --- reading -----------------------------------------------------------------------------------------------------

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `Journal.find`."""
        return self._index.find(stream, offset, end_offset, max_bytes)

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `Journal.find_by_time`."""
        return self._index.find_by_time(stream, timestamp_ms, offset, end_offset)

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `Journal.find_latest`."""
        return self._index.find_latest(stream, offset, end_offset)

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `Journal.count_records`."""
        return self._index.count_records(stream, offset, end_offset)

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `Journal.size_bytes`."""
        return self._index.size_bytes(stream, offset, end_offset)

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """See `Journal.offset_after`."""
        return self._index.offset_after(stream, offset, end_offset, size_bytes)

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `Journal.read_cached`."""
        return self._reader.read_cached(extents)

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """See `Journal.read`."""
        self._reader.read(extents, done)

    # --- closing -----------------------------------------------------------------------------------------------------

    def _close_tail(self) -> None:
        """Make durable what was written, and say so for the next opening; nothing else depends on it."""
        try:
            if self._failure is None:
                if self._writer.durable_end < self.position:
                    self._writer.sync(self.position)
                self._tail.end(self.position)
        except OSError as error:
            logger.warning("the end of the journal in %s could not be synced: %s", self._files.directory, error)
        finally:
            self._tail.close()

    def close(self) -> None:
        """See `Journal.close`."""
        self._cleaner.stop()
        self._aside.stop()
        self._journal_thread.close()
        self._settle()
        self._close_tail()
        self._keeping_thread.close()
        self._reader.close()
        # Two handles if an append failed just after it had rolled.
        for handle in {self._writer.handle, self._segments[-1].handle}:
            if handle is not None:
                self._files.close(handle)
        # The mapped segment indexes go with their last reference.
        self._new_segment_indexes.clear()
        self._segments.clear()
        self._compactor.close()
        self._index = Index()
        self._files.unlock()
