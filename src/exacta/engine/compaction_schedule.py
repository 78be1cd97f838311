"""The schedule of compactions: which partitions are due, and by which rules each is compacted.

Owns the choice among the partitions of compacted topics, by Kafka's measures (KIP-58, KIP-354): a partition is due when
enough has been written to it since its last compaction, or when a record has waited for too long. Owns neither what a
compaction keeps (`ports.compaction`) nor how the rest is stored (`Journal.compact`), nor when the schedule is asked
(`upkeep`).

Theory of operation. A batch counts if it lies below the last stable offset, is old enough, and lies in a segment that
is not written to any more. If batches in the segment that is written to have waited for long, or are many, the schedule
lets the next append begin another segment. Once a compaction is through, no record of an aborted transaction is left
below its end. Only then are readers no longer told of these transactions, and only when that is durable may another
compaction remove their markers: a reader that is told of an aborted transaction drops all of the producer's records up
to the marker.

A stream that has entered the partition in place (`log_reader`) is compacted with it, once all of it is sealed, and what
is left goes into the partition's own stream. From then on readers pass over it, and it is forgotten by the same command
as aborted transactions are. A partition may have tens of thousands of entered streams. So the schedule remembers up to
which of them all are known to be compactable, and asks about some more at each look.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from exacta.core.commands import Command, ForgetCompacted
from exacta.core.ids import PartitionId
from exacta.core.state.partition import Partition
from exacta.core.state.staged import BEGINS, ENDS, EnteredStream
from exacta.core.state.state import State
from exacta.engine.visible import Visible
from exacta.ports.compaction import MOST_STREAMS, Rules
from exacta.ports.journal import CompactionOrder, Joining, JournalReader, JournalSpace

MOST_BYTES = 256 << 20
"""Partitions that are compacted at once have at most this many bytes, unless a single one has more.

Their compaction needs room for them a second time.
"""
MOST_ENTERED = 1_000
"""At one look at a partition the journal is asked about this many entered streams. Each takes some microseconds."""


class CompactionPolicy(Struct, frozen=True, kw_only=True):
    """The way in which a topic is compacted, as its configurations say."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    delete_retention_ms: int
    segment_ms: int
    segment_bytes: int


class Candidate(NamedTuple):
    """A partition that is due for compaction."""

    dirty_ratio: float
    size_bytes: int
    order: CompactionOrder


class CompactionSchedule:
    """Chooses the partitions to compact. It reads the state and the journal, and changes neither."""

    def __init__(
        self,
        state: State,
        visible: Mapping[PartitionId, Visible],
        reader: JournalReader,
        space: JournalSpace,
        rules: Callable[[Mapping[str, str]], CompactionPolicy | None],
    ) -> None:
        self._state = state
        self._visible = visible
        self._reader = reader
        self._space = space
        self._rules = rules
        self._compactable_to: dict[PartitionId, int] = {}
        """The offset up to which all streams that have entered the partition are known to be compactable."""

    def _partitions(self) -> Iterator[tuple[Partition, Visible, CompactionPolicy]]:
        for topic in list(self._state.topics.values()):
            compacting = self._rules(topic.configs)
            if compacting is None:
                continue
            for partition_id in topic.partition_ids:
                partition, seen = self._state.partitions.get(partition_id), self._visible.get(partition_id)
                if partition is not None and seen is not None:
                    yield partition, seen, compacting

    def to_forget(self) -> list[Command]:
        """Return the commands that must be durable before another compaction begins."""
        return [
            ForgetCompacted(topic=partition.topic, partition=partition.index, before_offset=end_offset)
            for partition, _, _ in self._partitions()
            if (partition.aborted or partition.entered)
            and _has_compacted(partition, end_offset := self._reader.compacted_to(partition.partition_id))
        ]

    def candidates(self, now_ms: int) -> Iterator[Candidate | None]:
        """Look at one partition after another; yield None for each that is not due.

        The journal begins another segment where a partition has waited for that. A candidate stays right while other
        partitions are looked at: only floors of partitions may have moved since, or a partition may be gone.
        """
        there = self._state.partitions
        self._compactable_to = {each: end for each, end in self._compactable_to.items() if each in there}
        for partition, seen, compacting in self._partitions():
            self._seal_if_due(partition, seen, compacting, now_ms)
            yield self._candidate(partition, seen, compacting, now_ms)

    def orders(self, found: list[Candidate], failures: int = 0) -> list[CompactionOrder]:
        """Return the orders to give now, the dirtiest partition first, leaving out partitions that are gone.

        After `failures` in a row it is one order alone, another each time: there may be room for one, and a partition
        that cannot be compacted does not hold up all others.
        """
        there = [candidate for candidate in found if candidate.order.stream in self._visible]
        there.sort(key=lambda candidate: candidate.dirty_ratio, reverse=True)
        if failures and there:
            return [there[(failures - 1) % len(there)].order]
        chosen, room_bytes = there[:1], MOST_BYTES - sum(candidate.size_bytes for candidate in there[:1])
        for candidate in there[1:]:
            if candidate.size_bytes <= room_bytes and len(chosen) < MOST_STREAMS:
                room_bytes -= candidate.size_bytes
                chosen.append(candidate)
        return [candidate.order for candidate in chosen]

    def _candidate(
        self, partition: Partition, seen: Visible, compacting: CompactionPolicy, now_ms: int
    ) -> Candidate | None:
        if partition.log_start_offset > seen.log_start_offset:
            return None  # what has entered before it is forgotten already, and a crash would bring it back
        stream, reader = partition.partition_id, self._reader
        end_offset = int(seen.last_stable_offset)
        if compacting.min_lag_ms:
            young = reader.find_by_time(stream, now_ms - compacting.min_lag_ms, seen.log_start_offset, end_offset)
            if young is not None:
                end_offset = young.first_offset
        dirty_from, dirty_to = self._compactable(partition, seen.log_start_offset, end_offset)
        dirty_bytes = reader.size_bytes(stream, max(dirty_from, seen.log_start_offset), dirty_to)
        if not dirty_bytes:
            return None
        size_bytes = reader.size_bytes(stream, seen.log_start_offset, dirty_to)
        ratio = dirty_bytes / size_bytes
        oldest = reader.find_by_time(stream, 0, max(dirty_from, seen.log_start_offset), dirty_to)
        waits_too_long = oldest is not None and now_ms - oldest.max_timestamp_ms > compacting.max_lag_ms
        if ratio <= compacting.min_dirty_ratio and not waits_too_long:
            return None
        aborted = tuple(
            (int(each.producer_id), int(each.first_offset), int(each.last_offset))
            for each in partition.aborted
            if each.first_offset < dirty_to
        )
        rules = Rules(now_ms=now_ms, delete_retention_ms=compacting.delete_retention_ms, aborted=aborted)
        joining = [
            Joining(each.stream, each.first_offset, each.append_time_ms, each.size)
            for each in partition.entered
            if dirty_from < each.end_offset <= dirty_to
        ]
        return Candidate(ratio, size_bytes, CompactionOrder(stream, dirty_to, rules, joining))

    def _compactable(self, partition: Partition, log_start_offset: int, end_offset: int) -> tuple[int, int]:
        """Return from and to which offset the partition can be compacted now and has not been, entered streams and all.

        The batches of the partition's own count up to the first stream that cannot be compacted yet. So do the streams
        that follow them without a gap.
        """
        stream = partition.partition_id
        begin, end = self._space.compactable(stream, end_offset)
        if not partition.entered:
            return begin, end
        known_to = self._compactable_entered(partition, begin)
        waiting = _not_known(partition.entered, known_to)
        if waiting and waiting[0].first_offset < end:
            end = self._space.compactable(stream, waiting[0].first_offset)[1]
        return begin, _end_of_run(partition.entered, end, log_start_offset, min(known_to, end_offset))

    def _compactable_entered(self, partition: Partition, compacted_to: int) -> int:
        """Return the offset up to which all that has entered the partition is known to be compactable."""
        known_to = max(self._compactable_to.get(partition.partition_id, 0), compacted_to)
        for each in _not_known(partition.entered, known_to):
            length = each.end_offset - each.first_offset
            # A repair may have left a part of what a compaction had made of it.
            if each.first_offset < compacted_to or self._space.compactable(each.stream, length)[1] < length:
                break
            known_to = each.end_offset
        self._compactable_to[partition.partition_id] = known_to
        return known_to

    def _sealed_to(self, partition: Partition, log_start_offset: int) -> int:
        """Return the first offset of the partition that is not sealed, or will not be when it is written."""
        own_to = self._space.sealed_to(partition.partition_id)
        known_to, waits_at = self._compactable_to.get(partition.partition_id, 0), own_to
        for each in _not_known(partition.entered, known_to):
            if self._space.sealed_to(each.stream) < each.end_offset - each.first_offset:
                waits_at = each.first_offset
                break
            known_to = each.end_offset
        else:
            # There may be more, which nobody has asked about. A segment begun for nothing is worse than a delay.
            known_to = partition.entered[-1].end_offset if partition.entered else known_to
        return _end_of_run(partition.entered, min(own_to, waits_at), log_start_offset, known_to)

    def _seal_if_due(self, partition: Partition, seen: Visible, compacting: CompactionPolicy, now_ms: int) -> None:
        stream, end_offset = partition.partition_id, seen.high_watermark
        begin = max(self._sealed_to(partition, seen.log_start_offset), seen.log_start_offset)
        oldest = self._reader.find_by_time(stream, 0, begin, end_offset)
        for_ms = min(compacting.segment_ms, compacting.max_lag_ms)
        if (oldest is not None and now_ms - oldest.max_timestamp_ms >= for_ms) or (
            self._reader.size_bytes(stream, begin, end_offset) >= compacting.segment_bytes
        ):
            self._space.seal()


def _has_compacted(partition: Partition, end_offset: int) -> bool:
    """Return whether the partition still knows of something before an offset that compaction has been over."""
    aborted, entered = partition.aborted, partition.entered
    return (bool(aborted) and aborted[0].last_offset < end_offset) or (
        bool(entered) and entered[0].end_offset <= end_offset
    )


def _not_known(entered: Sequence[EnteredStream], known_to: int) -> Sequence[EnteredStream]:
    """Return the first entered streams that end behind an offset."""
    begin = bisect_right(entered, known_to, key=ENDS)
    return entered[begin : begin + MOST_ENTERED]


def _end_of_run(entered: Sequence[EnteredStream], offset: int, log_start_offset: int, limit: int) -> int:
    """Return where the entered streams end that follow one another from an offset on, up to a limit."""
    for number in range(bisect_left(entered, offset, key=BEGINS), len(entered)):
        each = entered[number]
        if each.first_offset > max(offset, log_start_offset) or each.end_offset > limit:
            break
        offset = each.end_offset
    return offset
