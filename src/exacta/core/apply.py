"""The fold: how each event changes the state. Nothing here can refuse or fail; `decide` has looked before."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import takewhile
from typing import Any

from exacta.core.commands import OffsetToCommit
from exacta.core.events import (
    AbortedForgotten,
    BatchAppended,
    ConsumerGroupChanged,
    ConsumerGroupUpdated,
    Event,
    GroupDeleted,
    GroupEpochsReserved,
    GroupSettled,
    IdsReserved,
    LogStartMoved,
    MemberSeen,
    MembershipChanged,
    NothingAborted,
    OffsetsCommitted,
    OffsetsDeleted,
    PartitionsAdded,
    ProducerBound,
    ProducerIdAllocated,
    ProducersExpired,
    TopicConfigsSet,
    TopicCreated,
    TopicDeleted,
    TransactionalIdsExpired,
    TransactionalOffsetsCommitted,
    TransactionBegun,
    TransactionEnded,
    TransactionExtended,
)
from exacta.core.groups.consumer_updates import updated
from exacta.core.ids import Cause, Offset, PartitionId, ProducerEpoch, ProducerId, TransactionId
from exacta.core.log.sequence import last_sequence
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.group import CommittedOffset, Group, OffsetMap
from exacta.core.state.incidents import Incident, IncidentKind, record
from exacta.core.state.partition import AbortedTransaction, Partition, ProducerState, RetainedBatch
from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.state.transaction import EndedHandle, Transaction, TransactionalId


def apply(state: State, event: Event) -> None:
    """Change the state by one event."""
    _APPLY[type(event)](state, event)


def _topic_created(state: State, event: TopicCreated) -> None:
    state.topics[event.topic] = Topic(
        event.topic, event.topic_id, event.first_partition_id, event.partition_count, event.configs
    )
    state.volatile.topic_names[event.topic_id] = event.topic
    for index in range(event.partition_count):
        _begin_partition(state, event.topic, index, PartitionId(event.first_partition_id + index))


def _begin_partition(state: State, topic: str, index: int, partition_id: PartitionId) -> None:
    state.partitions[partition_id] = Partition(partition_id, topic, index)
    state.next_partition_id = PartitionId(partition_id + 1)


def _partitions_added(state: State, event: PartitionsAdded) -> None:
    topic = state.topics[event.topic]
    for number in range(event.partition_count):
        partition_id = PartitionId(event.first_partition_id + number)
        _begin_partition(state, event.topic, topic.partition_count, partition_id)
        topic.added.append(partition_id)


def _topic_deleted(state: State, event: TopicDeleted) -> None:
    topic = state.topics.pop(event.topic)
    gone = set(topic.partition_ids)
    state.volatile.topic_names.pop(topic.topic_id, None)
    for partition_id in gone:
        del state.partitions[partition_id]
    for transaction in state.transactions.values():
        transaction.partitions -= gone
    for group in state.groups.values():
        group.offsets.pop(event.topic, None)
        for pending in group.pending.values():
            pending.pop(event.topic, None)


def _topic_configs_set(state: State, event: TopicConfigsSet) -> None:
    state.topics[event.topic].configs = event.configs


def _log_start_moved(state: State, event: LogStartMoved) -> None:
    partition = state.partitions[event.partition_id]
    partition.log_start_offset = event.log_start_offset
    _forget_aborted(partition, event.log_start_offset)  # nobody can read what these are about


def _aborted_forgotten(state: State, event: AbortedForgotten) -> None:
    _forget_aborted(state.partitions[event.partition_id], event.before_offset)


def _forget_aborted(partition: Partition, before_offset: Offset) -> None:
    # Markers lie in the order of their offsets.
    count = sum(1 for _ in takewhile(lambda entry: entry.last_offset < before_offset, partition.aborted))
    del partition.aborted[:count]


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
    elif event.cause is not Cause.OWNER:
        _note(state, held.transactional_id, IncidentKind.FENCED, event, held.pair)
    _move_to_end(state, held)
    if event.cause in _OWNERS:
        held.client_id, held.client_host = _one_copy(event.client_id), _one_copy(event.client_host)
    held.transaction_timeout_ms = event.transaction_timeout_ms
    held.previous_producer_id = event.previous_producer_id
    held.previous_producer_epoch = event.previous_producer_epoch
    held.bumped_by_end = False
    held.last_update_ms = event.at_ms
    held.open = event.keeps
    if event.keeps is None:
        held.last_committed = None
    _hold(state, held, event.producer_id, event.producer_epoch)
    state.volatile.may_have_forgotten.discard(event.transactional_id)


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
    asked = (event.client_id, event.client_host) if isinstance(event, ProducerBound) else ("", "")
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
    )
    state.transactions[event.transaction_id] = transaction
    volatile = state.volatile
    volatile.next_transaction_id = TransactionId(max(volatile.next_transaction_id, event.transaction_id + 1))
    for producer_id in event.producer_ids:
        volatile.transaction_by_producer[producer_id] = transaction
        _given_out(state, producer_id)
    if event.owner is None:
        volatile.open_handles += 1
        return
    held = state.transactional_ids[event.owner]
    held.open = event.transaction_id
    held.bumped_by_end = False
    held.last_update_ms = event.at_ms


def _transaction_extended(state: State, event: TransactionExtended) -> None:
    transaction = state.transactions[event.transaction_id]
    transaction.partitions.update(event.partitions)
    transaction.groups.update(event.groups)
    if transaction.owner is not None:
        state.transactional_ids[transaction.owner].last_update_ms = event.at_ms


def _batch_appended(state: State, event: BatchAppended) -> None:
    partition = state.partitions[event.partition_id]
    partition.next_offset = Offset(event.base_offset + event.record_count)
    if event.producer_id < 0:
        return
    if event.base_sequence >= 0:  # a batch of a handle has none: its writers are not told apart by a producer id
        _remember_batch(state, partition, event)
    if event.transactional:
        partition.open_transactions.setdefault(event.producer_id, event.base_offset)
        runs = partition.open_runs.setdefault(event.producer_id, [])
        last_offset = Offset(partition.next_offset - 1)
        if runs and runs[-1] == event.base_offset - 1:
            runs[-1] = last_offset
        else:
            runs += (event.base_offset, last_offset)


def _remember_batch(state: State, partition: Partition, event: BatchAppended) -> None:
    producer = partition.producers.pop(event.producer_id, None)
    if producer is None or producer.producer_epoch != event.producer_epoch:
        producer = ProducerState(event.producer_epoch, [])
    partition.producers[event.producer_id] = producer
    producer.last_append_ms = event.at_ms
    producer.last_timestamp_ms = event.max_timestamp_ms
    last = last_sequence(event.base_sequence, event.record_count, state.limits)
    producer.batches.append(
        RetainedBatch(event.base_sequence, last, event.base_offset, event.max_timestamp_ms, event.transactional)
    )
    if len(producer.batches) > state.limits.retained_batches:
        del producer.batches[0]


def _transaction_ended(state: State, event: TransactionEnded) -> None:
    volatile = state.volatile
    volatile.next_transaction_id = TransactionId(max(volatile.next_transaction_id, event.transaction_id + 1))
    transaction = state.transactions.pop(event.transaction_id, None)
    if transaction is not None:
        _close(state, transaction, event)
    # Where there was none, it began and ended now, as Kafka tells it.
    start_ms = event.at_ms if transaction is None else transaction.start_ms
    if event.owner is None:
        volatile.open_handles -= 1
        if transaction is not None:
            _remember_handle(state, event, transaction)
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
    if event.bumps:
        held.previous_producer_id = held.producer_id
        held.previous_producer_epoch = held.producer_epoch
        _hold(state, held, event.next_producer_id, event.next_producer_epoch)


def _close(state: State, transaction: Transaction, event: TransactionEnded) -> None:
    """Let what lies in partitions and groups take effect, or be aborted."""
    for producer_id in transaction.producer_ids:
        state.volatile.transaction_by_producer.pop(producer_id, None)
    for partition_id, offset, producer_id in event.markers:
        partition = state.partitions[partition_id]
        first_offset = partition.open_transactions.pop(producer_id)
        runs = partition.open_runs.pop(producer_id, ())
        partition.next_offset = Offset(offset + 1)
        if not event.committed:
            stable = partition.last_stable_offset
            partition.aborted.append(AbortedTransaction(producer_id, first_offset, offset, tuple(runs), stable))
    for group_id in transaction.groups:
        group = state.groups.get(group_id)
        pending = group.pending.pop(event.transaction_id, None) if group is not None else None
        if group is not None and pending is not None and event.committed:
            _merge(group.offsets, pending)


def _remember_handle(state: State, event: TransactionEnded, transaction: Transaction) -> None:
    """Keep how a handle ended, and forget the oldest ones that are too many or too old."""
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
    )
    since_ms = event.at_ms - limits.ended_handle_retention_ms
    while ended and (len(ended) > limits.max_ended_handles or next(iter(ended.values())).ended_ms < since_ms):
        del ended[next(iter(ended))]


def _transactional_ids_expired(state: State, event: TransactionalIdsExpired) -> None:
    for transactional_id in event.transactional_ids:
        held = state.transactional_ids.pop(transactional_id)
        _note(state, transactional_id, IncidentKind.FORGOTTEN, event, held.pair)
        del state.volatile.holder_by_producer[held.producer_id]
        state.volatile.may_have_forgotten.discard(transactional_id)


def _producers_expired(state: State, event: ProducersExpired) -> None:
    for partition_id, producer_id in event.producers:
        del state.partitions[partition_id].producers[producer_id]


def _merge(offsets: OffsetMap, pending: OffsetMap) -> None:
    """Let the pending offsets take effect, but for those that a later plain commit has overtaken."""
    for topic, by_partition in pending.items():
        target = offsets.setdefault(topic, {})
        for index, offset in by_partition.items():
            present = target.get(index)
            if present is None or present.order < offset.order:
                target[index] = offset


def _group(state: State, group_id: str) -> Group:
    group = state.groups.get(group_id)
    if group is None:
        group = state.groups[group_id] = Group(group_id)
    return group


def _store(state: State, target: OffsetMap, offsets: tuple[OffsetToCommit, ...], at_ms: int) -> None:
    order = state.next_commit_order
    state.next_commit_order = order + 1
    for offset in offsets:
        if offset.topic in state.topics:
            target.setdefault(offset.topic, {})[offset.partition] = CommittedOffset(
                offset.offset, offset.leader_epoch, offset.metadata, at_ms, order
            )


def _offsets_committed(state: State, event: OffsetsCommitted) -> None:
    _store(state, _group(state, event.group_id).offsets, event.offsets, event.at_ms)


def _transactional_offsets_committed(state: State, event: TransactionalOffsetsCommitted) -> None:
    pending = _group(state, event.group_id).pending.setdefault(event.transaction_id, {})
    _store(state, pending, event.offsets, event.at_ms)


def _group_deleted(state: State, event: GroupDeleted) -> None:
    state.groups.pop(event.group_id, None)
    state.settled.pop(event.group_id, None)
    state.settled_consumers.pop(event.group_id, None)
    state.volatile.memberships.pop(event.group_id, None)
    _forget_consumer_group(state, event.group_id)


def _offsets_deleted(state: State, event: OffsetsDeleted) -> None:
    group = state.groups[event.group_id]
    for offsets in (group.offsets, *(group.pending.values() if event.pending else ())):
        for topic, index in event.partitions:
            if offsets.get(topic, {}).pop(index, None) is not None and not offsets[topic]:
                del offsets[topic]


def _membership_changed(state: State, event: MembershipChanged) -> None:
    before = state.volatile.memberships.get(event.group_id, NOBODY)
    _forget_deadlines(state, event.group_id, before.members.keys() - event.membership.members.keys())
    state.volatile.memberships[event.group_id] = event.membership
    _forget_consumer_group(state, event.group_id)


def _forget_deadlines(state: State, group_id: str, member_ids: Iterable[str]) -> None:
    for member_id in member_ids:
        state.volatile.member_deadlines_ms.pop((group_id, member_id), None)


def _group_settled(state: State, event: GroupSettled) -> None:
    if event.membership is None:
        state.settled.pop(event.group_id, None)
    else:
        state.settled[event.group_id] = event.membership


def _group_epochs_reserved(state: State, event: GroupEpochsReserved) -> None:
    state.reserved_group_epoch = event.end_epoch


def _consumer_group_changed(state: State, event: ConsumerGroupChanged) -> None:
    state.volatile.consumer_groups[event.group_id] = event.group


def _consumer_group_updated(state: State, event: ConsumerGroupUpdated) -> None:
    group = updated(state.settled_consumers.get(event.group_id), event)
    _forget_deadlines(state, event.group_id, event.gone)
    state.volatile.consumer_groups[event.group_id] = group
    state.volatile.memberships.pop(event.group_id, None)
    if group.members:
        state.settled_consumers[event.group_id] = group
    else:
        state.settled_consumers.pop(event.group_id, None)


def _forget_consumer_group(state: State, group_id: str) -> None:
    """A group of the same name goes on counting where this one ended."""
    group = state.volatile.consumer_groups.pop(group_id, None)
    if group is not None:
        state.volatile.first_group_epoch = max(state.volatile.first_group_epoch, group.epoch)


def _member_seen(state: State, event: MemberSeen) -> None:
    state.volatile.member_deadlines_ms[event.group_id, event.member_id] = event.deadline_ms


def _nothing_aborted(state: State, event: NothingAborted) -> None:
    state.volatile.may_have_forgotten.discard(event.transactional_id)


_APPLY: dict[type[Event], Callable[[State, Any], None]] = {
    TopicCreated: _topic_created,
    TopicDeleted: _topic_deleted,
    TopicConfigsSet: _topic_configs_set,
    PartitionsAdded: _partitions_added,
    LogStartMoved: _log_start_moved,
    AbortedForgotten: _aborted_forgotten,
    IdsReserved: _ids_reserved,
    ProducerIdAllocated: _producer_id_allocated,
    ProducerBound: _producer_bound,
    TransactionBegun: _transaction_begun,
    TransactionExtended: _transaction_extended,
    BatchAppended: _batch_appended,
    TransactionalOffsetsCommitted: _transactional_offsets_committed,
    TransactionEnded: _transaction_ended,
    OffsetsCommitted: _offsets_committed,
    GroupDeleted: _group_deleted,
    OffsetsDeleted: _offsets_deleted,
    TransactionalIdsExpired: _transactional_ids_expired,
    ProducersExpired: _producers_expired,
    MembershipChanged: _membership_changed,
    GroupSettled: _group_settled,
    GroupEpochsReserved: _group_epochs_reserved,
    ConsumerGroupChanged: _consumer_group_changed,
    ConsumerGroupUpdated: _consumer_group_updated,
    MemberSeen: _member_seen,
    NothingAborted: _nothing_aborted,
}
