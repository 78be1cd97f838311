"""The fold of the events of producers and transactions; `core/apply.py` has the table of all events."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from exacta.core.events import (
    ConclusionHeard,
    Event,
    HandlesAbandoned,
    IdsReserved,
    NothingAborted,
    ProducerBound,
    ProducerIdAllocated,
    ProducersExpired,
    TransactionalIdsExpired,
    TransactionBegun,
    TransactionEnded,
    TransactionExtended,
    TransactionJoined,
)
from exacta.core.ids import Cause, Offset, PrincipalName, ProducerEpoch, ProducerId, TransactionId
from exacta.core.log import staging_fold
from exacta.core.state import weights
from exacta.core.state.group import Group, merge
from exacta.core.state.incidents import Incident, IncidentKind, record
from exacta.core.state.partition import AbortedTransaction
from exacta.core.state.state import State
from exacta.core.state.transaction import Conclusion, EndedHandle, Transaction, TransactionalId
from exacta.core.subscriptions import progress
from exacta.core.subscriptions.counting import counted
from exacta.core.values.usage import Table


def _ids_reserved(state: State, event: IdsReserved) -> None:
    state.reserved_producer_id = event.end_producer_id
    state.reserved_transaction_id = event.end_transaction_id


def _producer_id_allocated(state: State, event: ProducerIdAllocated) -> None:
    _given_out(state, event.producer_id)


def _given_out(state: State, producer_id: ProducerId) -> None:
    volatile = state.volatile
    volatile.next_producer_id = ProducerId(max(volatile.next_producer_id, producer_id + 1))


def _producer_bound(state: State, event: ProducerBound) -> None:
    held = state.transactional_ids.get(event.transactional_id)
    if held is None:
        held = TransactionalId(
            event.transactional_id, event.producer_id, event.producer_epoch, event.transaction_timeout_ms
        )
        _count_id(state, event.transactional_id, 1)
    elif event.cause is not Cause.OWNER:
        _note(state, held.transactional_id, IncidentKind.FENCED, event, held.pair)
    _move_to_end(state, held)
    if event.cause in _OWNERS:
        held.client_id, held.client_host = _one_copy(event.client_id), _one_copy(event.client_host)
        held.principal = PrincipalName(_one_copy(event.principal))
    held.transaction_timeout_ms = event.transaction_timeout_ms
    held.previous_producer_id = event.previous_producer_id
    held.previous_producer_epoch = event.previous_producer_epoch
    held.bumped_by_end = False
    held.concluded = None
    held.last_update_ms = event.at_ms
    held.open = event.prepared
    if event.prepared is None:
        held.last_committed = None
    _hold(state, held, event.producer_id, event.producer_epoch)
    state.volatile.may_have_forgotten.discard(event.transactional_id)


def _count_id(state: State, transactional_id: str, count: int) -> None:
    size = weights.TRANSACTIONAL_ID + weights.text(transactional_id)
    state.volatile.usage[Table.TRANSACTIONAL_IDS].change(transactional_id, count * size)


def _count_handle(state: State, transaction: Transaction, count: int) -> None:
    state.volatile.open_handles += count
    state.volatile.handle_participants += count * transaction.participants
    state.volatile.usage[Table.HANDLES].change(transaction.transaction_id, count)


def _count_transaction(state: State, transaction: Transaction, size: int) -> None:
    state.volatile.usage[Table.TRANSACTIONS].change(transaction.transaction_id, size)


@lru_cache(maxsize=1_000)
def _one_copy(name: str) -> str:
    """Return the same name; mostly it is one of a few, of which one copy is enough (`sys.intern` never forgets any)."""
    return name


_OWNERS = frozenset({Cause.OWNER, Cause.NEW_INSTANCE})


def _move_to_end(state: State, held: TransactionalId) -> None:
    """Keep the transactional ids in the order in which they were heard of last (see `expiry.py`)."""
    state.transactional_ids.pop(held.transactional_id, None)
    state.transactional_ids[held.transactional_id] = held


def _note(
    state: State,
    transactional_id: str,
    kind: IncidentKind,
    event: ProducerBound | TransactionEnded | TransactionalIdsExpired,
    pair: tuple[ProducerId, ProducerEpoch],
) -> None:
    """Keep why this pair lost what it had."""
    asked = ("", "") if isinstance(event, TransactionalIdsExpired) else (event.client_id, event.client_host)
    incident = Incident(
        kind=kind,
        cause=Cause.IDLE if isinstance(event, TransactionalIdsExpired) else event.cause,
        at_ms=event.at_ms,
        producer_id=pair[0],
        producer_epoch=pair[1],
        client_id=asked[0],
        client_host=asked[1],
    )
    limits = state.limits
    record(
        state.incidents,
        transactional_id,
        incident,
        per_id=limits.max_incidents_per_id,
        ids=limits.max_ids_with_incidents,
    )


def _hold(state: State, held: TransactionalId, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
    """Let a transactional id have this pair."""
    state.volatile.holder_by_producer.pop(held.producer_id, None)
    held.producer_id = producer_id
    held.producer_epoch = producer_epoch
    _given_out(state, producer_id)
    state.volatile.holder_by_producer[producer_id] = held


def _transaction_begun(state: State, event: TransactionBegun) -> None:
    transaction = Transaction(
        event.transaction_id,
        event.producer_ids,
        event.producer_epoch,
        event.owner,
        event.timeout_ms,
        event.at_ms,
        set(event.partitions),
        set(event.groups),
        _one_copy(event.client_id),
        _one_copy(event.client_host),
        principal=PrincipalName(_one_copy(event.principal)),
    )
    state.transactions[event.transaction_id] = transaction
    _count_transaction(state, transaction, weights.transaction(transaction))
    volatile = state.volatile
    volatile.next_transaction_id = TransactionId(max(volatile.next_transaction_id, event.transaction_id + 1))
    for producer_id in event.producer_ids:
        volatile.transaction_by_producer[producer_id] = transaction
        _given_out(state, producer_id)
    if event.owner is None:
        _count_handle(state, transaction, 1)
        return
    held = state.transactional_ids[event.owner]
    held.open = event.transaction_id
    held.bumped_by_end = False
    held.last_update_ms = event.at_ms


def _transaction_extended(state: State, event: TransactionExtended) -> None:
    transaction = state.transactions[event.transaction_id]
    before, weight = transaction.participants, weights.transaction(transaction)
    state.volatile.abandoned.pop(event.transaction_id, None)
    transaction.partitions.update(event.partitions)
    transaction.groups.update(event.groups)
    transaction.subscriptions.update(event.subscriptions)
    _count_transaction(state, transaction, weights.transaction(transaction) - weight)
    if transaction.is_known_by_id:
        state.volatile.handle_participants += transaction.participants - before
    held = state.holder_of(transaction)
    if held is not None:
        held.last_update_ms = event.at_ms
    if held is not None and event.by_owner:
        transaction.has_owners_part = True
        held.bumped_by_end = False


def _transaction_joined(state: State, event: TransactionJoined) -> None:
    transaction, volatile = state.transactions[event.transaction_id], state.volatile
    volatile.abandoned.pop(event.transaction_id, None)
    held = state.transactional_ids[event.owner]
    if transaction.owner is None:
        # The holder has not begun anything yet: a repeat of its last end is still answered.
        transaction.has_owners_part = False
        held.open = event.transaction_id
        held.concluded = None
    else:
        _count_handle(state, transaction, 1)
    transaction.owner = event.owner
    transaction.producer_ids, transaction.producer_epoch = event.producer_ids, event.producer_epoch
    for producer_id in event.producer_ids:
        volatile.transaction_by_producer[producer_id] = transaction
        _given_out(state, producer_id)
    held.last_update_ms = event.at_ms


def _transaction_ended(state: State, event: TransactionEnded) -> None:
    volatile = state.volatile
    volatile.next_transaction_id = TransactionId(max(volatile.next_transaction_id, event.transaction_id + 1))
    state.commit_number += event.committed
    transaction = state.transactions.pop(event.transaction_id, None)
    if transaction is not None:
        volatile.abandoned.pop(event.transaction_id, None)
        _count_transaction(state, transaction, -weights.transaction(transaction))
        _close(state, transaction, event)
    # Where there was none, it began and ended now, as Kafka tells it.
    start_ms = event.at_ms if transaction is None else transaction.start_ms
    if transaction is not None and transaction.is_known_by_id:
        _count_handle(state, transaction, -1)
        _remember_handle(state, event, transaction)
    if event.owner is None:
        return
    held = state.transactional_ids[event.owner]
    _move_to_end(state, held)
    if not event.committed:
        _note(state, event.owner, IncidentKind.ABORTED, event, (event.producer_ids[0], event.producer_epoch))
    volatile.may_have_forgotten.discard(event.owner)
    held.open = None
    held.last_committed = event.committed
    held.last_start_ms = start_ms
    held.last_update_ms = event.at_ms
    held.bumped_by_end = event.bumps
    held.concluded = None
    if transaction is not None and event.cause is Cause.OTHER_SIDE:
        held.concluded = Conclusion.OF_WHAT_IT_WROTE if transaction.has_owners_part else Conclusion.OF_NOTHING
    if event.bumps:
        held.previous_producer_id = held.producer_id
        held.previous_producer_epoch = held.producer_epoch
        _hold(state, held, event.next_producer_id, event.next_producer_epoch)


def _conclusion_heard(state: State, event: ConclusionHeard) -> None:
    held = state.transactional_ids[event.transactional_id]
    _move_to_end(state, held)
    held.concluded = None
    held.last_committed = event.committed
    held.last_update_ms = event.at_ms


def _close(state: State, transaction: Transaction, event: TransactionEnded) -> None:
    """Let what lies in partitions and groups take effect, or be aborted."""
    for producer_id in transaction.producer_ids:
        state.volatile.transaction_by_producer.pop(producer_id, None)
    for partition_id, offset, producer_id in event.markers:
        partition = state.partitions[partition_id]
        first_offset = partition.open_transactions.pop(producer_id)
        runs = partition.open_runs.pop(producer_id, [])
        partition.next_offset = Offset(offset + 1)
        if not event.committed:
            stable = partition.last_stable_offset
            partition.aborted.append(AbortedTransaction(producer_id, first_offset, offset, tuple(runs), stable))
        else:
            state.volatile.usage[Table.ABORTED].change(producer_id, -weights.written(runs))
    staging_fold.enter(state, event)
    for partition_id in transaction.partitions:
        partition = state.partitions[partition_id]
        for producer_id in transaction.producer_ids:
            staging_fold.drop(state, partition, producer_id)
            if partition.nameless_sequences:
                forgotten = len(partition.nameless_sequences.pop(producer_id, ()))
                state.volatile.nameless_writers -= forgotten
                state.volatile.usage[Table.WRITERS].change(producer_id, -forgotten * weights.SEQUENCE)
    for group_id in transaction.groups:
        group = state.groups.get(group_id)
        pending = group.pending.pop(event.transaction_id, None) if group is not None else None
        if group is not None and pending is not None:
            size = -weights.PENDING_OFFSETS - weights.offsets(pending)
            if event.committed:
                size -= sum(_weight_of_topic(group, topic) for topic in pending)
                merge(group.offsets, pending, event.at_ms)
                size += sum(_weight_of_topic(group, topic) for topic in pending)
            state.volatile.usage[Table.OFFSETS].change(group_id, size)
    for key in transaction.subscriptions:
        with counted(state, key):
            progress.end(state, key, event.transaction_id, commit=event.committed)
    state.volatile.pending_runs -= transaction.acknowledged_runs


def _weight_of_topic(group: Group, topic: str) -> int:
    by_partition = group.offsets.get(topic)
    return 0 if by_partition is None else weights.offsets_of_topic(topic, by_partition)


def _remember_handle(state: State, event: TransactionEnded, transaction: Transaction) -> None:
    """Keep how a handle or a joint transaction ended, and forget the oldest ones that are too many or too old."""
    limits, ended = state.limits, state.ended_handles
    ended[event.transaction_id] = EndedHandle(
        event.transaction_id,
        event.committed,
        transaction.timeout_ms,
        transaction.start_ms,
        event.at_ms,
        event.producer_ids,
        event.producer_epoch,
        event.cause,
        _one_copy(event.client_id),
        _one_copy(event.client_host),
        event.owner,
    )
    since_ms = event.at_ms - limits.ended_handle_retention_ms
    while ended and (len(ended) > limits.max_ended_handles or next(iter(ended.values())).ended_ms < since_ms):
        del ended[next(iter(ended))]


def _transactional_ids_expired(state: State, event: TransactionalIdsExpired) -> None:
    for transactional_id in event.transactional_ids:
        held = state.transactional_ids.pop(transactional_id)
        _note(state, transactional_id, IncidentKind.FORGOTTEN, event, held.pair)
        _count_id(state, transactional_id, -1)
        del state.volatile.holder_by_producer[held.producer_id]
        state.volatile.may_have_forgotten.discard(transactional_id)


def _producers_expired(state: State, event: ProducersExpired) -> None:
    for partition_id, producer_id in event.producers:
        del state.partitions[partition_id].producers[producer_id]
        state.volatile.usage[Table.PRODUCERS].change(producer_id, -weights.PRODUCER)


def _handles_abandoned(state: State, event: HandlesAbandoned) -> None:
    state.volatile.abandoned.update(dict.fromkeys(event.transactions))


def _nothing_aborted(state: State, event: NothingAborted) -> None:
    state.volatile.may_have_forgotten.discard(event.transactional_id)


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    IdsReserved: _ids_reserved,
    ProducerIdAllocated: _producer_id_allocated,
    ProducerBound: _producer_bound,
    TransactionBegun: _transaction_begun,
    TransactionExtended: _transaction_extended,
    TransactionJoined: _transaction_joined,
    TransactionEnded: _transaction_ended,
    ConclusionHeard: _conclusion_heard,
    TransactionalIdsExpired: _transactional_ids_expired,
    ProducersExpired: _producers_expired,
    NothingAborted: _nothing_aborted,
    HandlesAbandoned: _handles_abandoned,
}
