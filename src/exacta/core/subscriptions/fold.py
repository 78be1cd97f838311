"""The fold of the events of subscriptions; `core/apply.py` has the table of all events."""

from collections.abc import Callable
from typing import Any

from exacta.core.events import (
    ConsumerConnected,
    ConsumerDisconnected,
    DelaysEnded,
    EntriesDelivered,
    EntriesTakenBack,
    Event,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    NonDurableMessagesAcknowledged,
    NonDurableSubscriptionCreated,
    NonDurableSubscriptionDeleted,
    NonDurableSubscriptionMoved,
    PermitsGranted,
    SubscriptionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
)
from exacta.core.ids import ConsumerId
from exacta.core.state.delivery import ConnectedConsumer, Delivery, NotedEntry
from exacta.core.state.state import State
from exacta.core.state.subscription import NonDurableSubscription, Subscription
from exacta.core.subscriptions import progress
from exacta.core.subscriptions.counting import counted
from exacta.core.values.subscriptions import IsolationLevel
from exacta.core.values.usage import Table

FEW_PASSED = 100
"""This many runs of offsets that are for nobody are known of each subscription where there is no room for more.

Those that are forgotten fragment what is acknowledged, and are read again once the position has come to them."""


def _created(state: State, event: SubscriptionCreated) -> None:
    state.partitions[event.partition_id].subscriptions[event.name] = Subscription(
        event.name,
        event.position,
        event.subscription_type,
        event.properties,
        event.at_ms,
        principal=event.principal,
    )
    state.volatile.subscriptions += 1


def _changed(state: State, event: SubscriptionChanged) -> None:
    subscription = state.partitions[event.partition_id].subscriptions[event.name]
    subscription.subscription_type = event.subscription_type
    subscription.redelivered.clear()
    subscription.properties = event.properties


def _deleted(state: State, event: SubscriptionDeleted) -> None:
    progress.drop(state, (event.partition_id, event.name))


def _created_non_durable(state: State, event: NonDurableSubscriptionCreated) -> None:
    state.volatile.non_durable.setdefault(event.partition_id, {})[event.name] = NonDurableSubscription(
        event.name,
        event.position,
        event.subscription_type,
        event.properties,
        event.at_ms,
        principal=event.principal,
        idle_since_ms=event.at_ms,
        isolation_level=event.isolation_level,
    )
    state.volatile.non_durable_subscriptions += 1
    if event.isolation_level is IsolationLevel.READ_UNCOMMITTED:
        state.volatile.uncommitted.add((event.partition_id, event.name))


def _deleted_non_durable(state: State, event: NonDurableSubscriptionDeleted) -> None:
    progress.drop_non_durable(state, (event.partition_id, event.name))


def _moved_non_durable(state: State, event: NonDurableSubscriptionMoved) -> None:
    _moved(state, event)
    state.volatile.non_durable[event.partition_id][event.name].idle_since_ms = event.at_ms


def _moved(state: State, event: SubscriptionMoved) -> None:
    progress.seek(state, (event.partition_id, event.name), event.position)


def _acknowledged(state: State, event: MessagesAcknowledged) -> None:
    progress.acknowledge(state, (event.partition_id, event.name), event.runs, event.before, event.counts)


def _acknowledged_in_transaction(state: State, event: MessagesAcknowledgedInTransaction) -> None:
    key = (event.partition_id, event.name)
    progress.hold(state, key, event.transaction_id, event.runs, event.before, event.counts)
    state.transactions[event.transaction_id].acknowledged_runs += len(event.runs)
    state.volatile.pending_runs += len(event.runs)


def _connected(state: State, event: ConsumerConnected) -> None:
    key = (event.partition_id, event.name)
    delivery = state.volatile.deliveries.get(key)
    if delivery is None or not delivery.consumers:
        subscription = progress.find(state, key)
        delivery = state.volatile.deliveries[key] = Delivery(event.subscription_type, subscription.position)
        delivery.counts_anew = key in state.volatile.left_by_all
        if isinstance(subscription, NonDurableSubscription):
            subscription.idle_since_ms = None
    delivery.take_in(ConnectedConsumer(event.consumer_id, event.consumer_name, event.priority), event.key_shared)
    _activate(state, event, delivery, event.active)


def _activate(
    state: State, event: ConsumerConnected | ConsumerDisconnected, delivery: Delivery, active: ConsumerId | None
) -> None:
    if active != delivery.active:
        delivery.active = active
        delivery.begin_again(progress.find(state, (event.partition_id, event.name)).position)


def _disconnected(state: State, event: ConsumerDisconnected) -> None:
    key = (event.partition_id, event.name)
    delivery = state.volatile.deliveries[key]
    delivery.let_go(event.consumer_id)
    if delivery.consumers:
        _activate(state, event, delivery, event.active)
    else:
        del state.volatile.deliveries[key]
        if state.partitions[key[0]].subscriptions.get(key[1]) is not None:
            state.volatile.left_by_all.add(key)


def _permits_granted(state: State, event: PermitsGranted) -> None:
    state.volatile.deliveries[event.partition_id, event.name].consumers[event.consumer_id].permits += event.permits


def _entries_delivered(state: State, event: EntriesDelivered) -> None:
    delivery = state.volatile.deliveries[event.partition_id, event.name]
    subscription = progress.find(state, (event.partition_id, event.name))
    delivery.read_to = event.read_to
    is_full = state.volatile.usage[Table.DELIVERIES].total >= state.limits.max_delivery_bytes
    delivery.pass_over(event.passed, FEW_PASSED if is_full else state.limits.max_acknowledged_runs)
    for seen in event.noted:
        redeliveries = delivery.redeliveries_of(subscription, seen.base)
        entry = NotedEntry(seen.base, seen.count, seen.key, redeliveries, deliver_at_ms=seen.deliver_at_ms)
        delivery.note(entry)
        if not delivery.left(subscription, entry.base, entry.last):
            delivery.take_back(entry, waits=False)
    for consumer_id, seen, permits in event.given:
        consumer = delivery.consumers[consumer_id]
        consumer.permits -= permits
        delivery.served = consumer_id
        if not delivery.is_in_order:
            if seen.base not in delivery.entries:
                redeliveries = delivery.redeliveries_of(subscription, seen.base)
                delivery.note(NotedEntry(seen.base, seen.count, seen.key, redeliveries))
            delivery.give(delivery.entries[seen.base], consumer)


def _entries_taken_back(state: State, event: EntriesTakenBack) -> None:
    delivery = state.volatile.deliveries[event.partition_id, event.name]
    subscription = progress.find(state, (event.partition_id, event.name))
    if delivery.is_in_order:
        delivery.begin_again(subscription.position)
    for base in event.entries:
        entry = delivery.entries[base]
        if event.is_counted:
            delivery.count_again(subscription, entry)
        delivery.take_back(entry, waits=True)


def _delays_ended(state: State, event: DelaysEnded) -> None:
    key = (event.partition_id, event.name)
    delivery, subscription = state.volatile.deliveries[key], progress.find(state, key)
    for base in event.entries:
        entry = delivery.entries[base]
        delivery.end_delay(entry)
        if delivery.left(subscription, entry.base, entry.last):
            delivery.take_back(entry, waits=True)


def _counted(fold: Callable[[State, Any], None]) -> Callable[[State, Any], None]:
    def folded(state: State, event: Any) -> None:
        with counted(state, (event.partition_id, event.name)):
            fold(state, event)

    return folded


_FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    SubscriptionCreated: _created,
    SubscriptionChanged: _changed,
    SubscriptionDeleted: _deleted,
    SubscriptionMoved: _moved,
    MessagesAcknowledged: _acknowledged,
    MessagesAcknowledgedInTransaction: _acknowledged_in_transaction,
    NonDurableSubscriptionCreated: _created_non_durable,
    NonDurableSubscriptionDeleted: _deleted_non_durable,
    NonDurableSubscriptionMoved: _moved_non_durable,
    NonDurableMessagesAcknowledged: _acknowledged,
    ConsumerConnected: _connected,
    ConsumerDisconnected: _disconnected,
    EntriesDelivered: _entries_delivered,
    EntriesTakenBack: _entries_taken_back,
    DelaysEnded: _delays_ended,
}

FOLDS = {PermitsGranted: _permits_granted} | {kind: _counted(fold) for kind, fold in _FOLDS.items()}
