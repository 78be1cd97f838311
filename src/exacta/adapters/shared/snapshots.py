"""Snapshots of a shared journal: when one is wanted, how it is made, and which are kept.

A snapshot is folded in a process of its own from the newest one and the events since then, which it reads in objects,
and in files that hold the tail. It becomes an object, and one change of the catalog adds it and removes those that are
too many.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from exacta.adapters.local.format import SEGMENT_SUFFIX, SegmentId, file_name, pack_segment_header
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.shared import publishing
from exacta.adapters.shared.background import Background
from exacta.adapters.shared.blocks import Gone
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.steps import Step
from exacta.adapters.shared.tail import Tail, TailSegment
from exacta.ports.journal import Failed, Fold
from exacta.ports.shared import CatalogEntry, Kind

Done = Callable[[Failed | None], None]


class SharedSnapshots:
    """Make the snapshots of one leader; every method is called on the event-loop thread."""

    def __init__(self, background: Background, catalog: Catalog, tail: Tail, *, snapshot_events: int) -> None:
        """After `snapshot_events` events a snapshot is wanted."""
        self._background = background
        self._catalog = catalog
        self._tail = tail
        self._snapshot_events = snapshot_events
        self._events_since = 0
        self._is_folding = False
        newest = max((each.end for each in self._kept()), default=0)
        self._is_wanted = catalog.tail_from > newest or any(each.end > newest for each in tail.sealed)

    def _kept(self) -> list[CatalogEntry]:
        entries = [each for each in self._catalog.entries.values() if each.kind is Kind.SNAPSHOT]
        return sorted(entries, key=lambda each: each.end)

    @property
    def positions(self) -> list[int]:
        """The positions of the snapshots, ascending."""
        return [each.end for each in self._kept()]

    @property
    def is_wanted(self) -> bool:
        """See `JournalSnapshots.wants_snapshot`."""
        return not self._is_folding and (self._is_wanted or self._events_since >= self._snapshot_events)

    def want(self) -> None:
        """Want a snapshot from now on."""
        self._is_wanted = True

    def count(self, events: int) -> None:
        """Note that this many more events are appended."""
        self._events_since += events

    def save(self, blob: bytes, position: int, done: Done | None) -> None:
        """See `JournalSnapshots.save_snapshot`; the journal is durable up to this position."""
        self._keep(self._save(blob, position), done or (lambda result: None))

    def fold(self, fold: Fold, position: int, done: Done) -> None:
        """See `JournalSnapshots.fold_snapshot`; the journal is durable up to this position.

        The end of what is sealed gets one, too: behind two snapshots that can be cleaned, though nothing else comes.
        """
        assert not self._is_folding, "one fold at a time"
        self._is_folding = True

        def folded(result: Failed | None) -> None:
            self._is_folding = False
            if result is not None:
                self.want()
            done(result)

        self._keep(self._fold(fold, position), folded)

    def _keep(self, steps: Coroutine[Step[Any], Any, None], done: Done) -> None:
        self._is_wanted = False
        self._events_since = 0
        self._background.start(steps, "a snapshot could not be made", done)

    async def _save(self, blob: bytes, position: int) -> None:
        key = self._new_key(position)
        checksums = self._checksums([position])
        await self._background.changes.intend([key])
        store = self._background.files.store
        entry = await self._background.on_worker(lambda: publishing.publish_snapshot(store, blob, position, key))
        await self._register([entry], checksums)

    async def _fold(self, fold: Fold, position: int) -> None:
        begin = max((each for each in self.positions if each <= position), default=0)
        growing = self._tail.growing
        sealed_to = self._catalog.tail_from if growing is None else growing.base
        targets = sorted({min(sealed_to, position), position})
        checksums = self._checksums(targets)
        in_tail = [each for each in self._tail.segments if each.end > begin and each.base < position]
        names = [file_name(each.base, SEGMENT_SUFFIX) for each in in_tail]
        folded = await self._background.removing(names, self._fold_files(in_tail, fold, targets))
        if folded:
            names = [name for name, _ in folded]
            await self._register(await self._background.removing(names, self._put(folded)), checksums)

    async def _fold_files(
        self, in_tail: Sequence[TailSegment], fold: Fold, targets: Sequence[int]
    ) -> Sequence[tuple[str, int]]:
        """Let a job fold; return the file and the position of each snapshot. The tail is written where it finds it."""
        bases = [each.base for each in in_tail if await self._write_tail(each, targets[-1])]
        ids = [each.id for each in self._catalog.segments if each.index is not None]
        ids += [SegmentId(base) for base in bases if base >= self._catalog.tail_from]
        return await self._background.make(snapshot_files.fold, ids, targets, fold)

    async def _put(self, folded: Sequence[tuple[str, int]]) -> Sequence[CatalogEntry]:
        made = [(name, at, self._new_key(at)) for name, at in folded]
        await self._background.changes.intend([key for _, _, key in made])
        return await self._background.run(publishing.publish_snapshots, made)

    async def _write_tail(self, segment: TailSegment, position: int) -> bool:
        """Write what a segment of the tail has up to `position` into a file; False: it is an object by now."""
        try:
            end = min(segment.end, position)
            pieces = await self._tail.pieces(segment, segment.base, end - segment.base)
        except Gone:
            return False
        data = [pack_segment_header(segment.header), *pieces]
        await self._background.write(file_name(segment.base, SEGMENT_SUFFIX), data)
        return True

    def _new_key(self, position: int) -> str:
        return self._background.changes.new_key("snapshots", f"{position:020d}")

    def _checksums(self, positions: Sequence[int]) -> Mapping[int, int]:
        """Return the checksums of the groups that end there: snapshots bear witness of what was durable."""
        before = self._catalog.last_checksum  # of the last group before the tail
        return {at: self._tail.checksum_before(at) or before or 0 for at in positions}

    async def _register(self, made_now: Sequence[CatalogEntry], checksums: Mapping[int, int]) -> None:
        """Let these be snapshots, and remove those that are too many, or of the same positions."""
        entries = [each._replace(last_checksum=checksums[each.end]) for each in made_now]
        made = {each.end for each in entries}
        others = [each for each in self._kept() if each.end not in made]
        left = sorted([*(each.end for each in others), *made])[-snapshot_files.KEPT :]
        removed = [each.key for each in self._kept() if each.end not in left or each.end in made]
        await self._background.change(entries, removed)
