"""Staging: what a transaction writes to a sidecar topic lies aside until it commits (PIP-31, "Sidecar Approach").

    input \\ the producer's stream in the partition    none             held             spilled
    a batch that the state has room for                stage, held      stage, held      stage, spilled
    a batch that would be too much for the state       stage, spilled   spill, stage     stage, spilled
    commit                                             -                enter, copied    enter, in place
    abort                                              -                drop             drop
    deletion of the topic                              -                drop             drop

A topic is a sidecar topic by its configuration `transaction.buffer`. A changed one holds for transactions that begin
later (`Topic.buffer_of`). Where a transaction has written to a partition already, it goes on there as it began.

Theory of operation. There is one staged stream for each producer id of a transaction in a partition. Its records are
numbered from 0 without gaps. A commit lets them enter the partition whole, one batch after another, at the partition's
end as of the commit. So transactions lie in a partition in the order of their commits. No marker is written, because no
reader ever sees a record whose transaction is open or was aborted. The last stable offset does not wait for it.

Small streams are held in the state, and a commit writes their batches to the partition. Large ones are spilled to a
stream of the journal, whose id is given out as a partition's is. A commit only notes where a spilled stream has entered
(decision 0041). A batch that is staged has no offset yet. Its writer is told a *provisional offset*, which lies far
below zero and is never given out a second time (decision 0042).
"""

from bisect import bisect
from enum import Enum, auto

from exacta.core.events import BatchAppended, Event, StreamEntry
from exacta.core.events.staging import BatchStaged, StagedStreamSpilled
from exacta.core.ids import Offset, ProducerId, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.state.partition import Partition
from exacta.core.state.staged import FIRST_PLACE, HELD, StagedStream
from exacta.core.state.state import State
from exacta.core.values.transaction_buffer import SIDECAR

FIRST_PROVISIONAL_OFFSET = -(1 << 62)
"""The first provisional offset of each partition. What clients add to it stays below zero for ever."""


class NotEntered(Enum):
    """The reasons why a staged message has no offset."""

    OPEN = auto()
    """Its transaction is open."""
    GONE = auto()
    """Its transaction was aborted, or it is deleted, or forgotten, or there never was such a message."""


def is_provisional(offset: int) -> bool:
    """Return whether a number is a provisional offset, and not an offset or one of the protocols' special numbers."""
    return FIRST_PROVISIONAL_OFFSET <= offset < FIRST_PROVISIONAL_OFFSET >> 1


def place_of(provisional_offset: int) -> int:
    """Return the place that a provisional offset names: the number of records staged in the partition before it."""
    return provisional_offset - FIRST_PROVISIONAL_OFFSET


def next_provisional_offset(partition: Partition) -> Offset:
    """Return what the writer of the next staged batch is told."""
    return Offset(FIRST_PROVISIONAL_OFFSET + partition.staged_count)


def stages(state: State, partition: Partition, producer_id: ProducerId, transaction_id: TransactionId) -> bool:
    """Return whether what this producer of an open transaction writes to the partition is staged."""
    transaction = state.transactions.get(transaction_id)
    for each in (producer_id,) if transaction is None else transaction.producer_ids:
        if each in partition.staged:
            return True
        if each in partition.open_transactions:
            return False
    buffer = state.topics[partition.topic].buffer_of(transaction_id)
    return (buffer or state.limits.transaction_buffer) == SIDECAR


def stage(
    state: State, partition: Partition, batch: BatchAppended, *, takes_append_time: bool
) -> tuple[Event, ...] | Rejection:
    """Return the events that stage a batch, in the place of the one that appends it; the last one is BatchStaged."""
    limits, volatile = state.limits, state.volatile
    if volatile.staged_bytes + batch.size > limits.max_staged_bytes:
        return Rejection.TOO_MUCH_STAGED
    known = partition.staged.get(batch.producer_id, StagedStream())
    stream = known.stream
    spilled: tuple[StagedStreamSpilled, ...] = ()
    if stream == HELD and not _can_hold(state, known, batch.size):
        stream = state.next_partition_id
        if known.held:
            spilled = (
                StagedStreamSpilled(partition_id=partition.partition_id, producer_id=batch.producer_id, stream=stream),
            )
    staged = BatchStaged(
        partition_id=partition.partition_id,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        stream=stream,
        first_index=known.record_count,
        provisional_offset=next_provisional_offset(partition),
        record_count=batch.record_count,
        size=batch.size,
        max_timestamp_ms=batch.max_timestamp_ms,
        base_sequence=batch.base_sequence,
        at_ms=batch.at_ms,
        body=batch.body,
        writer_id=batch.writer_id,
        takes_append_time=takes_append_time,
    )
    return (*spilled, staged)


def _can_hold(state: State, known: StagedStream, size: int) -> bool:
    limits = state.limits
    share = 1 if known.size + size <= limits.small_held_bytes_per_stream else 2
    return (
        known.size + size <= limits.max_held_bytes_per_stream
        and len(known.held) < limits.max_held_batches_per_stream
        and state.volatile.held_bytes + size <= limits.max_held_bytes // share
        and state.volatile.held_batches < limits.max_held_batches // share
    )


def entry(partition: Partition, producer_id: ProducerId, first_offset: Offset) -> StreamEntry:
    """Return how a producer's staged stream enters the partition at an offset, if its transaction commits now."""
    return partition.partition_id, first_offset, producer_id, partition.staged[producer_id].record_count


def offset_of_receipt(partition: Partition, provisional_offset: int) -> Offset | None:
    """Return the offset at which a staged Pulsar message has entered; None: it has not, or is not there any more.

    Only the last receipts of a partition are known (`staging_fold.MOST_RECEIPTS`).
    """
    place, receipts = place_of(provisional_offset), partition.receipts
    before = bisect(receipts, place, key=FIRST_PLACE)
    if not before:
        return None
    receipt = receipts[before - 1]
    if place >= receipt.first_place + receipt.count:
        return None
    found = Offset(receipt.first_offset + place - receipt.first_place)
    return found if found >= partition.log_start_offset else None


def find_staged(partition: Partition, provisional_offset: int) -> Offset | NotEntered:
    """Return the offset at which a staged Pulsar message has entered, or why there is none."""
    found = offset_of_receipt(partition, provisional_offset)
    if found is not None:
        return found
    place = place_of(provisional_offset)
    is_open = any(_is_told(stream.places, place) for stream in partition.staged.values())
    return NotEntered.OPEN if is_open else NotEntered.GONE


def _is_told(places: list[int], place: int) -> bool:
    """Return whether a place is one of Pulsar's messages in a staged stream that was told these runs of places."""
    run = bisect(range(0, len(places), 2), place, key=lambda at: max(places[at], ~places[at])) - 1
    return run >= 0 and places[2 * run] >= 0 and place < places[2 * run] + places[2 * run + 1]


def staged_bytes(partition: Partition) -> int:
    """Return the bytes of what open transactions have staged in a partition."""
    return sum(stream.size for stream in partition.staged.values())


def streams_of(partition: Partition, log_start_offset: int) -> dict[int, int]:
    """Return the journal's streams that a partition needs besides its own, each with the first number that it needs."""
    floors = {int(each.stream): max(0, log_start_offset - each.first_offset) for each in partition.entered}
    return floors | {int(each.stream): 0 for each in partition.staged.values() if each.stream != HELD}
