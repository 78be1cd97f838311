"""Look-ups in the durable log, beside fetches: batches by their time, and counts of records and bytes.

Owns no state: looks into the engine's state, and into the journal's index.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from exacta.core.groups.lag import aborted_records, visible_end
from exacta.core.ids import Body, Offset, PartitionId, SubscriptionKey
from exacta.core.state.state import State
from exacta.core.values.runs import Run
from exacta.engine.reading import BatchReader, Read
from exacta.ports.journal import Extent, Failed, JournalReader, TimeEntry
from exacta.ports.log import Entries, Visible
from exacta.ports.record_format import Buffer, RecordFormat

ENTRIES_AT_ONCE_BYTES: Final = 32 << 10
"""The index is read ahead so far, in bytes of the log, where many entries are looked for.

It is cheap where entries are large and far apart, and finds hundreds at once where they are small.
"""


class JournalLookups:
    """See `exacta.ports.log.Lookups`."""

    def __init__(
        self,
        state: State,
        journal: JournalReader,
        reader: BatchReader,
        records: RecordFormat,
        visible: Callable[[str, int], Visible | None],
    ) -> None:
        self._state = state
        self._records = records
        self._journal = journal
        self._reader = reader
        self._visible = visible

    def batch_for_time(
        self, topic: str, partition: int, timestamp_ms: int, offset: int, end_offset: int
    ) -> TimeEntry | None:
        """See `Lookups.batch_for_time`."""
        entry = self._state.partition(topic, partition)
        if entry is None:
            return None
        return self._journal.find_by_time(entry.partition_id, timestamp_ms, offset, end_offset)

    def latest_batch(self, topic: str, partition: int) -> TimeEntry | None:
        """See `Lookups.latest_batch`."""
        entry, seen = self._state.partition(topic, partition), self._visible(topic, partition)
        if entry is None or seen is None:
            return None
        return self._journal.find_latest(entry.partition_id, *seen.offsets(read_committed=False))

    def entries(self, key: SubscriptionKey, bases: Iterable[int], alone: Body | None = None) -> Entries:
        """See `Lookups.entries`."""
        delivery = self._state.volatile.deliveries.get(key)
        noted = {} if delivery is None else delivery.entries
        found = Entries({}, {})
        others: list[int] = []
        for base in bases:
            entry = noted.get(Offset(base))
            if entry is None:
                others.append(base)
            else:
                found.lasts[base] = entry.last
        partition = self._state.partitions.get(key[0])
        if not others or partition is None:
            return found
        self._find_entries(partition.partition_id, sorted(others), partition.next_offset, found)
        if alone is not None and alone in partition.bodies:
            for base in others:
                body = self.body_at(partition.partition_id, base)
                if body is alone or (body is None and base in found.lasts):
                    found.lasts[base] = Offset(base)
        return found

    def _find_entries(self, partition_id: PartitionId, bases: list[int], end_offset: Offset, found: Entries) -> None:
        number, end = 0, bisect_left(bases, end_offset)
        while number < end:
            extents = self._journal.find(partition_id, Offset(bases[number]), end_offset, ENTRIES_AT_ONCE_BYTES)
            if not extents:
                return
            for extent in extents:
                place = 0
                while number < end and bases[number] <= extent.last_offset:
                    base = bases[number]
                    firsts, lasts = extent.first_offsets, extent.last_offsets
                    place = bisect_left(firsts, base, place)
                    if place < len(firsts) and firsts[place] == base:
                        found.lasts[base] = Offset(lasts[place])
                    elif place < len(firsts) and (not place or lasts[place - 1] < base):
                        found.gaps[base] = Offset(firsts[place] - 1)
                    number += 1

    def batch_at(self, partition_id: PartitionId, offset: int) -> tuple[Offset, Offset] | None:
        """See `Lookups.batch_at`."""
        extent = self._extent_at(partition_id, offset)
        return None if extent is None else (Offset(extent.first_offsets[0]), Offset(extent.last_offset))

    def body_at(self, partition_id: PartitionId, offset: int) -> Body | None:
        """See `Lookups.body_at`."""
        extent = self._extent_at(partition_id, offset)
        if extent is None:
            return None
        bodies = self._state.partitions[partition_id].bodies
        if len(bodies) == 1:
            return next(iter(bodies))
        buffers = self._journal.read_cached([extent])
        if not buffers or isinstance(buffers[0], Failed) or not len(buffers[0]):
            return None
        return Body(self._records.magic(buffers[0]))

    def gap_at(self, partition_id: PartitionId, offset: int) -> Run | None:
        """See `Lookups.gap_at`."""
        extent = self._extent_from(partition_id, offset)
        if extent is None or extent.first_offsets[0] <= offset:
            return None
        return Offset(offset), Offset(extent.first_offsets[0] - 1)

    def _extent_at(self, partition_id: PartitionId, offset: int) -> Extent | None:
        """Return the batch that has this offset; None: it is not there (any more)."""
        extent = self._extent_from(partition_id, offset)
        return None if extent is None or extent.first_offsets[0] > offset else extent

    def _extent_from(self, partition_id: PartitionId, offset: int) -> Extent | None:
        """Return the first batch that ends at this offset or later; None: there is none."""
        partition = self._state.partitions.get(partition_id)
        if partition is None:
            return None
        extents = self._journal.find(partition_id, Offset(offset), partition.next_offset, 1)
        return extents[0] if extents else None

    def read_batch(self, topic: str, partition: int, batch: TimeEntry, done: Callable[[Buffer | None], None]) -> None:
        """See `Lookups.read_batch`."""
        entry = self._state.partition(topic, partition)
        if entry is None:
            done(None)
        else:
            self.read_batch_at(entry.partition_id, batch.first_offset, batch.last_offset, done)

    def read_batch_at(
        self, partition_id: PartitionId, first_offset: int, last_offset: int, done: Callable[[Buffer | None], None]
    ) -> None:
        """See `Lookups.read_batch_at`."""
        partition = self._state.partitions.get(partition_id)
        extents = []
        if partition is not None:
            extents = self._journal.find(partition_id, Offset(first_offset), Offset(last_offset + 1), 1)
        if partition is None or not extents:
            done(None)
            return

        def take(reads: list[Read]) -> None:
            [read] = reads
            if read.fault:
                self._reader.tell(partition.topic, partition.index, first_offset, read)
            done(None if read.fault else read.batches)

        self._reader.read(extents, take)

    def count_unaborted(self, partition_id: PartitionId, offset: int, end_offset: int) -> int:
        """See `Lookups.count_unaborted`."""
        partition = self._state.partitions.get(partition_id)
        if partition is None:
            return 0
        # Aborted transactions are known where nothing is deleted. Compacted batches hold no aborted records any more,
        # although the state may still know of their transactions.
        begin = max(offset, partition.log_start_offset)
        aborted = aborted_records(partition, max(begin, self._journal.compacted_to(partition_id)), end_offset)
        return self._journal.count_records(partition_id, begin, end_offset) - aborted

    def count_seen(self, partition_id: PartitionId, offset: int, end_offset: int, *, read_committed: bool) -> int:
        """See `Lookups.count_seen`."""
        if read_committed:
            return self.count_unaborted(partition_id, offset, end_offset)
        partition = self._state.partitions.get(partition_id)
        if partition is None:
            return 0
        return self._journal.count_records(partition_id, max(offset, partition.log_start_offset), end_offset)

    def count_between(self, partition_id: PartitionId, offset: int, end_offset: int, *, read_committed: bool) -> int:
        """See `Lookups.count_between`."""
        count = partial(self.count_seen, partition_id, read_committed=read_committed)
        batch = self.batch_at(partition_id, end_offset)
        if batch is None or batch[0] == end_offset:
            return count(offset, end_offset)
        batch_end = batch[1] + 1  # the journal counts to the end of a batch only
        return count(offset, batch_end) - count(end_offset, batch_end)

    def visible_end(self, topic: str, partition: int, end_offset: int, *, read_committed: bool = True) -> int:
        """See `Lookups.visible_end`."""
        entry = self._state.partition(topic, partition)
        if entry is None:
            return -1

        def visible_from(offset: int) -> int:
            return self.count_seen(entry.partition_id, offset, end_offset, read_committed=read_committed)

        return visible_end(visible_from, entry.log_start_offset, end_offset)

    def size_bytes(self, topic: str, partition: int) -> int:
        """See `Lookups.size_bytes`."""
        entry, seen = self._state.partition(topic, partition), self._visible(topic, partition)
        if entry is None or seen is None:
            return 0
        return self._journal.size_bytes(entry.partition_id, *seen.offsets(read_committed=False))
