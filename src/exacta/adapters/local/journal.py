"""The journal in local files: one directory, one process.

This module has the event-loop side: it checks and frames an append before it is handed to the journal thread, makes the
group visible when that returns, and begins a new segment when one is full. The threads' side is in `writer`, `reading`,
`snapshots`, `space` and `index.index_writer`. `format` says what the files contain, and `opening.recovery` opens them.

Theory of operation. Three threads run beside the event loop. The *journal thread* appends groups, syncs, and begins new
segments. The *reading threads* (`reading`) read what is not in the page cache. The *keeping thread* writes segment
indexes and snapshots and frees space, one after the other: their syncs take long and must not hold up appends. All
state here is touched on the event-loop thread only. The threads get what they need with the job and answer through
`call_soon`.

An append is one write and one fdatasync. A small group can also be written on the event loop itself, ahead of the sync
of a later append: a copy into the page cache costs a tenth of waking a thread and hearing from it. A small group can
also be written along with a sync there, if the caller asks for it and the disk has been quick lately (`sync_pace`,
decision 0023). The first failure of any of these is final: after a failed fsync the kernel may have dropped the pages
that it could not write, so that an fsync which succeeds later proves nothing.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from msgspec import Struct

from exacta.adapters.local.child_process import ChildProcess, JobRunner
from exacta.adapters.local.files import Files, PosixFiles
from exacta.adapters.local.framing import Framed, PlacedRows, frame
from exacta.adapters.local.index.index_writer import Sealed
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.journal_space import LocalJournalSpace
from exacta.adapters.local.opening import recovery
from exacta.adapters.local.opening.unsynced_end import Tail
from exacta.adapters.local.snapshots.snapshotter import Done as SnapshotDone
from exacta.adapters.local.space.reserve import Reserve
from exacta.adapters.local.sync_pace import Pace
from exacta.adapters.local.worker import NewWorker, Worker
from exacta.histogram import SECONDS, Histogram
from exacta.ports.journal import (
    AppendResult,
    Conflict,
    Failed,
    Fold,
    GroupAppended,
    JournalEntries,
    JournalError,
    Schema,
)

SEGMENT_BYTES = 128 << 20
SNAPSHOT_EVENTS = 200_000
"""The number of events beyond which a replay would take seconds, even if they do not fill a segment."""
AT_ONCE_BYTES = 64 << 10
"""The event loop copies at most so much in one write, which takes some ten microseconds. It waits for the sync of at
most so much, counting what was written ahead."""
UNSYNCED_BYTES = 4 << 20
"""At most so much is written ahead of its sync, and so recovery writes at most so much once more."""
SLOW_SYNC_SECONDS = 1.0
"""The operator is told of a sync that takes so long."""

logger = logging.getLogger(__name__)


class _AppendOutcome(NamedTuple):
    """Tell how an append ended on the journal thread; `sealed` is set if it began a new segment."""

    result: GroupAppended | Failed
    sealed: Sealed | None


class _Options(Struct, frozen=True, kw_only=True):
    """The options of `LocalJournal.open`, which describes them."""

    segment_bytes: int
    snapshot_events: int
    unsynced_writes: bool
    reserve_bytes: int
    new_worker: NewWorker
    elapsed_seconds: Callable[[], float]


class LocalJournal(LocalJournalSpace):
    """Implement `exacta.ports.journal.Journal` in a directory; made by `open`."""

    is_exclusive: Final = True

    def __init__(
        self,
        files: Files,
        recovered: recovery.OpenedDirectory,
        call_soon: Callable[..., object],
        job_runner: JobRunner,
        options: _Options,
        reserve: Reserve,
    ) -> None:
        super().__init__(
            files,
            recovered,
            call_soon,
            job_runner,
            options.new_worker,
            segment_bytes=options.segment_bytes,
            snapshot_events=options.snapshot_events,
            reserve=reserve,
        )
        self._options = options
        self._pace = Pace()
        self.syncs = Histogram(SECONDS)
        """The times that syncs of groups took."""
        self._writer = recovered.writer
        self._writer.give_room = reserve.give
        self._tail = Tail(files, recovered.position)
        self.may_have_lost = self._tail.may_have_lost
        # The append in flight: the position at its end, and the index rows with the position of their payload.
        self._in_flight_end: int | None = None
        self._in_flight_rows: Sequence[PlacedRows] = []
        self._outcome: _AppendOutcome | None = None  # set by the journal thread, taken by `_settle`

    @classmethod
    def open(
        cls,
        directory: Path | Files,
        call_soon: Callable[..., object],
        *,
        schema: Schema | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        snapshot_events: int = SNAPSHOT_EVENTS,
        unsynced_writes: bool = True,
        reserve_bytes: int = 0,
        job_runner: JobRunner | None = None,
        new_worker: NewWorker = Worker,
        elapsed_seconds: Callable[[], float] = time.perf_counter,
    ) -> Self:
        """Open the journal in `directory`, created if need be; blocks until it is recovered.

        `call_soon(callback, *args)` is called from any thread and must run the callback on the event loop. `schema` is
        what the caller's events and snapshots have; without one a directory of any schema is opened. A segment is
        sealed once it has `segment_bytes`. Without `unsynced_writes`, `write` takes only what it is to make durable.
        `reserve_bytes` is the most that the reserve of the disk holds (`space.reserve`); 0: there is none. `job_runner`
        runs long jobs over the files: a child process unless given. `new_worker` makes what runs the journal's other
        jobs: threads, except in simulations. `elapsed_seconds` measures how long a sync takes. Raises JournalError:
        DirectoryInUse, JournalDamaged, UnsupportedFormat, or itself where the operating system refuses.
        """
        files = PosixFiles(directory) if isinstance(directory, Path) else directory
        if job_runner is None:
            job_runner = ChildProcess(files.directory)
        options = _Options(
            segment_bytes=segment_bytes,
            snapshot_events=snapshot_events,
            unsynced_writes=unsynced_writes,
            reserve_bytes=reserve_bytes,
            new_worker=new_worker,
            elapsed_seconds=elapsed_seconds,
        )
        try:
            files.lock()
            try:
                reserve = Reserve(files, reserve_bytes)
                try:
                    reserve.begin()
                    return cls(files, recovery.recover(files, schema), call_soon, job_runner, options, reserve)
                except BaseException:
                    reserve.close()
                    raise
            except BaseException:
                files.unlock()
                raise
        except OSError as error:
            raise JournalError(f"the journal in {files.directory} cannot be opened: {error}") from error

    # --- appending ---------------------------------------------------------------------------------------------------

    def confirm(self, done: Callable[[AppendResult], None]) -> None:
        """See `Journal.confirm`: the lock on the directory is held."""
        self._call_soon(done, self._failure or GroupAppended(self.position))

    def append(self, expected_position: int, entries: JournalEntries, done: Callable[[AppendResult], None]) -> int:
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
        """True if a group needs nothing but to be written: this opening has a note, and its segment has room."""
        return self._tail.has_begun and not self._is_full

    @property
    def _is_full(self) -> bool:
        return self._wants_seal or self.position - self._segments[-1].base >= self._options.segment_bytes

    def write(self, expected_position: int, entries: JournalEntries, *, durably: bool = False) -> AppendResult | None:
        """See `Journal.write`."""
        position = self.position
        if self._failure is not None:
            return self._failure
        if expected_position != position:
            return Conflict(position)
        assert self._in_flight_end is None, "no write while an append is in flight"
        if not entries:
            raise ValueError("a write needs entries")
        if not (self.is_quick if durably else self._options.unsynced_writes and self._goes_on):
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
        return GroupAppended(end)

    def _frame(self, entries: JournalEntries) -> Framed:
        return frame(entries, self.position, self._index.last_offset)

    def _append(self, position: int, group: Framed | None, roll: bool, done: Callable[[AppendResult], None]) -> None:
        """Write one group if there is one, and sync; on the journal thread."""
        result: GroupAppended | Failed = Failed("the append did not finish")
        sealed: Sealed | None = None
        try:
            if roll:
                sealed = Sealed(self._writer.mark, self._writer.last_checksum)
                self._reserve.ensure()
                self._writer.roll(position)
            end = position
            if group is not None:
                end = self._writer.write_group(position, group.table, group.payload, group.entry_count, unsynced=False)
            self._sync(end)
            if not self._tail.has_begun:
                self._tail.begin(end, unsynced_writes=self._options.unsynced_writes)
            result = GroupAppended(end)
        except OSError as error:
            result = Failed(str(error))
        finally:
            self._outcome = _AppendOutcome(result, sealed)
            self._post(self._finish_append, result, done)

    def _sync(self, end: int) -> None:
        began = self._options.elapsed_seconds()
        self._writer.sync(end)
        seconds = self._options.elapsed_seconds() - began
        self._pace.took(seconds)
        self.syncs.add(seconds)
        self.room = self._reserve.measure(self.room)
        if seconds >= SLOW_SYNC_SECONDS:
            logger.warning(
                "the disk took %(seconds).1f s for a sync of the journal; all answers waited for it",
                {"seconds": seconds},
            )

    def _finish_append(self, result: GroupAppended | Failed, done: Callable[[AppendResult], None]) -> None:
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

    def _take_in(self, end: int, rows: Sequence[PlacedRows]) -> None:
        for payload_position, index in rows:
            self._index.add(payload_position, index)
        self.position = end

    def _begin_segment(self, sealed: Sealed) -> None:
        """Follow the journal thread, which rolled: seal the segment that was active and take in the new one."""
        old_segment = self._segments[-1]
        old_segment.size = old_segment.file_offset(self.position)
        self._wants_seal = False
        segment = Segment(self.position)
        segment.handle = self._writer.handle  # stays as it is until the next append, which only we can ask for
        self._segments.append(segment)
        self._index.add_segment(segment)
        self._reader.seal(old_segment)
        self._snapshotter.want()
        self._index_writer.write(old_segment, self.position, sealed)

    # --- snapshots ---------------------------------------------------------------------------------------------------

    def save_snapshot(self, blob: bytes, position: int, done: SnapshotDone | None = None) -> None:
        """See `JournalSnapshots.save_snapshot`."""
        is_durable = self._in_flight_end is None and self._writer.durable_end == self.position
        if position != self.position or not is_durable or self._failure is not None:
            raise ValueError(f"position {position} is not a position of a durable journal")
        self._snapshotter.save(blob, position, done)

    def fold_snapshot(self, fold: Fold, done: SnapshotDone) -> None:
        """See `JournalSnapshots.fold_snapshot`."""
        self._snapshotter.fold(fold, self._segments, min(self.position, self._writer.durable_end), done)

    @property
    def replayed_bytes(self) -> tuple[int, int]:
        """The bytes of groups that a replay has read, and those that it reads in all; for any thread."""
        begin, reached = self._snapshotter.replayed
        return reached - begin, max(0, self.position - begin)

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Journal.replay`."""
        return self._snapshotter.replay(self._segments)

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
        self._rewrites.stop()
        self._job_runner.stop()
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
        self._index_writer.close()
        self._segments.clear()
        self._compactor.close()
        self._reserve.close()
        self._index = Index()
        self._files.unlock()
