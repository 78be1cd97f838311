"""The batches that were written into each partition, as the journal was given them.

Owns a second copy of the log, of which nothing is ever compacted or deleted: what readers may miss of it is for
`analysis` and `watched` to say. What a crash takes away is taken away here when something else is written in its place.

What is staged is noted by its provisional offset, and comes into its partition's copy when the event is written that
lets it enter. So this copy knows nothing of the streams in which staged batches lie. Batches that the state has held
must come into the journal as they were staged (invariant 11).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from exacta.core.events import BatchStaged, Event, StagedStreamSpilled, TransactionEnded
from exacta.core.ids import PartitionId, ProducerId
from exacta.ports.journal import IndexEntry
from simulation.clients.batches import read_stored
from simulation.history import Partition

OFFSET_BYTES = 8
"""A batch begins with its offset."""
CHECKED_FROM = 16
"""The offset and what else the broker writes into a batch, which no checksum covers, lie before this byte."""


class WrittenBatch(NamedTuple):
    """One batch, with the bytes that it was given to the journal with."""

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    data: bytes
    has_entered: bool = False
    """True: it was staged, and its transaction is committed."""
    has_new_time: bool = False
    """True: its timestamps are those of the commit, and `data` has those from before."""


class _Staged(NamedTuple):
    record_count: int
    max_timestamp_ms: int
    takes_append_time: bool
    data: bytes


class Written:
    """All partitions, by id."""

    def __init__(self) -> None:
        self._streams: dict[int, list[WrittenBatch]] = defaultdict(list)
        self._staged: dict[tuple[PartitionId, int], _Staged] = {}
        """All that was ever staged, by partition and provisional offset."""
        self._waiting: dict[tuple[PartitionId, ProducerId], list[int]] = defaultdict(list)
        """The provisional offsets of what open transactions have staged."""

    def copy(self) -> "Written":
        """Return what is known of staged batches; of the others nothing."""
        other = Written()
        other._staged = dict(self._staged)
        return other

    def recovered(self, events: Iterable[Event]) -> None:
        """Go on from these events."""
        self._waiting.clear()
        for event in events:
            if isinstance(event, BatchStaged):
                self._waiting[event.partition_id, event.producer_id].append(event.provisional_offset)
            elif isinstance(event, TransactionEnded):
                self._let_go(event)

    def _let_go(self, event: TransactionEnded) -> None:
        for key in [key for key in self._waiting if key[1] in event.producer_ids]:
            del self._waiting[key]

    def note(self, row: IndexEntry, payload: bytes) -> None:
        """Note a batch, which lies in this payload."""
        self._add(row.stream, _batch(row, payload))

    def _add(self, stream: int, batch: WrittenBatch) -> None:
        batches = self._streams[stream]
        while batches and batches[-1].last_offset >= batch.first_offset:
            batches.pop()  # a crash had it
        batches.append(batch)

    # --- what is staged -----------------------------------------------------------------------------------------------

    def stage(self, event: BatchStaged, payload: bytes) -> None:
        """Note a staged batch, which the event has or this payload."""
        data = event.batch if event.is_held else payload
        staged = _Staged(event.record_count, event.max_timestamp_ms, event.takes_append_time, data)
        self._staged[event.partition_id, event.provisional_offset] = staged
        self._waiting[event.partition_id, event.producer_id].append(event.provisional_offset)

    def spill(self, event: StagedStreamSpilled, rows: Sequence[IndexEntry], payload: bytes) -> Iterator[str]:
        """Complain where held batches are not in the journal as they were staged."""
        expected = list(self._entering(event.partition_id, event.producer_id, 0, -1))
        yield from _different(event, expected, rows, payload)

    def end(self, event: TransactionEnded, rows: Sequence[IndexEntry], payload: bytes) -> Iterator[str]:
        """Let staged batches enter; complain where what was held is not in the journal as it was staged."""
        markers = {(partition_id, offset) for partition_id, offset, _ in event.markers}
        rest = [row for row in rows if (row.stream, row.first_offset) not in markers]
        coming = [(row.stream, _batch(row, payload)) for row in rows if row not in rest]
        for partition_id, first_offset, producer_id, _ in event.entries:
            batches = list(self._entering(partition_id, producer_id, first_offset, event.at_ms))
            coming += [(partition_id, batch) for batch in batches]
            end_offset = max((batch.last_offset + 1 for batch in batches), default=first_offset)
            held = [row for row in rest if row.stream == partition_id and first_offset <= row.first_offset < end_offset]
            rest = [row for row in rest if row not in held]
            if held:
                yield from _different(event, batches, held, payload)
        if rest:
            yield f"11: {event} has {rest} in the journal, which are neither markers nor were they staged"
        for stream, batch in sorted(coming, key=lambda each: each[1].first_offset):
            self._add(stream, batch)
        self._let_go(event)

    def _entering(
        self, partition_id: PartitionId, producer_id: ProducerId, offset: int, at_ms: int
    ) -> Iterator[WrittenBatch]:
        for provisional in self._waiting[partition_id, producer_id]:
            staged = self._staged[partition_id, provisional]
            is_new = staged.takes_append_time and at_ms >= 0
            time_ms = at_ms if is_new else staged.max_timestamp_ms
            data = offset.to_bytes(OFFSET_BYTES, "big") + staged.data[OFFSET_BYTES:]
            yield WrittenBatch(
                offset, offset + staged.record_count - 1, time_ms, data, has_entered=True, has_new_time=is_new
            )
            offset += staged.record_count

    # --- what is there ------------------------------------------------------------------------------------------------

    def between(self, stream: int, offset: int, end_offset: int) -> Iterator[WrittenBatch]:
        """Yield the batches of a partition that lie there."""
        return (each for each in self._streams[stream] if offset <= each.first_offset < end_offset)

    def partition(self, stream: int, end_offset: int) -> Partition:
        """Return what readers would find who missed nothing."""
        found = Partition()
        of_open: dict[int, dict[int, bytes]] = defaultdict(dict)
        for batch in self.between(stream, 0, end_offset):
            for header, records, commits in read_stored(batch.data):
                producer_id = header.producer_id
                if header.control:
                    found.markers.append((header.base_offset, producer_id))
                    ended = of_open.pop(producer_id, {})
                    found.committed.update(ended if commits else {})
                    continue
                found.records += [(offset, value, producer_id) for offset, value in records]
                waits = header.transactional and not batch.has_entered
                (of_open[producer_id] if waits else found.committed).update(records)
        return found


def _batch(row: IndexEntry, payload: bytes) -> WrittenBatch:
    data = payload[row.start : row.start + row.size]
    return WrittenBatch(row.first_offset, row.last_offset, row.max_timestamp_ms, data)


def _different(
    event: Event, expected: Sequence[WrittenBatch], rows: Sequence[IndexEntry], payload: bytes
) -> Iterator[str]:
    """Complain where these rows are not those of batches that were staged, but for their offsets and new times."""
    found = [_batch(row, payload) for row in rows]
    if [each[:3] for each in found] != [each[:3] for each in expected]:
        yield f"11: {event} has laid {[each[:3] for each in found]} into the journal for {[e[:3] for e in expected]}"
    elif any(
        len(one.data) != len(other.data)
        or (one.data[CHECKED_FROM:] != other.data[CHECKED_FROM:] and not other.has_new_time)
        for one, other in zip(found, expected, strict=True)
    ):
        yield f"11: {event} has laid other batches into the journal than were staged"
