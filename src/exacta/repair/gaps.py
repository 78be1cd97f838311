"""Find which batches are missing where something is lost, and what stands in for them."""

from collections.abc import Iterator, Mapping

from exacta.adapters.local.damage.segment_walk import pieces
from exacta.adapters.local.damage.staging import StandIn
from exacta.adapters.local.damage.survey import Lost, Survey
from exacta.adapters.local.opening.segment_scan import Group
from exacta.core.ids import PartitionId
from exacta.core.state.state import State
from exacta.ports.journal import IndexEntry
from exacta.protocol.kafka.records import empty_batch
from exacta.records.record_format import KafkaRecordFormat
from exacta.repair.known_state import is_batch_sound

_MOST_OFFSETS = (1 << 31) - 1  # of one batch

Gaps = dict[tuple[int, int], list[tuple[PartitionId, int, int]]]
"""The ranges that are gone, for each loss by slot and offset: partition, first and last offset."""


def find_gaps(found: Survey, state: State, end: int) -> Gaps:
    """Find what batches are missing where something is lost, by the offsets before and behind it."""
    gaps: Gaps = {}
    regions: list[tuple[int, int]] = []
    next_offsets: dict[int, int] = {}
    seen_at: dict[int, int] = {}

    def missing(stream: int, first: int, upto: int) -> None:
        partition = state.partitions.get(PartitionId(stream))
        if partition is None:
            return
        first = max(first, partition.log_start_offset)
        number = seen_at.get(stream, 0)
        if first < upto and number < len(regions):
            gaps.setdefault(regions[number], []).append((partition.partition_id, first, upto - 1))

    def take(row: IndexEntry) -> None:
        known = next_offsets.get(row.stream)
        partition = state.partitions.get(PartitionId(row.stream))
        expected = known if known is not None else (partition.log_start_offset if partition is not None else 0)
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
                    if isinstance(piece, Group) or is_batch_sound(found, piece, entry.payload_start, row):
                        next_offsets[row.stream] = max(next_offsets.get(row.stream, 0), row.last_offset + 1)
    for number, slot in enumerate(found.slots):
        for piece in pieces(found, number):
            begin = piece.begin if isinstance(piece, Lost) else piece.position
            if slot.base >= end or (not slot.generation and begin >= end):
                break
            if isinstance(piece, Lost):
                regions.append((number, piece.offset))
            for entry in piece.entries:
                for row in entry.rows:
                    if isinstance(piece, Group) or is_batch_sound(found, piece, entry.payload_start, row):
                        take(row)
                        # Behind a batch that was saved from a loss, more of that loss may follow.
                        seen_at[row.stream] = len(regions) - isinstance(piece, Lost)
    for partition in state.partitions.values():
        known = next_offsets.get(partition.partition_id, partition.log_start_offset)
        if known < partition.next_offset:
            missing(partition.partition_id, known, partition.next_offset)
    return gaps


def stand_ins_for(state: State, gaps: Gaps) -> Mapping[tuple[int, int], list[StandIn]]:
    """Return the batches that take the place of what is missing, for each loss."""
    return {key: [each for gap in found for each in _filling(state, *gap)] for key, found in gaps.items()}


def _filling(state: State, partition_id: PartitionId, first: int, last: int) -> Iterator[StandIn]:
    """Yield batches for all of these offsets: markers where an aborted transaction had its, and else none's."""
    partition = state.partitions[partition_id]
    at = first
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
