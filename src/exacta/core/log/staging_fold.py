"""The fold of staged streams; `staging.py` has the rules, and `core/apply.py` the table of all events."""

from bisect import bisect
from collections.abc import Callable
from typing import Any

from exacta.core.events import Event, TransactionEnded
from exacta.core.events.staging import BatchStaged, StagedStreamSpilled
from exacta.core.ids import Body, Offset, PartitionId, ProducerId
from exacta.core.log.staging import place_of
from exacta.core.log.written import remember_writer
from exacta.core.state import weights
from exacta.core.state.partition import Partition
from exacta.core.state.staged import ENDS, FIRST_PLACE, HELD, EnteredStream, HeldBatch, Receipt, StagedStream
from exacta.core.state.state import State
from exacta.core.values.usage import Table

MOST_RECEIPTS = 100_000
"""A partition remembers this many runs of staged Pulsar messages. Each costs about a hundred bytes.

Transactions that commit one after another make one run, if nothing else is written between them and none aborts. Each
other transaction makes at least one.
"""
FEWER_RECEIPTS = 1_000
"""This many are remembered while the table of all of them is more than half full."""
FEW_RECEIPTS = 50
"""This many are put in their places one by one. More of them are merged with those that are known, in one pass."""


def _batch_staged(state: State, event: BatchStaged) -> None:
    partition = state.partitions[event.partition_id]
    partition.bodies.add(event.body)
    if state.volatile.disk_room is not None:
        state.volatile.disk_room = state.volatile.disk_room.less(event.size)
    remember_writer(state, partition, event, Offset(event.provisional_offset), transactional=True)
    stream = partition.staged.get(event.producer_id)
    before = 0 if stream is None else weights.staged(stream)
    if stream is None:
        stream = partition.staged[event.producer_id] = StagedStream()
    if event.is_held:
        held = HeldBatch(event.record_count, event.max_timestamp_ms, event.batch, event.takes_append_time)
        stream.held.append(held)
        state.volatile.held_bytes += event.size
        state.volatile.held_batches += 1
    else:
        _give_out(state, event.stream)
        stream.stream = event.stream
    _told(stream, place_of(event.provisional_offset), event.record_count, event.body)
    _count_stream(state, event.partition_id, event.producer_id, weights.staged(stream) - before)
    stream.record_count += event.record_count
    stream.size += event.size
    if event.takes_append_time:
        stream.takes_append_time = True
    else:
        stream.max_timestamp_ms = max(stream.max_timestamp_ms, event.max_timestamp_ms)
    partition.staged_count += event.record_count
    state.volatile.staged_bytes += event.size


def _count(state: State, partition_id: PartitionId, size: int) -> None:
    """Count what has entered a partition, which belongs to nobody."""
    state.volatile.usage[Table.STAGED].change(partition_id, size)


def _count_stream(state: State, partition_id: PartitionId, producer_id: ProducerId, size: int) -> None:
    state.volatile.usage[Table.STAGED].change((partition_id, producer_id), size)


def _give_out(state: State, stream: PartitionId) -> None:
    state.next_partition_id = PartitionId(max(state.next_partition_id, stream + 1))


def _told(stream: StagedStream, place: int, count: int, body: Body) -> None:
    places = stream.places
    if body is not Body.PULSAR:
        if places and places[-2] < 0:
            places[-1] += count
        else:
            places += (~place, count)
    elif places and places[-2] >= 0 and places[-2] + places[-1] == place:
        places[-1] += count
    else:
        places += (place, count)


def _staged_stream_spilled(state: State, event: StagedStreamSpilled) -> None:
    stream = state.partitions[event.partition_id].staged[event.producer_id]
    state.volatile.held_bytes -= stream.size
    state.volatile.held_batches -= len(stream.held)
    stream.held = []  # another list: what was held goes into the journal
    stream.stream = event.stream
    _give_out(state, event.stream)


def enter(state: State, event: TransactionEnded) -> None:
    """Let what a transaction has staged enter its partitions, as it committed."""
    for partition_id, first_offset, producer_id, record_count in event.entries:
        partition = state.partitions[partition_id]
        stream = _taken(state, partition, producer_id)
        partition.next_offset = Offset(first_offset + record_count)
        if stream.stream != HELD:
            append_time_ms = event.at_ms if stream.takes_append_time else -1
            latest = max(stream.max_timestamp_ms, append_time_ms)
            partition.entered.append(
                EnteredStream(first_offset, partition.next_offset, stream.stream, stream.size, latest, append_time_ms)
            )
            _count(state, partition.partition_id, weights.STREAM)
        before = len(partition.receipts)
        is_half_full = state.volatile.usage[Table.STAGED].total > state.limits.max_staging_bytes // 2
        _remember_receipts(partition, stream, first_offset, FEWER_RECEIPTS if is_half_full else MOST_RECEIPTS)
        _count(state, partition.partition_id, (len(partition.receipts) - before) * weights.RUN_OF_PLACES)


def _remember_receipts(partition: Partition, stream: StagedStream, first_offset: int, most: int) -> None:
    """Remember where Pulsar's messages of a stream have entered. Where these are too many, the oldest are forgotten."""
    new: list[Receipt] = []
    offset = first_offset
    for number in range(0, len(stream.places), 2):
        place, count = stream.places[number : number + 2]
        if place >= 0:
            new.append(Receipt(place, Offset(offset), count))
        offset += count
    receipts = partition.receipts
    if len(new) > FEW_RECEIPTS:
        behind = bisect(receipts, new[0].first_place, key=FIRST_PLACE)
        new = sorted(receipts[behind:] + new, key=FIRST_PLACE)
        del receipts[behind:]
    for receipt in new:
        _remember_receipt(receipts, receipt)
    del receipts[: max(0, len(receipts) - most)]


def _remember_receipt(receipts: list[Receipt], receipt: Receipt) -> None:
    index = len(receipts)
    if receipts and receipts[-1].first_place > receipt.first_place:
        index = bisect(receipts, receipt.first_place, key=FIRST_PLACE)
    before = receipts[index - 1] if index else None
    if (
        before is not None
        and before.first_place + before.count == receipt.first_place
        and before.first_offset + before.count == receipt.first_offset
    ):
        receipts[index - 1] = Receipt(before.first_place, before.first_offset, before.count + receipt.count)
    else:
        receipts.insert(index, receipt)


def drop(state: State, partition: Partition, producer_id: ProducerId) -> None:
    """Forget what a producer has staged in a partition, if it has."""
    if producer_id in partition.staged:
        stream = _taken(state, partition, producer_id)
        if stream.stream != HELD:
            state.volatile.streams_let_go.append(stream.stream)


def drop_all(state: State, partition: Partition) -> None:
    """Forget all that is staged in a partition, and what has entered it: its topic is deleted."""
    for producer_id in list(partition.staged):
        drop(state, partition, producer_id)
    state.volatile.streams_let_go += [each.stream for each in partition.entered]
    _count(
        state,
        partition.partition_id,
        -len(partition.entered) * weights.STREAM - len(partition.receipts) * weights.RUN_OF_PLACES,
    )


def _taken(state: State, partition: Partition, producer_id: ProducerId) -> StagedStream:
    stream = partition.staged.pop(producer_id)
    _count_stream(state, partition.partition_id, producer_id, -weights.staged(stream))
    state.volatile.staged_bytes -= stream.size
    if stream.stream == HELD:
        state.volatile.held_bytes -= stream.size
        state.volatile.held_batches -= len(stream.held)
    return stream


def forget_entered(state: State, partition: Partition, before_offset: Offset) -> None:
    """Forget the streams that have entered the partition before an offset: nobody reads them there any more."""
    gone = bisect(partition.entered, before_offset, key=ENDS)
    state.volatile.streams_let_go += [each.stream for each in partition.entered[:gone]]
    del partition.entered[:gone]
    _count(state, partition.partition_id, -gone * weights.STREAM)


def trim(state: State, partition: Partition) -> None:
    """Forget what has entered the partition before the start of its log."""
    start = partition.log_start_offset
    forget_entered(state, partition, start)
    if partition.receipts:
        before = len(partition.receipts)
        partition.receipts = [each for each in partition.receipts if each.first_offset + each.count > start]
        _count(state, partition.partition_id, (len(partition.receipts) - before) * weights.RUN_OF_PLACES)


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    BatchStaged: _batch_staged,
    StagedStreamSpilled: _staged_stream_spilled,
}
