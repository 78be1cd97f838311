"""Plan of compactions: what goes into the next compacted segment, and which compacted segments are no longer needed.

This module has the list and numbers of compacted segments, on the event loop. `compaction_writer` writes them;
`rewrite_queue` has the order of steps and the failures.

Theory of operation. A segment gets its number before it is written, one that none had before. It counts from the moment
that it has its name, for an opening takes in all numbers that the list of names does not know yet (`layout`). Then the
list is rewritten, even if nothing is dropped. A segment that is not named there, and is below its next number, is
left over.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import takewhile
from typing import Protocol

from exacta.adapters.local.format import SegmentId
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.reading import Reader
from exacta.adapters.local.space.compacted_segments import Named
from exacta.adapters.local.space.compaction_writer import JoiningSource, Source
from exacta.ports.compaction import MOST_STREAMS, Compact
from exacta.ports.journal import CompactionOrder, Failed


class Rewrites(Protocol):
    """Write compacted segments, and drop them."""

    def compact(
        self, sources: Sequence[Source], rewriter: Compact, number: int, done: Callable[[Segment | Failed], None]
    ) -> None:
        """Write the compacted segment of this number, and let it be part of the journal."""

    def name_compacted(self, named: Named, dropped: Sequence[Segment], done: Callable[[], None]) -> None:
        """Name the compacted segments that are left, then remove those that nobody reads."""


class Compactor:
    """Plan the compactions of one opened journal; every method is called on the event loop."""

    def __init__(
        self,
        segments: list[Segment],
        next_number: int,
        index: Index,
        reader: Reader,
        rewrites: Rewrites,
        post: Callable[..., None],
        *,
        segment_bytes: int,
    ) -> None:
        """Take over the compacted segments, oldest first, and the number of the next one."""
        self._segments = segments
        self._next_number = next_number
        self._index = index
        self._reader = reader
        self._rewrites = rewrites
        self._post = post
        self._segment_bytes = segment_bytes

    def close(self) -> None:
        """Let go of the segments and of what is mapped of them."""
        self._segments.clear()
        self._index = Index()

    def drop_unneeded(self, floors: Mapping[int, int], then: Callable[[], None]) -> None:
        """Remove the segments of which these floors leave nothing; then call back, at once if there are none."""
        dropped = [each for each in self._segments if not self._needed(each, floors, ())]
        if dropped:
            self._name_and_drop(dropped, then)
        else:
            then()

    def _name_and_drop(self, dropped: Sequence[Segment], then: Callable[[], None]) -> None:
        for segment in dropped:
            self._segments.remove(segment)
            self._index.drop_compacted(segment)
        named = Named([each.base for each in self._segments], self._next_number)
        self._reader.retire(dropped, lambda: self._rewrites.name_compacted(named, dropped, then))

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """See `JournalSpace.compactable`."""
        begin = self._index.compacted_to(stream)
        segments = self._compactable(stream, end_offset)
        return begin, max(begin, self._index.last_offset_in(segments[-1], stream) + 1) if segments else begin

    def _ids_of(self, stream: int) -> list[SegmentId]:
        return [segment.id for segment in self._index.segments_of(stream)]

    def _compactable(self, stream: int, end_offset: int) -> list[Segment]:
        def counts(segment: Segment) -> bool:
            return segment.index is not None and self._index.last_offset_in(segment, stream) < end_offset

        return list(takewhile(counts, self._index.segments_of(stream)))

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """See `JournalSpace.compact`."""
        sources = [
            Source(
                order.stream,
                [segment.id for segment in segments],
                floors[order.stream],
                self._index.compacted_to(order.stream),
                order.rules,
                [JoiningSource(each, self._ids_of(each.stream)) for each in order.joining],
            )
            for order in orders
            if (segments := self._compactable(order.stream, order.end_offset)) or order.joining
        ]
        if not sources:
            self._post(done, None)
            return
        number = self._next_number
        self._next_number += 1

        def compacted(result: Segment | Failed) -> None:
            if isinstance(result, Failed):
                done(result)
                return
            self._segments.append(result)
            self._index.add_compacted(result)
            unused = [each for each in self._segments if not self._index.streams_found_in(each)]
            self._name_and_drop(unused, lambda: done(None))

        self._rewrites.compact([*sources, *self._carried(orders, floors)], rewriter, number, compacted)

    def _carried(self, orders: Sequence[CompactionOrder], floors: Mapping[int, int]) -> list[Source]:
        """Return what else is found in compacted segments of which, without these streams, less than half is needed.

        And in those that are no larger than what is written together: else each stream that is due alone would have
        a segment of its own, by the thousand. So each is twice as large as the next, or as large as a segment may be,
        or has as many streams.
        """
        ordered = {order.stream for order in orders}
        total = sum(self._index.size_bytes(order.stream, floors[order.stream], order.end_offset) for order in orders)
        total += sum(each.size_bytes for order in orders for each in order.joining)
        carried: list[Source] = []
        found = [(self._needed(segment, floors, ordered), segment) for segment in self._segments]
        for needed, segment in sorted(found, key=lambda each: sum(each[0].values())):
            size = sum(needed.values())
            if len(ordered) + len(carried) + len(needed) > MOST_STREAMS:
                continue
            if segment.size >= 2 * size or size <= min(total, self._segment_bytes - total):
                total += size
                carried += [Source(stream, [segment.id], floors[stream], 0, None) for stream in needed]
        return carried

    def _needed(self, compacted: Segment, floors: Mapping[int, int], without: Container[int]) -> dict[int, int]:
        """Return how many bytes of a compacted segment are needed of each stream, but for some streams."""
        sizes = {
            stream: self._index.size_in(compacted, stream, floors[stream])
            for stream in self._index.streams_found_in(compacted)
            if stream in floors and stream not in without
        }
        return {stream: size for stream, size in sizes.items() if size}
