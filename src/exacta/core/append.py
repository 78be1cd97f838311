"""Appending a record batch to a partition: fencing, idempotence, transaction membership, in this order.

The order matters. A repeat gets its original offset even if its transaction has ended since; a write that belongs to no
open transaction is told so before its sequence is looked at, because its client must abort, not resend.
"""

from exacta.core.commands import AppendBatch
from exacta.core.events import BatchAppended
from exacta.core.ids import NO_PRODUCER_ID
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended
from exacta.core.sequence import check_sequence, find_repeat
from exacta.core.state import Partition, State
from exacta.core.transaction import Extension, joined


def append_batch(state: State, command: AppendBatch, now_ms: int) -> Outcome:
    """Append a batch whose bytes the wire protocol has validated."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    before = Extension()
    if command.producer_id != NO_PRODUCER_ID:
        checked = _check_producer(state, partition, command, now_ms)
        if not isinstance(checked, Extension):
            return Outcome(reply=checked)
        before = checked
    base_offset = partition.next_offset
    appended = BatchAppended(
        partition_id=partition.partition_id,
        base_offset=base_offset,
        record_count=command.record_count,
        size=command.size,
        max_timestamp_ms=command.max_timestamp_ms,
        transactional=command.transactional,
        producer_id=command.producer_id,
        producer_epoch=command.producer_epoch,
        base_sequence=command.base_sequence,
    )
    return Outcome(events=(*before.events, appended), reply=Appended(base_offset=base_offset), timers=before.timers)


def _check_producer(
    state: State, partition: Partition, command: AppendBatch, now_ms: int
) -> Extension | Appended | Rejection:
    """Return what must go before the batch; or the answer, where the batch is not to be appended."""
    producer_id, epoch = command.producer_id, command.producer_epoch
    if producer_id >= state.next_producer_id:
        # Accepting it would let a later owner of this id be taken for a repeat of it.
        return Rejection.UNKNOWN_PRODUCER_ID
    held = state.volatile.transactional_by_producer.get(producer_id)
    if held is not None and epoch != held.producer_epoch:
        return Rejection.INVALID_PRODUCER_EPOCH
    if held is None and command.transactional:
        # The id has rotated: even a repeat is a zombie's, and its transaction has been aborted.
        return Rejection.INVALID_PRODUCER_ID_MAPPING
    known = partition.producers.get(producer_id)
    repeat = find_repeat(known, epoch, command.base_sequence, command.record_count, state.limits)
    if repeat is not None:
        return Appended(base_offset=repeat, repeated=True)
    before = Extension()
    if held is not None and command.transactional:
        needed = joined(state, held, command.version, partition_id=partition.partition_id, now_ms=now_ms)
        if needed is None:
            return Rejection.TRANSACTION_NOT_BEGUN
        before = needed
    elif producer_id in partition.open_transactions:
        return Rejection.INVALID_TRANSACTION_STATE
    rejection = check_sequence(known, epoch, command.base_sequence, state.limits, version=command.version)
    return before if rejection is None else rejection
