"""Appending a record batch to a partition: fencing, idempotence, transaction membership, in this order.

The order matters. A repeat gets its original offset even if its transaction has ended since. A write that belongs to no
open transaction is refused for that before its sequence is looked at, because its client must abort and not resend.
Last of all comes whether the partition takes batches now (`closing.py`), so that a repeat is a repeat even where it
takes none.
"""

from exacta.core.commands import AppendBatch
from exacta.core.events import BatchAppended, Event, ProducersExpired
from exacta.core.ids import ProducerId, TransactionId, TransactionVersion
from exacta.core.log import closing, named_sequence, nameless_sequence, staging
from exacta.core.log.repeats import UNCOUNTED, Known
from exacta.core.log.sequence import check_sequence, find_repeat
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import AlreadyStored, Appended
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import HANDLE_EPOCH
from exacta.core.transactions.handle import extension_in_handle, open_handle
from exacta.core.transactions.transaction import Extension, extension_for_write
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.core.writers import IdempotentWriter, NamedWriter, NamelessWriter


def append_batch(state: State, command: AppendBatch, now_ms: int) -> Outcome:
    """Append a batch whose bytes the wire protocol has validated."""
    partition = state.partition(command.topic, command.partition)
    if partition is None or command.partition_id not in (None, partition.partition_id):
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if command.topic in INTERNAL_TOPICS:
        return Outcome(reply=Rejection.INTERNAL_TOPIC)
    outcome = _append(state, partition, command, now_ms)
    if not outcome.events:
        return outcome
    return closing.refusal(state, partition, command) or outcome


def _append(state: State, partition: Partition, command: AppendBatch, now_ms: int) -> Outcome:
    if command.transaction is not None:
        return _append_in_handle(state, partition, command, command.transaction, now_ms)
    match command.writer:
        case None | NamelessWriter():
            return _appended(partition, command)
        case IdempotentWriter() as writer:
            return _append_idempotent(state, partition, command, writer, now_ms)
        case NamedWriter() as writer:
            return _append_named(state, partition, command, writer, now_ms)


def _appended(partition: Partition, command: AppendBatch) -> Outcome:
    """Append a batch of which nobody can tell a repeat."""
    base_offset = partition.next_offset
    event = BatchAppended(
        partition_id=partition.partition_id,
        base_offset=base_offset,
        record_count=command.record_count,
        size=command.size,
        max_timestamp_ms=command.max_timestamp_ms,
        body=command.body,
    )
    return Outcome(events=(event,), reply=Appended(base_offset=base_offset))


def _append_idempotent(
    state: State, partition: Partition, command: AppendBatch, writer: IdempotentWriter, now_ms: int
) -> Outcome:
    before = _check_producer(state, partition, command, writer, now_ms)
    if not isinstance(before, Extension):
        return Outcome(reply=before)
    forgotten: tuple[ProducersExpired, ...] = ()
    if writer.producer_id not in partition.producers:
        room = _make_room(state, partition, now_ms)
        if isinstance(room, Rejection):
            return Outcome(reply=room)
        forgotten = room
    base_offset = partition.next_offset
    appended = BatchAppended(
        partition_id=partition.partition_id,
        base_offset=base_offset,
        record_count=command.record_count,
        size=command.size,
        max_timestamp_ms=command.max_timestamp_ms,
        transactional=writer.transactional_id is not None,
        producer_id=writer.producer_id,
        producer_epoch=writer.producer_epoch,
        base_sequence=writer.base_sequence,
        at_ms=now_ms,
        body=command.body,
    )
    return _append_after(state, partition, command, (*before.events, *forgotten), appended, before)


def _append_after(
    state: State,
    partition: Partition,
    command: AppendBatch,
    others: tuple[Event, ...],
    appended: BatchAppended,
    before: Extension,
) -> Outcome:
    """Append a batch after other events, or stage it if its transaction keeps it aside (`staging.py`)."""
    transaction_id = before.transaction_id
    batch: tuple[Event, ...] = (appended,)
    base_offset = appended.base_offset
    if transaction_id is not None and staging.stages(state, partition, appended.producer_id, transaction_id):
        staged = staging.stage(state, partition, appended, takes_append_time=command.takes_append_time)
        if isinstance(staged, Rejection):
            return Outcome(reply=staged)
        batch, base_offset = staged, staging.next_provisional_offset(partition)
    return Outcome(
        events=(*others, *batch),
        reply=Appended(base_offset=base_offset),
        timers=before.timers,
        inside_transaction=before.inside_transaction,
    )


def _append_named(
    state: State, partition: Partition, command: AppendBatch, writer: NamedWriter, now_ms: int
) -> Outcome:
    known = named_sequence.check(state, partition, writer, now_ms)
    if known is UNCOUNTED:
        return _appended(partition, command)
    if not isinstance(known, Known):
        return Outcome(reply=known)
    base_offset = partition.next_offset
    appended = BatchAppended(
        partition_id=partition.partition_id,
        base_offset=base_offset,
        record_count=command.record_count,
        size=command.size,
        max_timestamp_ms=command.max_timestamp_ms,
        base_sequence=known.sequence,
        at_ms=now_ms,
        body=command.body,
        writer_id=known.writer_id,
    )
    return Outcome(events=(*known.events, appended), reply=Appended(base_offset=base_offset))


def _append_in_handle(
    state: State, partition: Partition, command: AppendBatch, transaction_id: TransactionId, now_ms: int
) -> Outcome:
    """Append a batch under the producer id of a handle, from any writer."""
    transaction = open_handle(state, transaction_id, now_ms)
    if isinstance(transaction, Rejection):
        return Outcome(reply=transaction)
    if command.handle_producer_id != transaction.producer_ids[-1]:  # readers would see it whatever its end is
        return Outcome(reply=Rejection.INVALID_PRODUCER_ID_MAPPING)
    known: Known | AlreadyStored | Rejection = UNCOUNTED
    match command.writer:
        case IdempotentWriter():  # its sequences would be taken for the handle's
            return Outcome(reply=Rejection.INVALID_PRODUCER_ID_MAPPING)
        case NamedWriter() as named:
            known = named_sequence.check(state, partition, named, now_ms)
        case NamelessWriter() as nameless:
            known = nameless_sequence.check(state, partition, command.handle_producer_id, nameless)
    if not isinstance(known, Known):
        return Outcome(reply=known)
    before = extension_in_handle(state, transaction, partition_id=partition.partition_id, now_ms=now_ms)
    if isinstance(before, Rejection):
        return Outcome(reply=before)
    appended = BatchAppended(
        partition_id=partition.partition_id,
        base_offset=partition.next_offset,
        record_count=command.record_count,
        size=command.size,
        max_timestamp_ms=command.max_timestamp_ms,
        transactional=True,
        producer_id=transaction.producer_ids[-1],
        producer_epoch=HANDLE_EPOCH,
        base_sequence=known.sequence,
        at_ms=now_ms,
        body=command.body,
        writer_id=known.writer_id,
    )
    return _append_after(state, partition, command, (*before.events, *known.events), appended, before)


def _make_room(state: State, partition: Partition, now_ms: int) -> tuple[ProducersExpired, ...] | Rejection:
    """Make room for one more producer: if there are too many, forget the one that has been silent for longest."""
    if len(partition.producers) < state.limits.max_producers_per_partition:
        return ()
    for silent, known in partition.producers.items():
        if partition.has_open(silent):
            continue
        if known.last_append_ms > now_ms - state.limits.producer_protected_ms:
            break  # this producer may still repeat a batch, and so may all that follow
        return (ProducersExpired(producers=((partition.partition_id, silent),)),)
    return Rejection.LIMIT_REACHED


def _check_producer(
    state: State, partition: Partition, command: AppendBatch, writer: IdempotentWriter, now_ms: int
) -> Extension | Appended | Rejection:
    """Return the events that must precede the batch, or the answer if the batch is not to be appended."""
    producer_id, epoch = writer.producer_id, writer.producer_epoch
    transactional = writer.transactional_id is not None
    held = state.volatile.holder_by_producer.get(producer_id)
    if transactional and (held is None or held.transactional_id != writer.transactional_id):
        # The id is somebody else's, or it has rotated. Then even a repeat is a zombie's: its transaction was aborted.
        return Rejection.INVALID_PRODUCER_ID_MAPPING
    if held is None and _is_of_a_handle(state, producer_id):
        return Rejection.INVALID_PRODUCER_ID_MAPPING  # a writer into a handle names it
    if producer_id >= state.volatile.next_producer_id:
        # Accepting it would let a later owner of this id be taken for a repeat of it.
        return Rejection.UNKNOWN_PRODUCER_ID
    if held is not None and epoch != held.producer_epoch:
        return Rejection.INVALID_PRODUCER_EPOCH
    known = partition.producers.get(producer_id)
    repeat = find_repeat(
        known, epoch, writer.base_sequence, command.record_count, state.limits, transactional=transactional
    )
    if repeat is not None:
        return Appended(base_offset=repeat.base_offset, repeated=True, max_timestamp_ms=repeat.max_timestamp_ms)
    before = Extension()
    if held is not None and transactional:
        needed = extension_for_write(state, held, writer.version, partition_id=partition.partition_id, now_ms=now_ms)
        if isinstance(needed, Rejection):
            return needed
        before = needed
    version = writer.version if transactional else TransactionVersion.V1
    rejection = check_sequence(known, epoch, writer.base_sequence, state.limits, version=version)
    if rejection is None and not transactional and partition.has_open(producer_id):
        rejection = Rejection.INVALID_TRANSACTION_STATE
    return before if rejection is None else rejection


def _is_of_a_handle(state: State, producer_id: ProducerId) -> bool:
    transaction = state.volatile.transaction_by_producer.get(producer_id)
    return transaction is not None and transaction.is_known_by_id and producer_id == transaction.producer_ids[-1]
