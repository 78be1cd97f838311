"""The part of the journal in local files that frees space, compacts, and says when a snapshot is due.

What takes long is done on the *keeping thread*, one job after another.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile

from exacta.adapters.local.child_process import JobRunner
from exacta.adapters.local.files import Files
from exacta.adapters.local.index.index_writer import IndexWriter
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.journal_reader import LocalJournalReader
from exacta.adapters.local.opening.recovery import OpenedDirectory
from exacta.adapters.local.reading import Reader
from exacta.adapters.local.snapshots.snapshotter import Snapshotter
from exacta.adapters.local.space.compaction_plan import Compactor
from exacta.adapters.local.space.reserve import Reserve
from exacta.adapters.local.space.rewrite_queue import RewriteQueue
from exacta.adapters.local.worker import NewWorker
from exacta.ports.compaction import Compact
from exacta.ports.journal import Cleaned, CompactionOrder, Failed, Room


class LocalJournalSpace(LocalJournalReader):
    """Implement `exacta.ports.journal.JournalSpace`; `LocalJournal` opens and closes it."""

    def __init__(
        self,
        files: Files,
        recovered: OpenedDirectory,
        call_soon: Callable[..., object],
        job_runner: JobRunner,
        new_worker: NewWorker,
        *,
        segment_bytes: int,
        snapshot_events: int,
        reserve: Reserve,
    ) -> None:
        super().__init__(files, recovered.position, Reader(files, call_soon, new_worker))
        self._segments = recovered.segments
        self._index = recovered.index
        self._index.on_damage = self._damaged
        self._call_soon = call_soon
        self._job_runner = job_runner
        self._wants_seal = False
        self._reserve = reserve
        self.room: Room | None = reserve.measure(None)
        self._journal_thread = new_worker("exacta-journal", 1)
        self._keeping_thread = new_worker("exacta-journal-keep", 1)
        self._index_writer = IndexWriter(files, self._keeping_thread, self._post)
        self._snapshotter = Snapshotter(
            files, job_runner, self._keeping_thread, self._post, reserve.lend, snapshot_events=snapshot_events
        )
        self._rewrites = RewriteQueue(
            files,
            job_runner,
            self._keeping_thread,
            self._post,
            segment_bytes=segment_bytes,
            change_over=self._change_over,
            want_snapshot=self._snapshotter.want,
            on_damage=self._damaged,
            on_error=reserve.lend,
        )
        self._compactor = Compactor(
            recovered.compacted,
            recovered.next_compacted,
            self._index,
            self._reader,
            self._rewrites,
            self._post,
            segment_bytes=segment_bytes,
        )

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            self._call_soon(callback, *args)

    @property
    def wants_snapshot(self) -> bool:
        """See `JournalSnapshots.wants_snapshot`."""
        return self._snapshotter.is_wanted

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """See `JournalSpace.clean`."""
        self._index_writer.try_again()
        sealed = self._sealed()
        waits_for_index = len(sealed) + 1 < len(self._segments)
        kept = {stream: max(floor, self._index.compacted_to(stream)) for stream, floor in floors.items()}

        def clean() -> None:
            self._rewrites.clean(sealed, kept, waits_for_index, done)

        self._compactor.drop_unneeded(floors, clean)

    def _sealed(self) -> list[Segment]:
        """Return the oldest segments, up to the first that has no segment index."""
        return list(takewhile(lambda segment: segment.index is not None, self._segments))

    @property
    def watches_room(self) -> bool:
        """See `JournalSpace.watches_room`."""
        return self._reserve.is_kept

    @property
    def reserve_bytes(self) -> int:
        """The bytes that the reserve of the disk holds; 0 where there is none."""
        return self._reserve.held_bytes

    def measure_room(self, done: Callable[[], None]) -> None:
        """See `JournalSpace.measure_room`; it may fill the reserve, which may take long."""

        def job() -> None:
            try:
                self._reserve.fill()
                self.room = self._reserve.measure(self.room)
            finally:
                self._post(done)

        self._journal_thread.submit(job)

    def seal(self) -> None:
        """See `JournalSpace.seal`."""
        self._wants_seal = self.position > self._segments[-1].base

    def sealed_to(self, stream: int) -> int:
        """See `JournalSpace.sealed_to`."""
        rows = self._segments[-1].rows(stream)
        return self._index.last_offset(stream) + 1 if rows is None else rows.first_offsets[rows.low]

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """See `JournalSpace.compactable`."""
        return self._compactor.compactable(stream, end_offset)

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """See `JournalSpace.compact`."""
        self._compactor.compact(orders, floors, rewriter, done)

    def _change_over(self, old: Sequence[Segment], new: Segment | None, then: Callable[[], None]) -> None:
        """Find batches in the new segment from now on; call back once nobody reads in the old ones any more."""
        at = self._segments.index(old[0])
        self._segments[at : at + len(old)] = [] if new is None else [new]
        self._index.replace(old, new)
        self._reader.retire(old, then)
