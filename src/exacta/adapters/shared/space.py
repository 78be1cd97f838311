"""The work of a leader beside appending: offload, snapshots, cleaning, compaction, sweeping; and the room there is.

This module puts these together as the ports `JournalSnapshots` and `JournalSpace` want them. The journal calls
`appended` after each append, and asks `wants_seal` before the next one.

Theory of operation. Two workers run jobs, each in a process of its own: one offloads, the other does the rest, one job
after another. So a long compaction does not hold up the offload, without which the ledger would fill up.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from exacta.adapters.local.child_process import JobRunner
from exacta.adapters.local.space.compaction_plan import Compactor
from exacta.adapters.local.worker import NewWorker
from exacta.adapters.shared.background import Background
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.changes import CatalogChanges
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.offload import Offloader
from exacta.adapters.shared.publishing import ObjectJobs
from exacta.adapters.shared.reading import ObjectReader
from exacta.adapters.shared.rewriting import ObjectRewrites
from exacta.adapters.shared.snapshots import Done, SharedSnapshots
from exacta.adapters.shared.sweeping import ObjectSweeper
from exacta.adapters.shared.tail import Tail
from exacta.ports.compaction import Compact
from exacta.ports.journal import Cleaned, CompactionOrder, Failed, Fold, JournalDamaged, Room
from exacta.ports.shared import Kind, Ledger

SEGMENT_BYTES = 64 << 20
SNAPSHOT_EVENTS = 200_000
TAIL_BYTES = 8 << 30
"""The ledger is trusted with so much of the log while objects cannot be put."""
PLENTY_BYTES = 1 << 30


def room_in(spare: int) -> Room | None:
    """Return what may be appended where the ledger may take this many more bytes; None: plenty.

    The last quarter of what is not plenty is for what ends or frees something.
    """
    if spare >= PLENTY_BYTES:
        return None
    kept = PLENTY_BYTES // 4
    return Room(append_bytes=max(0, spare - kept), is_used_up=spare < kept // 4, is_low=spare < 2 * kept)


class SharedSpace:
    """Implement `JournalSnapshots` and `JournalSpace` for one leader; every method is the event loop's."""

    def __init__(
        self,
        files: ObjectFiles,
        catalog: Catalog,
        reader: ObjectReader,
        tail: Tail,
        ledger: Ledger,
        *,
        epoch: int,
        new_job_runner: Callable[[], JobRunner],
        new_worker: NewWorker,
        post: Callable[..., None],
        call_later: Callable[..., Any],
        on_lost: Callable[[Failed], None],
        on_damage: Callable[[JournalDamaged], None],
        segment_bytes: int = SEGMENT_BYTES,
        snapshot_events: int = SNAPSHOT_EVENTS,
        tail_bytes: int = TAIL_BYTES,
    ) -> None:
        """Begin as the leader of this epoch, which knows the present catalog and the whole tail.

        `on_lost` is told that this broker leads no more, `on_damage` that the log is not what was appended.
        """
        self._catalog = catalog
        self._tail = tail
        self._post = post
        self._tail_bytes = tail_bytes
        self._segment_bytes = segment_bytes
        changes = CatalogChanges(ledger, catalog, files, epoch, on_lost)

        def background(name: str) -> Background:
            jobs = ObjectJobs(new_job_runner(), files.store, catalog)
            return Background(files, changes, jobs, new_worker(name, 1), post)

        self._offloading = background("exacta-journal-offload")
        self._keeping = background("exacta-journal-keep")
        self._offloader = Offloader(self._offloading, catalog, tail, call_later, on_damage)
        self._snapshots = SharedSnapshots(self._keeping, catalog, tail, snapshot_events=snapshot_events)
        self._rewrites = ObjectRewrites(self._keeping, catalog, reader, self._snapshots, segment_bytes=segment_bytes)
        numbers = [each.base for each in catalog.entries.values() if each.kind is Kind.COMPACTED]
        self._compactor = Compactor(
            catalog.compacted,
            max(numbers, default=-1) + 1,
            catalog.index,
            reader,
            self._rewrites,
            post,
            segment_bytes=segment_bytes,
        )
        self._sweeper = ObjectSweeper(ledger, self._keeping, call_later)
        self._wants_seal = False

    def begin(self) -> None:
        """Sweep what earlier leaders have left, and offload what they have not."""
        self._sweeper.begin()
        self._offloader.look()

    # --- what the journal tells ---------------------------------------------------------------------------------------

    @property
    def wants_seal(self) -> bool:
        """True if the next group should begin a segment."""
        growing = self._tail.growing
        return growing is not None and (self._wants_seal or growing.end - growing.base >= self._segment_bytes)

    def appended(self, events: int, *, began_segment: bool) -> None:
        """Note that a group was appended, with this many events; it may have begun a segment."""
        self._snapshots.count(events)
        if began_segment:
            self._wants_seal = False
            if self._tail.sealed:
                self._snapshots.want()
                self._offloader.look()

    # --- snapshots ----------------------------------------------------------------------------------------------------

    @property
    def wants_snapshot(self) -> bool:
        """See `JournalSnapshots.wants_snapshot`."""
        return self._snapshots.is_wanted

    def save_snapshot(self, blob: bytes, position: int, done: Done | None = None) -> None:
        """See `JournalSnapshots.save_snapshot`; the journal has checked the position."""
        self._snapshots.save(blob, position, done)

    def fold_snapshot(self, fold: Fold, position: int, done: Done) -> None:
        """See `JournalSnapshots.fold_snapshot`; the journal is durable up to this position."""
        self._snapshots.fold(fold, position, done)

    # --- space --------------------------------------------------------------------------------------------------------

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """See `JournalSpace.clean`; what is sealed is offloaded before, if that can be done now."""

        def clean() -> None:
            # The newest one stays: its end bears witness of what was there before the tail.
            sealed = list(takewhile(lambda segment: segment.index is not None, self._catalog.segments))[:-1]
            waits_for_offload = bool(self._tail.sealed)
            kept = {stream: max(floor, self._catalog.index.compacted_to(stream)) for stream, floor in floors.items()}

            def cleaned(result: Cleaned | Failed) -> None:
                if waits_for_offload and isinstance(result, Cleaned):
                    result = result._replace(may_free_more=True)
                done(result)

            self._compactor.drop_unneeded(floors, lambda: self._rewrites.clean(sealed, kept, cleaned))

        self._offloader.when_idle(clean)

    @property
    def watches_room(self) -> bool:
        """See `JournalSpace.watches_room`."""
        return True

    @property
    def room(self) -> Room | None:
        """See `JournalSpace.room`: what the ledger may take."""
        held = sum(each.end - each.base for each in self._tail.segments)
        return room_in(self._tail_bytes - held)

    def measure_room(self, done: Callable[[], None]) -> None:
        """See `JournalSpace.measure_room`."""
        self._post(done)

    def seal(self) -> None:
        """See `JournalSpace.seal`."""
        self._wants_seal = self._tail.growing is not None

    def sealed_to(self, stream: int) -> int:
        """See `JournalSpace.sealed_to`."""
        growing = self._catalog.segments[-1] if self._tail.growing is not None else None
        rows = None if growing is None else growing.rows(stream)
        return self._catalog.index.last_offset(stream) + 1 if rows is None else rows.first_offsets[rows.low]

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

    def sweep(self, done: Callable[[int | Failed], None]) -> None:
        """Sweep now; `done` gets how many objects were deleted."""
        self._sweeper.sweep(done)

    def close(self) -> None:
        """Give up what is under way: another leader begins it again."""
        self._offloader.stop()
        self._sweeper.stop()
        self._offloading.stop()
        self._keeping.stop()
        self._compactor.close()
