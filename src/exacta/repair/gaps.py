"""Find which batches are missing where something is lost, and what stands in for them.

A stream of the journal is a partition's own, or holds what a transaction has staged (`exacta.core.log.staging`). Where
such a stream has entered a partition, the partition's own stream has nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from exacta.adapters.local.damage.repair_copy import StandIn
from exacta.adapters.local.damage.segment_walk import pieces
from exacta.adapters.local.damage.survey import Lost, Survey
from exacta.adapters.local.opening.segment_scan import ScannedGroup
from exacta.core.ids import NO_PRODUCER_ID, PartitionId, ProducerId
from exacta.core.state.partition import Partition
from exacta.core.state.staged import HELD
from exacta.core.state.state import State
from exacta.ports.journal import IndexEntry
from exacta.protocol.kafka.batch_building import empty_batch
from exacta.records.record_format import KafkaRecordFormat
from exacta.repair.known_state import is_batch_sound

_MOST_OFFSETS = (1 << 31) - 1  # of one batch

Gaps = dict[tuple[int, int], list[tuple[PartitionId, int, int]]]
"""The ranges that are gone, for each loss by slot and offset: stream, first and last offset in the stream's numbers."""


class Stream(NamedTuple):
    """The content that is expected of a stream of the journal; ends are exclusive."""

    partition: Partition
    shift: int
    """Its offsets in the partition are higher by so much."""
    start: int
    end: int
    elsewhere: Sequence[tuple[int, int]] = ()
    """The offsets that lie in other streams."""
    producer_id: ProducerId = NO_PRODUCER_ID
    """The producer of a transaction that is open, which has staged all of it."""


def streams_of(state: State, compacted_to: Mapping[int, int] = MappingProxyType({})) -> dict[int, Stream]:
    """Return all streams that somebody may still read.

    Compaction has written elsewhere what had entered before `compacted_to`, even if the state does not know that.
    """
    streams: dict[int, Stream] = {}
    for partition in state.partitions.values():
        start = partition.log_start_offset
        entered = [(int(each.first_offset), int(each.end_offset)) for each in partition.entered]
        streams[partition.partition_id] = Stream(partition, 0, start, partition.next_offset, entered)
        for each in partition.entered:
            first, end = each.first_offset, each.end_offset
            if end <= compacted_to.get(partition.partition_id, 0):
                continue
            streams[each.stream] = Stream(partition, first, max(0, start - first), end - first)
        for producer_id, staged in partition.staged.items():
            if staged.stream != HELD:
                streams[staged.stream] = Stream(partition, 0, 0, staged.record_count, (), producer_id)
    return streams


def find_gaps(found: Survey, state: State, end: int) -> Gaps:
    """Find what batches are missing where something is lost, by the offsets before and behind it."""
    gaps: Gaps = {}
    regions: list[tuple[int, int]] = []
    next_offsets: dict[int, int] = {}
    seen_at: dict[int, int] = {}

    def missing(stream: int, first: int, upto: int) -> None:
        number = seen_at.get(stream, 0)
        if stream in streams and number < len(regions):
            for begin, behind in _without(max(first, streams[stream].start), upto, streams[stream].elsewhere):
                gaps.setdefault(regions[number], []).append((PartitionId(stream), begin, behind - 1))

    def take(row: IndexEntry) -> None:
        expected = next_offsets.get(row.stream)
        if expected is None:
            expected = streams[row.stream].start if row.stream in streams else 0
        if row.last_offset < expected:
            return  # compacted
        if row.first_offset > expected:
            missing(row.stream, expected, row.first_offset)
        next_offsets[row.stream] = row.last_offset + 1

    # What is compacted comes first, and has gaps of its own: only what is missing behind it is taken for lost.
    for number in found.numbers_of_compacted:
        for piece in pieces(found, number):
            for entry in piece.entries:
                for row in entry.rows:
                    if isinstance(piece, ScannedGroup) or is_batch_sound(found, piece, entry.payload_start, row):
                        next_offsets[row.stream] = max(next_offsets.get(row.stream, 0), row.last_offset + 1)
    streams = streams_of(state, next_offsets)
    for number, slot in enumerate(found.slots):
        for piece in pieces(found, number):
            begin = piece.begin if isinstance(piece, Lost) else piece.position
            if slot.base >= end or (not slot.generation and begin >= end):
                break
            if isinstance(piece, Lost):
                regions.append((number, piece.offset))
            for entry in piece.entries:
                for row in entry.rows:
                    if isinstance(piece, ScannedGroup) or is_batch_sound(found, piece, entry.payload_start, row):
                        take(row)
                        # Behind a batch that was saved from a loss, more of that loss may follow.
                        seen_at[row.stream] = len(regions) - isinstance(piece, Lost)
    for stream, expected_of in streams.items():
        known = next_offsets.get(stream, expected_of.start)
        if known < expected_of.end:
            missing(stream, known, expected_of.end)
    return gaps


def _without(first: int, end: int, elsewhere: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what is left of a range without these ones, which are in order."""
    for begin, behind in elsewhere:
        if first < min(begin, end):
            yield first, min(begin, end)
        first = max(first, behind)
    if first < end:
        yield first, end


def stand_ins_for(state: State, gaps: Gaps) -> Mapping[tuple[int, int], list[StandIn]]:
    """Return the batches that take the place of what is missing, for each loss."""
    return {key: [each for gap in found for each in _filling(state, *gap)] for key, found in gaps.items()}


def _filling(state: State, partition_id: PartitionId, first: int, last: int) -> Iterator[StandIn]:
    """Yield batches without records for all of these offsets, and markers where aborted transactions had theirs."""
    partition = state.partitions.get(partition_id)
    at = first
    if partition is None:  # it is a staged stream, which has no markers
        yield from _empty(partition_id, first, last)
        return
    for aborted in sorted(partition.aborted, key=lambda each: each.last_offset):
        marker_at = aborted.last_offset
        if first <= marker_at <= last:
            yield from _empty(partition_id, at, marker_at - 1)
            producer = partition.producers.get(aborted.producer_id)
            epoch = producer.producer_epoch if producer is not None else 0
            content = KafkaRecordFormat().marker(marker_at, aborted.producer_id, epoch, commit=False, timestamp_ms=0)
            yield StandIn(IndexEntry(partition_id, marker_at, marker_at, 0, 0, len(content), 0), content)
            at = marker_at + 1
    yield from _empty(partition_id, at, last)


def _empty(partition_id: PartitionId, first: int, last: int) -> Iterator[StandIn]:
    while first <= last:
        upto = min(last, first + _MOST_OFFSETS - 1)
        content = empty_batch(first, upto)
        yield StandIn(IndexEntry(partition_id, first, upto, -1, 0, len(content), 0), content)
        first = upto + 1
