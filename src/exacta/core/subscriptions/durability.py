"""The events of durable and of non-durable subscriptions: one set of rules, and no word of the second in the journal.

    a non-durable subscription that is         becomes
    new, or moved                              idle
    idle for `non_durable_idle_ms`             gone
    idle, and a consumer is refused            gone
    there when its last consumer disconnects   gone

It is *idle* while it waits for a consumer.

Its front submits Subscribe and Connect together, so that nobody comes between. A move disconnects the consumers, which
come back by Subscribe, and find the new position. A subscription that nobody comes back to is forgotten by a timer.
"""

from typing import Any

from exacta.core.commands.subscriptions import ForgetIdleSubscription, Subscribe
from exacta.core.events import (
    Event,
    MessagesAcknowledged,
    NonDurableMessagesAcknowledged,
    NonDurableSubscriptionCreated,
    NonDurableSubscriptionDeleted,
    NonDurableSubscriptionMoved,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
)
from exacta.core.ids import Offset
from exacta.core.outcome import Outcome, Timer
from exacta.core.replies import DONE
from exacta.core.state.partition import Partition
from exacta.core.state.redeliveries import RedeliveryCount
from exacta.core.state.state import State
from exacta.core.state.subscription import NonDurableSubscription, Subscription
from exacta.core.values.runs import Run


def created(partition: Partition, command: Subscribe, position: Offset, now_ms: int) -> SubscriptionCreated:
    """Return the event that makes a subscription."""
    fields: dict[str, Any] = {
        "partition_id": partition.partition_id,
        "name": command.subscription,
        "position": position,
        "subscription_type": command.subscription_type,
        "properties": command.properties,
        "at_ms": now_ms,
        "principal": command.principal,
    }
    if command.durable:
        return SubscriptionCreated(**fields)
    return NonDurableSubscriptionCreated(**fields, isolation_level=command.isolation_level)


def deleted(partition: Partition, subscription: Subscription) -> SubscriptionDeleted:
    """Return the event that deletes a subscription."""
    event = SubscriptionDeleted if subscription.is_durable else NonDurableSubscriptionDeleted
    return event(partition_id=partition.partition_id, name=subscription.name)


def moved(partition: Partition, subscription: Subscription, position: Offset, now_ms: int) -> SubscriptionMoved:
    """Return the event that moves a subscription."""
    partition_id, name = partition.partition_id, subscription.name
    if subscription.is_durable:
        return SubscriptionMoved(partition_id=partition_id, name=name, position=position)
    return NonDurableSubscriptionMoved(partition_id=partition_id, name=name, position=position, at_ms=now_ms)


def acknowledged(
    partition: Partition,
    subscription: Subscription,
    runs: tuple[Run, ...],
    before: Offset,
    counts: tuple[RedeliveryCount, ...] = (),
) -> MessagesAcknowledged:
    """Return the event that acknowledges messages of a subscription."""
    event = MessagesAcknowledged if subscription.is_durable else NonDurableMessagesAcknowledged
    return event(partition_id=partition.partition_id, name=subscription.name, runs=runs, before=before, counts=counts)


def gone_without_consumers(partition: Partition, subscription: Subscription) -> tuple[Event, ...]:
    """Return the event that follows when a subscription has no consumer and gets none."""
    return () if subscription.is_durable else (deleted(partition, subscription),)


def idle_timers(state: State, partition: Partition, name: str, since_ms: int) -> tuple[Timer, ...]:
    """Return the timer that forgets a non-durable subscription which is idle since then."""
    command = ForgetIdleSubscription(topic=partition.topic, partition=partition.index, subscription=name)
    return (Timer(since_ms + state.limits.non_durable_idle_ms, command),)


def forget_idle(state: State, command: ForgetIdleSubscription, now_ms: int) -> Outcome:
    """Delete a non-durable subscription if it has been idle for long enough; look again later if it has not."""
    partition = state.partition(command.topic, command.partition)
    key = None if partition is None else (partition.partition_id, command.subscription)
    found = None if key is None else state.subscription(key)
    if partition is None or not isinstance(found, NonDurableSubscription) or found.idle_since_ms is None:
        return Outcome(reply=DONE)
    if now_ms < found.idle_since_ms + state.limits.non_durable_idle_ms:
        return Outcome(reply=DONE, timers=idle_timers(state, partition, found.name, found.idle_since_ms))
    return Outcome(events=(deleted(partition, found),), reply=DONE)
