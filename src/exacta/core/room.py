"""The room that a decision needs in the tables of the state (`core.values.usage`): it has it, or it is refused.

Each event says by how many bytes it lets which entry grow at most, before it is applied. What lets nothing grow is
never refused, so that everything that is there goes on where a table is full. Nor is a command that `core/admission.py`
gives no table: it ends, leaves or deletes, and that makes room. The bytes that the end of a transaction needs are
counted when the transaction writes.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from msgspec.structs import replace

from exacta.core.admission import ADMISSION
from exacta.core.commands import Command, ConsumerHeartbeat
from exacta.core.events import (
    AclsCreated,
    BatchAppended,
    BatchStaged,
    BrokerConfigsSet,
    ClientQuotasSet,
    ConsumerConnected,
    ConsumerGroupChanged,
    ConsumerGroupUpdated,
    EntriesOwned,
    Event,
    GroupSettled,
    MembershipChanged,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    NonDurableMessagesAcknowledged,
    NonDurableSubscriptionCreated,
    OffsetsCommitted,
    PartitionsAdded,
    ProducerBound,
    ProducersExpired,
    ScramKeysSet,
    SubscriptionCreated,
    TopicConfigsSet,
    TopicCreated,
    TransactionalOffsetsCommitted,
    TransactionBegun,
    TransactionEnded,
    TransactionExtended,
    TransactionJoined,
    WriterNamed,
    WritersExpired,
)
from exacta.core.groups.consumer_updates import updated
from exacta.core.ids import NO_WRITER_ID, Offset
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.state import weights
from exacta.core.state.group import OffsetMap
from exacta.core.state.state import State
from exacta.core.values.runs import runs_between
from exacta.core.values.usage import Table

Growth = Iterable[tuple[Table, Hashable, int]]


def within_bounds(state: State, command: Command, outcome: Outcome, owner: str) -> Outcome:
    """Return the outcome, or a refusal where a table has no room for it. What it makes belongs to `owner`."""
    if not ADMISSION[type(command)].tables or (isinstance(command, ConsumerHeartbeat) and command.leaves):
        return outcome
    grown = growth_of(state, outcome)
    if not grown:
        return outcome
    usage, net = state.volatile.usage, {table: 0 for table, _ in grown}
    for (table, _), size in grown.items():
        net[table] += size
    for (table, key), size in grown.items():
        most = getattr(state.limits, table.value)
        if size > 0 and not usage[table].has_room(most, net[table], key, size, owner):
            return Outcome(reply=Rejection.LIMIT_REACHED)
    if not owner:
        return outcome
    new = tuple((table, key) for (table, key), size in grown.items() if size > 0 and key not in usage[table].charges)
    if not new:
        return outcome
    return replace(outcome, events=(EntriesOwned(owner=owner, entries=new), *outcome.events))


def growth_of(state: State, outcome: Outcome) -> dict[tuple[Table, Hashable], int]:
    """Return by how many bytes an outcome lets which entries of the tables grow at most."""
    grown: dict[tuple[Table, Hashable], int] = {}
    for event in outcome.events:
        growth = GROWTH.get(type(event))
        if growth is not None:
            for table, key, size in growth(state, event):
                grown[table, key] = grown.get((table, key), 0) + size
    return grown


def unnamed_growth(state: State, command: Command, outcome: Outcome) -> set[Table]:
    """Return the tables that an outcome lets grow, and that the command's row does not name: there must be none."""
    named = ADMISSION[type(command)].tables
    return {table for (table, _), size in growth_of(state, outcome).items() if size > 0 and named} - {*named}


def own(state: State, event: EntriesOwned) -> None:
    """Fold: entries that are about to be made, or to grow, belong to an owner."""
    for table, key in event.entries:
        state.volatile.usage[table].own(key, event.owner)


# --- topics and batches -----------------------------------------------------------------------------------------------


def _topic_created(state: State, event: TopicCreated) -> Growth:
    size = weights.TOPIC + weights.text(event.topic) + weights.configs(event.configs)
    yield Table.TOPICS, event.topic, size + event.partition_count * weights.PARTITION


def _configs_set(state: State, event: TopicConfigsSet) -> Growth:
    before = state.topics[event.topic].configs
    yield Table.TOPICS, event.topic, weights.BUFFER + weights.configs(event.configs) - weights.configs(before)


def _broker_configs_set(state: State, event: BrokerConfigsSet) -> Growth:
    before = state.broker_configs.get(event.broker_id, {})
    yield Table.TOPICS, "", weights.configs(event.configs) - weights.configs(before)


def _partitions_added(state: State, event: PartitionsAdded) -> Growth:
    yield Table.TOPICS, event.topic, event.partition_count * weights.PARTITION


def _writer(state: State, event: BatchAppended | BatchStaged) -> Growth:
    partition = state.partitions[event.partition_id]
    if event.writer_id >= 0:
        if event.writer_id not in partition.named_sequences:
            known = state.writers.get(event.writer_id)
            if known is not None:  # a new one was counted with its name
                yield Table.WRITERS, known.name, weights.SEQUENCE
    elif event.writer_id < NO_WRITER_ID:
        if event.writer_id not in partition.nameless_sequences.get(event.producer_id, ()):
            yield Table.WRITERS, event.producer_id, weights.SEQUENCE
    elif event.base_sequence >= 0 and event.producer_id not in partition.producers:
        yield Table.PRODUCERS, event.producer_id, weights.PRODUCER


def _batch_appended(state: State, event: BatchAppended) -> Growth:
    if event.base_sequence >= 0:
        yield from _writer(state, event)
    if event.transactional:
        runs = state.partitions[event.partition_id].open_runs.get(event.producer_id)
        if runs is None:
            yield Table.ABORTED, event.producer_id, weights.WRITTEN_TRANSACTION + weights.RUN_OF_RECORDS
        elif runs[-1] != event.base_offset - 1:
            yield Table.ABORTED, event.producer_id, weights.RUN_OF_RECORDS


def _batch_staged(state: State, event: BatchStaged) -> Growth:
    yield from _writer(state, event)
    is_new = event.producer_id not in state.partitions[event.partition_id].staged
    size = weights.RUN_OF_PLACES + (weights.STREAM if is_new else 0)
    yield Table.STAGED, (event.partition_id, event.producer_id), size


def _writer_named(state: State, event: WriterNamed) -> Growth:
    yield Table.WRITERS, event.name, weights.WRITER + weights.text(event.name) + weights.SEQUENCE


def _writers_expired(state: State, event: WritersExpired) -> Growth:
    for writer_id in event.writer_ids:
        yield Table.WRITERS, state.writers[writer_id].name, -weights.writer(state.writers[writer_id])


def _producers_expired(state: State, event: ProducersExpired) -> Growth:
    for _, producer_id in event.producers:
        yield Table.PRODUCERS, producer_id, -weights.PRODUCER


# --- transactions -----------------------------------------------------------------------------------------------------


def _producer_bound(state: State, event: ProducerBound) -> Growth:
    if event.transactional_id not in state.transactional_ids:
        size = weights.TRANSACTIONAL_ID + weights.text(event.transactional_id)
        yield Table.TRANSACTIONAL_IDS, event.transactional_id, size


def _begun(state: State, event: TransactionBegun) -> Growth:
    size = weights.TRANSACTION + weights.participants(event.partitions, event.groups, ())
    yield Table.TRANSACTIONS, event.transaction_id, size
    if event.owner is None:
        yield Table.HANDLES, event.transaction_id, 1


def _extended(state: State, event: TransactionExtended) -> Growth:
    size = weights.participants(event.partitions, event.groups, event.subscriptions)
    yield Table.TRANSACTIONS, event.transaction_id, size


def _ended(state: State, event: TransactionEnded) -> Growth:
    transaction = state.transactions.get(event.transaction_id)
    if transaction is not None:
        yield Table.TRANSACTIONS, event.transaction_id, -weights.transaction(transaction)
        yield Table.HANDLES, event.transaction_id, -int(transaction.is_known_by_id)


def _joined(state: State, event: TransactionJoined) -> Growth:
    if state.transactions[event.transaction_id].owner is not None:
        yield Table.HANDLES, event.transaction_id, 1


# --- groups -----------------------------------------------------------------------------------------------------------


def _offsets_committed(state: State, event: OffsetsCommitted) -> Growth:
    group = state.groups.get(event.group_id)
    size = weights.GROUP + weights.text(event.group_id) if group is None else 0
    present: OffsetMap = {} if group is None else group.offsets
    yield Table.OFFSETS, event.group_id, size + _offsets_growth(present, event)


def _transactional_offsets(state: State, event: TransactionalOffsetsCommitted) -> Growth:
    group = state.groups.get(event.group_id)
    size = weights.GROUP + weights.text(event.group_id) if group is None else 0
    pending = None if group is None else group.pending.get(event.transaction_id)
    size += weights.PENDING_OFFSETS if pending is None else 0
    yield Table.OFFSETS, event.group_id, size + _offsets_growth(pending or {}, event)


def _offsets_growth(present: OffsetMap, event: OffsetsCommitted | TransactionalOffsetsCommitted) -> int:
    size = 0
    topics: set[str] = set()
    for each in event.offsets:
        by_partition = present.get(each.topic)
        if by_partition is None and each.topic not in topics:
            topics.add(each.topic)
            size += weights.offsets_of_topic(each.topic, {})
        known = None if by_partition is None else by_partition.get(each.partition)
        if known is None:
            size += weights.OFFSET + weights.text(each.metadata)
        elif known.metadata != each.metadata:
            size += weights.text(each.metadata) - weights.text(known.metadata)
    return size


def _membership_changed(state: State, event: MembershipChanged) -> Growth:
    before = state.volatile.memberships.get(event.group_id)
    growth = weights.membership_growth(event.group_id, before, event.membership)
    # It takes the place of a group of the consumer protocol.
    gone = weights.consumer_group(event.group_id, state.volatile.consumer_groups.get(event.group_id))
    yield Table.MEMBERS, event.group_id, growth - gone


def _settled(state: State, event: GroupSettled) -> Growth:
    before = state.settled.get(event.group_id)
    yield Table.MEMBERS, event.group_id, weights.membership_growth(event.group_id, before, event.membership)


def _consumers_updated(state: State, event: ConsumerGroupUpdated) -> Growth:
    now = updated(state.settled_consumers.get(event.group_id), event)
    before = state.volatile.consumer_groups.get(event.group_id)
    growth = weights.consumer_growth(event.group_id, before, now)
    # It takes the place of a classic group, as it is and as its last rebalance has left it.
    classic = (state.volatile.memberships.get(event.group_id), state.settled.get(event.group_id))
    yield Table.MEMBERS, event.group_id, growth - sum(weights.membership(event.group_id, each) for each in classic)


def _consumers_changed(state: State, event: ConsumerGroupChanged) -> Growth:
    before = state.volatile.consumer_groups.get(event.group_id)
    yield Table.MEMBERS, event.group_id, weights.consumer_growth(event.group_id, before, event.group)


# --- subscriptions ----------------------------------------------------------------------------------------------------


def _subscription_created(state: State, event: SubscriptionCreated) -> Growth:
    size = weights.new_subscription(event.name, event.properties)
    yield Table.SUBSCRIPTIONS, (event.partition_id, event.name), size


def _acknowledged(state: State, event: MessagesAcknowledged) -> Growth:
    key = (event.partition_id, event.name)
    subscription = state.subscription(key)
    if event.counts:
        yield Table.SUBSCRIPTIONS, key, weights.RUN * len(event.counts)
    if subscription is None or not event.runs:
        return
    known, position = subscription.acknowledged, subscription.position
    apart = (
        run
        for run in event.runs
        if run[0] > position and not runs_between(known, Offset(run[0] - 1), Offset(run[1] + 1))
    )
    count = sum(1 for _ in apart)
    # An acknowledgement may split what is pending in a transaction.
    yield Table.SUBSCRIPTIONS, key, weights.RUN * (count + len(event.runs) if subscription.pending else count)


def _pending(state: State, event: MessagesAcknowledgedInTransaction) -> Growth:
    yield Table.SUBSCRIPTIONS, (event.partition_id, event.name), weights.RUN * (len(event.runs) + len(event.counts))


def _connected(state: State, event: ConsumerConnected) -> Growth:
    key = (event.partition_id, event.name)
    size = weights.CONSUMER + weights.RUN * len(event.key_shared.ranges)
    yield Table.DELIVERIES, key, size if key in state.volatile.deliveries else size + weights.DELIVERY


# --- access -----------------------------------------------------------------------------------------------------------


def _acls_created(state: State, event: AclsCreated) -> Growth:
    for acl in event.acls:
        yield Table.ACLS, weights.acl_key(acl), weights.acl(acl)


def _scram_keys_set(state: State, event: ScramKeysSet) -> Growth:
    before = weights.user(event.user, state.scram_keys.get(event.user, ()))
    yield Table.USERS, event.user, weights.user(event.user, event.keys) - before


def _client_quotas_set(state: State, event: ClientQuotasSet) -> Growth:
    before = weights.client_quotas(event.entity, state.client_quotas.get(event.entity, {}))
    yield Table.QUOTAS, event.entity, weights.client_quotas(event.entity, event.quotas) - before


GROWTH: dict[type[Event], Callable[[State, Any], Growth]] = {
    TopicCreated: _topic_created,
    TopicConfigsSet: _configs_set,
    BrokerConfigsSet: _broker_configs_set,
    PartitionsAdded: _partitions_added,
    BatchAppended: _batch_appended,
    BatchStaged: _batch_staged,
    WriterNamed: _writer_named,
    WritersExpired: _writers_expired,
    ProducersExpired: _producers_expired,
    ProducerBound: _producer_bound,
    TransactionBegun: _begun,
    TransactionExtended: _extended,
    TransactionJoined: _joined,
    TransactionEnded: _ended,
    OffsetsCommitted: _offsets_committed,
    TransactionalOffsetsCommitted: _transactional_offsets,
    MembershipChanged: _membership_changed,
    GroupSettled: _settled,
    ConsumerGroupUpdated: _consumers_updated,
    ConsumerGroupChanged: _consumers_changed,
    SubscriptionCreated: _subscription_created,
    NonDurableSubscriptionCreated: _subscription_created,
    MessagesAcknowledged: _acknowledged,
    NonDurableMessagesAcknowledged: _acknowledged,
    MessagesAcknowledgedInTransaction: _pending,
    ConsumerConnected: _connected,
    AclsCreated: _acls_created,
    ScramKeysSet: _scram_keys_set,
    ClientQuotasSet: _client_quotas_set,
}
"""The most by which each event lets the tables grow. An event that is not here lets none grow."""
