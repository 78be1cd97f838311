"""Cleaning and compaction of objects: the leader decides, a process of its own rewrites, and one change does the rest.

What is chosen and written is as for a local journal (`exacta.adapters.local.space`). What was written becomes an
object, and a change of the catalog puts it in the place of the old ones. These are deleted later, when nobody can read
them any more (`sweeping`). Before that change everything is as it was; after it everything is done.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from exacta.adapters.local.index.sealed_segment import NewSegment
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.space import cleaning
from exacta.adapters.local.space import compaction_writer as compaction
from exacta.adapters.local.space.compacted_segments import Named
from exacta.adapters.local.space.compaction_writer import Source
from exacta.adapters.shared import publishing
from exacta.adapters.shared.background import Background
from exacta.adapters.shared.catalog import Catalog, open_object
from exacta.adapters.shared.reading import ObjectReader
from exacta.adapters.shared.snapshots import SharedSnapshots
from exacta.ports.compaction import Compact
from exacta.ports.journal import Cleaned, Failed
from exacta.ports.shared import CatalogEntry

logger = logging.getLogger(__name__)


class ObjectRewrites:
    """Clean and compact for one leader; every method is called on the event-loop thread."""

    def __init__(
        self,
        background: Background,
        catalog: Catalog,
        reader: ObjectReader,
        snapshots: SharedSnapshots,
        *,
        segment_bytes: int,
    ) -> None:
        self._background = background
        self._catalog = catalog
        self._reader = reader
        self._snapshots = snapshots
        self._segment_bytes = segment_bytes
        self._waited_with: tuple[list[int], Mapping[int, int]] | None = None
        """The snapshots and floors with which everything waits for later snapshots."""

    def clean(
        self, segments: Sequence[Segment], floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]
    ) -> None:
        """See `JournalSpace.clean`. `segments` are the oldest, sealed ones."""
        self._background.start(self._clean(segments, dict(floors)), "no space could be freed", done)

    async def _clean(self, segments: Sequence[Segment], floors: Mapping[int, int]) -> Cleaned:
        if not segments:
            return Cleaned(0)
        known = self._snapshots.positions, floors
        if self._waited_with == known:
            return Cleaned(0, may_free_more=True)
        ids = [segment.id for segment in segments]
        made = await self._background.make(cleaning.make_room, ids, floors, self._segment_bytes, open_object)
        if not made.segments:
            self._waited_with = known if made.waits_for_snapshot else None
            if made.waits_for_snapshot:
                self._snapshots.want()
            return Cleaned(0, may_free_more=made.waits_for_snapshot)
        begin = ids.index(made.segments[0])
        old = segments[begin : begin + len(made.segments)]
        keys = [self._catalog.key_of(each) for each in old]
        added = [] if made.new is None else [await self._put(made.new, "cleaned")]
        await self._background.change(added, keys)
        self._reader.retire(old, lambda: None)
        return Cleaned(made.freed_bytes)

    async def _put(self, new: NewSegment, room: str) -> CatalogEntry:
        key = self._background.changes.new_key(room, f"{new.id.base:020d}")

        async def put() -> CatalogEntry:
            await self._background.changes.intend([key])
            return await self._background.run(publishing.publish_segment, new, key)

        return await self._background.removing([new.temporary_name, new.temporary_index_name], put())

    def compact(
        self, sources: Sequence[Source], rewriter: Compact, number: int, done: Callable[[Segment | Failed], None]
    ) -> None:
        """Write the compacted segment of this number, and let it be part of the log."""
        self._background.start(self._compact(sources, rewriter, number), "nothing could be compacted", done)

    async def _compact(self, sources: Sequence[Source], rewriter: Compact, number: int) -> Segment:
        made = await self._background.make(
            compaction.compact,
            sources,
            rewriter,
            number,
            self._segment_bytes,
            compaction.KEY_BYTES,
            open_object,
        )
        if made.unreadable:
            logger.warning("%d batches were kept whole: their records cannot be read", made.unreadable)
        entry = await self._put(made.new, "compacted")
        opened = await self._background.change([entry], leads_log=False)
        return opened[entry.key]

    def name_compacted(self, named: Named, dropped: Sequence[Segment], done: Callable[[], None]) -> None:
        """Let the log be without the compacted segments that were dropped."""
        if not dropped:
            self._background.post(done)
            return
        keys = [self._catalog.key_of(each) for each in dropped]
        self._background.start(
            self._background.change([], keys, leads_log=False),
            "compacted segments that are not needed stay",
            lambda result: done(),
        )
