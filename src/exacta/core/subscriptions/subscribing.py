"""Creating, moving and deleting subscriptions.

    what is done to the subscription   free           held by a consumer   pending in a transaction
    deleted                            gone           gone                 gone
    moved beyond it                    acknowledged   acknowledged         acknowledged *
    moved to or before it              free           free                 pending
    topic deleted                      gone           gone                 gone
    records deleted                    acknowledged   acknowledged         acknowledged
    skipped or cleared                 acknowledged   acknowledged         acknowledged
    expired (TTL)                      acknowledged   acknowledged         acknowledged
    evicted by its quota               acknowledged   acknowledged         acknowledged

The columns say what a message is before.

* It is pending again if the subscription is moved back before the transaction ends, as in Apache Pulsar. Otherwise two
transactions could commit what each of them has made of one message.

The last three are one command (`skipping.py`). Apache Pulsar does not ask either whether an expired message is pending.
The end of a transaction never depends on this table: it is answered as if everything was there, and does nothing to
what is gone.
"""

from collections.abc import Hashable

from exacta.core.commands.subscriptions import EARLIEST, LATEST, Seek, Subscribe, Unsubscribe
from exacta.core.events import SubscriptionChanged
from exacta.core.ids import Offset
from exacta.core.outcome import Notice, Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed
from exacta.core.state.delivery import Delivery
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.subscriptions import isolation
from exacta.core.subscriptions.durability import created, deleted, idle_timers, moved
from exacta.core.subscriptions.notices import ConsumerClosed
from exacta.core.values.subscriptions import SubscriptionType

Notices = tuple[tuple[Hashable, Notice], ...]


def subscribe(state: State, command: Subscribe, now_ms: int) -> Outcome:
    """Find or create a subscription; tell where it stands, and whether it is new."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    found = state.subscription((partition.partition_id, command.subscription))
    refused = isolation.refusal(found, command)
    if refused is not None:
        return Outcome(reply=refused)
    if found is not None:
        delivery = state.volatile.deliveries.get((partition.partition_id, found.name))
        if is_busy(delivery, command.subscription_type):
            return Outcome(reply=Rejection.SUBSCRIPTION_BUSY)
        return _taken_up(partition, found, command)
    refused = _refusal(state, command)
    begin = command.begin if command.durable else min(command.begin, partition.next_offset)
    position = offset_of(partition, begin)
    if position is None:
        refused = Rejection.OFFSET_OUT_OF_RANGE
    if refused is not None or position is None:
        return Outcome(reply=refused)
    return Outcome(
        events=(created(partition, command, position, now_ms),),
        reply=Subscribed(position=position, is_new=True),
        timers=() if command.durable else idle_timers(state, partition, command.subscription, now_ms),
    )


def _taken_up(partition: Partition, found: Subscription, command: Subscribe) -> Outcome:
    reply = Subscribed(position=found.position, is_new=False)
    if found.subscription_type is command.subscription_type:
        return Outcome(reply=reply)
    if not found.is_durable:
        return Outcome(reply=Rejection.SUBSCRIPTION_BUSY)  # its consumers are about to connect
    changed = SubscriptionChanged(
        partition_id=partition.partition_id,
        name=found.name,
        subscription_type=command.subscription_type,
        properties=found.properties,
    )
    return Outcome(events=(changed,), reply=reply)


def _refusal(state: State, command: Subscribe) -> Rejection | None:
    """Return why a subscription of this name may not be made."""
    limits = state.limits
    if not 0 < len(command.subscription.encode()) <= limits.subscription_name_max_bytes:
        return Rejection.INVALID_SUBSCRIPTION
    size = sum(len(key.encode()) + len(value.encode()) for key, value in command.properties.items())
    if size > limits.subscription_properties_max_bytes:
        return Rejection.INVALID_SUBSCRIPTION
    return Rejection.LIMIT_REACHED if _are_too_many(state, durable=command.durable) else None


def _are_too_many(state: State, *, durable: bool) -> bool:
    if durable:
        return state.volatile.subscriptions >= state.limits.max_subscriptions
    return state.volatile.non_durable_subscriptions >= state.limits.max_non_durable_subscriptions


def unsubscribe(state: State, command: Unsubscribe, now_ms: int) -> Outcome:
    """Delete a subscription."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=found)
    partition, subscription, delivery = found
    others = set() if delivery is None else delivery.consumers.keys() - {command.consumer_id}
    if command.consumer_id is not None and others:
        return Outcome(reply=Rejection.SUBSCRIPTION_BUSY)
    return Outcome(events=(deleted(partition, subscription),), reply=DONE, notices=closed(delivery))


def seek(state: State, command: Seek, now_ms: int) -> Outcome:
    """Let a subscription go on elsewhere; before the start of the log is at its start."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=found)
    partition, subscription, delivery = found
    position = offset_of(partition, command.to)
    if position is None:
        return Outcome(reply=Rejection.OFFSET_OUT_OF_RANGE)
    return Outcome(
        events=(moved(partition, subscription, position, now_ms),),
        reply=DONE,
        timers=() if subscription.is_durable else idle_timers(state, partition, subscription.name, now_ms),
        notices=closed(delivery),
    )


def is_busy(delivery: Delivery | None, wanted: SubscriptionType) -> bool:
    """Return whether the consumers that are connected leave no place for one of this type."""
    if delivery is None or not delivery.consumers:
        return False
    return wanted is SubscriptionType.EXCLUSIVE or delivery.subscription_type is not wanted


def closed(delivery: Delivery | None) -> Notices:
    """Return what the consumers are told when their subscription goes on elsewhere, or is deleted: they are closed."""
    return () if delivery is None else tuple((each, ConsumerClosed()) for each in delivery.consumers)


def find(
    state: State, topic: str, index: int, name: str
) -> tuple[Partition, Subscription, Delivery | None] | Rejection:
    """Look up a subscription and its delivery, which is there while it has consumers; or say what there is none of."""
    partition = state.partition(topic, index)
    if partition is None:
        return Rejection.UNKNOWN_TOPIC_OR_PARTITION
    subscription = state.subscription((partition.partition_id, name))
    if subscription is None:
        return Rejection.SUBSCRIPTION_NOT_FOUND
    return partition, subscription, state.volatile.deliveries.get((partition.partition_id, name))


def offset_of(partition: Partition, asked: Offset) -> Offset | None:
    """Return the offset that is meant, not before the start of the log; None: there is no such offset yet."""
    if asked == LATEST:
        return partition.next_offset
    if asked == EARLIEST:
        return partition.log_start_offset
    return max(asked, partition.log_start_offset) if 0 <= asked <= partition.next_offset else None
