"""Consumers come and go (volatile): who shares a subscription, and which one is active.

    type         a further consumer   the active one
    Exclusive    is refused           the only one
    Failover     is taken             the first one *
    Shared       is taken             -
    Key_Shared   is taken **          -

* It is the first by priority, then by name, then by time. For the partitions of a topic they are taken in turn, so that
each consumer has its share of them.

** As far as its hashes are free (`keys.py`).

A consumer of another type than those that are connected is refused. Without consumers the type is free. One that wants
another kind of subscription is refused (`isolation.py`). When the active consumer changes, the next one gets everything
from the position on, and both are told.
"""

from collections.abc import Iterable

from exacta.core.commands.subscriptions import Connect, Disconnect, Permit, Redeliver
from exacta.core.events import ConsumerConnected, ConsumerDisconnected, PermitsGranted
from exacta.core.ids import ConsumerId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.delivery import ConnectedConsumer, Delivery
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.subscriptions import isolation, keys
from exacta.core.subscriptions.durability import gone_without_consumers
from exacta.core.subscriptions.notices import ActiveConsumerChanged
from exacta.core.subscriptions.subscribing import Notices, find, is_busy
from exacta.core.values.subscriptions import IN_ORDER, KeyShared, SubscriptionType


def connect(state: State, command: Connect, now_ms: int) -> Outcome:
    """Take a consumer in, if the others share the subscription with it."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=found)
    partition, subscription, delivery = found
    refused = isolation.refusal(subscription, command)
    if refused is not None:
        return Outcome(reply=refused)
    is_idle = not subscription.is_durable and delivery is None
    if is_idle and subscription.subscription_type is not command.subscription_type:
        return Outcome(reply=Rejection.SUBSCRIPTION_BUSY)  # its own consumers are about to connect
    others = {} if delivery is None else delivery.consumers
    refused = _refusal(state, delivery, command)
    if refused is not None:
        return Outcome(events=() if others else gone_without_consumers(partition, subscription), reply=refused)
    new = ConnectedConsumer(command.consumer_id, command.name, command.priority)
    active = _active(partition, command.subscription_type, (*others.values(), new))
    connected = ConsumerConnected(
        partition_id=partition.partition_id,
        name=subscription.name,
        consumer_id=new.consumer_id,
        subscription_type=command.subscription_type,
        consumer_name=new.name,
        priority=new.priority,
        active=active,
        key_shared=command.key_shared if command.subscription_type is SubscriptionType.KEY_SHARED else KeyShared(),
    )
    notices: Notices = ()
    if command.subscription_type is SubscriptionType.FAILOVER:
        before = None if delivery is None else delivery.active
        notices = _told(before, active, (new.consumer_id,))
    return Outcome(events=(connected,), reply=DONE, notices=notices)


def _refusal(state: State, delivery: Delivery | None, command: Connect) -> Rejection | None:
    """Return why a consumer may not connect."""
    if is_busy(delivery, command.subscription_type):
        return Rejection.SUBSCRIPTION_BUSY
    if command.subscription_type is SubscriptionType.KEY_SHARED:
        refused = keys.refusal(delivery, command.key_shared)
        if refused is not None:
            return refused
    present = 0 if delivery is None else len(delivery.consumers)
    return Rejection.LIMIT_REACHED if present >= state.limits.max_consumers_per_subscription else None


def _active(
    partition: Partition, subscription_type: SubscriptionType, consumers: Iterable[ConnectedConsumer]
) -> ConsumerId | None:
    """Return the consumer that an Exclusive or Failover subscription delivers to."""
    if subscription_type not in IN_ORDER:
        return None
    ranked = sorted(consumers, key=lambda each: (each.priority, each.name, each.consumer_id))
    first = [each for each in ranked if each.priority == ranked[0].priority]
    return first[partition.index % len(first)].consumer_id if first else None


def _told(before: ConsumerId | None, active: ConsumerId | None, new: tuple[ConsumerId, ...] = ()) -> Notices:
    """Return what consumers of a Failover subscription are told of the change, and a new one in any case."""
    concerned = dict.fromkeys(each for each in (before, active) if each is not None and before != active)
    concerned.update(dict.fromkeys(new))
    return tuple((each, ActiveConsumerChanged(is_active=each == active)) for each in concerned)


def disconnect(state: State, command: Disconnect, now_ms: int) -> Outcome:
    """Let a consumer be gone; what it had waits for others."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=DONE)  # gone with everything
    partition, subscription, delivery = found
    if delivery is None or command.consumer_id not in delivery.consumers:
        return Outcome(reply=DONE)
    left = [each for each in delivery.consumers.values() if each.consumer_id != command.consumer_id]
    active = _active(partition, delivery.subscription_type, left)
    gone = ConsumerDisconnected(
        partition_id=partition.partition_id, name=subscription.name, consumer_id=command.consumer_id, active=active
    )
    before = None if delivery.active == command.consumer_id else delivery.active
    notices = _told(before, active) if delivery.subscription_type is SubscriptionType.FAILOVER else ()
    after = () if left else gone_without_consumers(partition, subscription)
    return Outcome(events=(gone, *after), reply=DONE, notices=notices)


def permit(state: State, command: Permit, now_ms: int) -> Outcome:
    """Let a consumer be sent more messages, or fewer."""
    consumer = consumer_of(state, command)
    if isinstance(consumer, Rejection):
        return Outcome(reply=consumer)
    partition = consumer[0]
    granted = PermitsGranted(
        partition_id=partition.partition_id,
        name=command.subscription,
        consumer_id=command.consumer_id,
        permits=command.permits,
    )
    return Outcome(events=(granted,), reply=DONE)


def consumer_of(state: State, command: Permit | Redeliver) -> tuple[Partition, Delivery, ConnectedConsumer] | Rejection:
    """Look up a consumer that is connected."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return found
    partition, _, delivery = found
    consumer = None if delivery is None else delivery.consumers.get(command.consumer_id)
    if delivery is None or consumer is None:
        return Rejection.CONSUMER_NOT_FOUND
    return partition, delivery, consumer
