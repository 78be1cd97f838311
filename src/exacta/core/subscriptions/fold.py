"""The fold of the events of subscriptions; `core/apply.py` has the table of all events."""

from collections.abc import Callable
from typing import Any

from exacta.core.events import (
    Event,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    SubscriptionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
)
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription


def _created(state: State, event: SubscriptionCreated) -> None:
    state.partitions[event.partition_id].subscriptions[event.name] = Subscription(
        event.name, event.position, event.subscription_type, event.properties, event.at_ms
    )
    state.volatile.subscriptions += 1


def _changed(state: State, event: SubscriptionChanged) -> None:
    subscription = state.partitions[event.partition_id].subscriptions[event.name]
    subscription.subscription_type = event.subscription_type
    subscription.properties = event.properties


def _deleted(state: State, event: SubscriptionDeleted) -> None:
    del state.partitions[event.partition_id].subscriptions[event.name]
    state.volatile.subscriptions -= 1


def _moved(state: State, event: SubscriptionMoved) -> None:
    state.partitions[event.partition_id].subscriptions[event.name].seek(event.position)


def _acknowledged(state: State, event: MessagesAcknowledged) -> None:
    state.partitions[event.partition_id].subscriptions[event.name].acknowledge(event.runs, event.before)


def _acknowledged_in_transaction(state: State, event: MessagesAcknowledgedInTransaction) -> None:
    subscription = state.partitions[event.partition_id].subscriptions[event.name]
    subscription.hold(event.transaction_id, event.runs, event.before)
    state.transactions[event.transaction_id].acknowledged_runs += len(event.runs)
    state.volatile.pending_runs += len(event.runs)


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    SubscriptionCreated: _created,
    SubscriptionChanged: _changed,
    SubscriptionDeleted: _deleted,
    SubscriptionMoved: _moved,
    MessagesAcknowledged: _acknowledged,
    MessagesAcknowledgedInTransaction: _acknowledged_in_transaction,
}
