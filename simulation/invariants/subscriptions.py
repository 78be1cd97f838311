"""The invariants of subscriptions, derived from the journal's events message by message."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from exacta.core.events import (
    LogStartMoved,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
    TopicDeleted,
    TransactionEnded,
)
from exacta.core.ids import ConsumerId, SubscriptionKey, TransactionId
from exacta.core.state.delivery import Delivery
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.subscriptions.delivering import looks_further
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType
from simulation.invariants.log import Log

_NEVER = TransactionId(-1)
_OF_ONE = (SubscriptionDeleted, SubscriptionMoved, MessagesAcknowledged, MessagesAcknowledgedInTransaction)


class _Expected:
    """A subscription as its events tell it: of each message whether it is acknowledged, or in which transaction."""

    def __init__(self, position: int) -> None:
        self.acknowledged: set[int] = set(range(position))
        self.pending: dict[int, TransactionId] = {}
        self.cumulative: tuple[TransactionId, int] = (_NEVER, 0)

    def acknowledge(self, messages: Iterable[int]) -> None:
        """Acknowledge what is left of these messages; what a seek has skipped is not left, and stays pending."""
        left = set(messages) - self.acknowledged
        had_cumulative = not self.acknowledged >= set(range(self.cumulative[1]))
        self.acknowledged |= left
        self.pending = {message: key for message, key in self.pending.items() if message not in left}
        if had_cumulative and self.acknowledged >= set(range(self.cumulative[1])):
            self.cumulative = (_NEVER, 0)

    def move(self, position: int) -> None:
        self.acknowledged = set(range(position))

    def holder_of(self, message: int) -> TransactionId | None:
        """Return the transaction in which a message is pending, or `_NEVER` if it is acknowledged."""
        if message in self.acknowledged:
            return _NEVER
        if message < self.cumulative[1]:
            return self.cumulative[0]
        return self.pending.get(message)

    def hold(self, event: MessagesAcknowledgedInTransaction) -> Iterator[str]:
        """Let a transaction have acknowledged messages that are free, or tell of those that are not."""
        for message in _messages(event.runs):
            if self.holder_of(message) is not None:
                yield f"10: {event} takes message {message}, which is {self.holder_of(message)}'s"
            self.pending[message] = event.transaction_id
        if event.before:
            others = {self.holder_of(message) for message in range(event.before)} - {None, _NEVER, event.transaction_id}
            if others:
                yield f"10: {event} takes messages of {others}"
            self.cumulative = (event.transaction_id, event.before)

    def lose(self, event: LogStartMoved) -> Iterator[str]:
        """Let messages be deleted; by themselves only those go that are acknowledged."""
        deleted = range(event.log_start_offset)
        if event.trimmed and (left := sorted({*deleted} - self.acknowledged)):
            yield f"10: {event} deletes messages {left[:9]}, which nobody has acknowledged"
        self.acknowledge(deleted)

    def end(self, event: TransactionEnded) -> None:
        ended = {message for message, key in self.pending.items() if key == event.transaction_id}
        if self.cumulative[0] == event.transaction_id:
            ended |= set(range(self.cumulative[1]))
            self.cumulative = (_NEVER, 0)
        if event.committed:
            self.acknowledge(ended)
        self.pending = {message: key for message, key in self.pending.items() if key != event.transaction_id}


def messages_are_acknowledged_once(state: State, log: Log) -> Iterator[str]:
    """Invariant 10: a message is acknowledged, pending in one open transaction, or free, as the log says.

    What is acknowledged stays so until the subscription is moved. A transaction takes only free messages. They are
    acknowledged if it commits, and free again if it aborts.
    """
    expected: dict[SubscriptionKey, _Expected] = {}
    for event in log:
        if isinstance(event, _OF_ONE) and (event.partition_id, event.name) not in expected:
            yield f"10: {event} is of a subscription that is not in the journal"
            continue
        match event:
            case SubscriptionCreated():
                expected[event.partition_id, event.name] = _Expected(event.position)
            case SubscriptionDeleted():
                del expected[event.partition_id, event.name]
            case SubscriptionMoved():
                expected[event.partition_id, event.name].move(event.position)
            case MessagesAcknowledged():
                found = expected[event.partition_id, event.name]
                found.acknowledge([*_messages(event.runs), *range(event.before)])
            case MessagesAcknowledgedInTransaction():
                yield from expected[event.partition_id, event.name].hold(event)
            case TransactionEnded():
                for found in expected.values():
                    found.end(event)
            case LogStartMoved():
                for key in expected:
                    if key[0] == event.partition_id:
                        yield from expected[key].lose(event)
            case TopicDeleted():
                # An id is never used again, so that what a deleted partition had is found by what is left.
                expected = {key: found for key, found in expected.items() if key[0] in state.partitions}
            case _:
                pass
    yield from _compared(state, expected)


def _messages(runs: Iterable[Run]) -> list[int]:
    return [message for first, last in runs for message in range(first, last + 1)]


def _compared(state: State, expected: dict[SubscriptionKey, _Expected]) -> Iterator[str]:
    found = {
        (partition.partition_id, name): subscription
        for partition in state.partitions.values()
        for name, subscription in partition.subscriptions.items()
    }
    if found.keys() != expected.keys():
        yield f"10: there are the subscriptions {sorted(found)}, the log has {sorted(expected)}"
    for key in found.keys() & expected.keys():
        yield from _differences(key, found[key], expected[key])


def _differences(key: SubscriptionKey, found: Subscription, expected: _Expected) -> Iterator[str]:
    acknowledged = set(range(found.position)) | set(_messages(found.acknowledged))
    if acknowledged != expected.acknowledged:
        yield f"10: {key} differs from its log in messages {sorted(acknowledged ^ expected.acknowledged)[:9]}"
    if found.position in acknowledged:
        yield f"10: {key} stands at message {found.position}, which is acknowledged"
    if any(after[0] <= run[1] + 1 for run, after in pairwise(found.acknowledged)):
        yield f"10: {key} has runs that touch: {found.acknowledged}"
    pending = {message: each for each, runs in found.pending.items() for message in _messages(runs)}
    if pending != expected.pending or not all(found.pending.values()):
        yield f"10: {key} has {found.pending} pending, its log says {expected.pending}"
    cumulative = found.cumulative
    if ((_NEVER, 0) if cumulative is None else (cumulative.transaction_id, cumulative.before)) != expected.cumulative:
        yield f"10: {key} has {cumulative} pending, its log says {expected.cumulative}"


def pending_messages_can_end(state: State) -> Iterator[str]:
    """Invariant 3, for messages: whatever is pending belongs to an open transaction that knows the subscription."""
    for partition in state.partitions.values():
        for name, subscription in partition.subscriptions.items():
            cumulative = subscription.cumulative
            holders = {*subscription.pending, *(() if cumulative is None else (cumulative.transaction_id,))}
            for transaction_id in holders:
                found = state.transactions.get(transaction_id)
                if found is None or (partition.partition_id, name) not in found.subscriptions:
                    yield f"3: transaction {transaction_id} has messages pending in {name}, and is not open there"
    if state.volatile.pending_runs != sum(each.acknowledged_runs for each in state.transactions.values()):
        yield f"limits: {state.volatile.pending_runs} runs are counted as pending"
    if state.volatile.subscriptions != sum(len(each.subscriptions) for each in state.partitions.values()):
        yield f"limits: {state.volatile.subscriptions} subscriptions are counted"


def acknowledged_runs_are_counted(state: State, log: Log) -> Iterator[str]:
    """Yield every transaction whose runs are not counted as the log has them: their limit goes by that number."""
    expected: Counter[TransactionId] = Counter()
    for event in log:
        if isinstance(event, MessagesAcknowledgedInTransaction):
            expected[event.transaction_id] += len(event.runs)
    for transaction_id, found in state.transactions.items():
        if found.acknowledged_runs != expected[transaction_id]:
            yield (
                f"limits: {found.acknowledged_runs} runs of transaction {transaction_id} are counted, "
                f"and {expected[transaction_id]} were acknowledged"
            )


def non_durable_ones_are_in_use(state: State) -> Iterator[str]:
    """Invariant 10, for readers: a non-durable subscription has consumers or is idle, and its name is no other's."""
    volatile = state.volatile
    found = [(key, name, each) for key, named in volatile.non_durable.items() for name, each in named.items()]
    if len(found) != volatile.non_durable_subscriptions:
        yield f"limits: {volatile.non_durable_subscriptions} non-durable subscriptions are counted"
    uncommitted = {(key, name) for key, name, each in found if each.isolation_level is IsolationLevel.READ_UNCOMMITTED}
    if uncommitted != volatile.uncommitted:
        yield f"10: {uncommitted} read uncommitted messages, and {volatile.uncommitted} are known to"
    for partition_id, name, subscription in found:
        delivery = volatile.deliveries.get((partition_id, name))
        if (delivery is None or not delivery.consumers) is not (subscription.idle_since_ms is not None):
            yield f"10: {name} is not durable, idle since {subscription.idle_since_ms}, and delivers {delivery}"
        if partition_id not in state.partitions or name in state.partitions[partition_id].subscriptions:
            yield f"10: {name} is not durable, and its partition is gone or has a durable one of the name"
        if subscription.pending or subscription.cumulative is not None:
            yield f"10: {name} is not durable, and has messages pending"


def entries_have_one_place(state: State) -> Iterator[str]:
    """Invariant 10, for delivery: what is left of an entry is with one consumer, waits for one, or is withheld.

    It is withheld if all that is left of it is pending. An entry of which nothing is left is not there any more.
    """
    for key, delivery in state.volatile.deliveries.items():
        subscription = state.subscription(key) if key[0] in state.partitions else None
        if subscription is None:
            yield f"10: {key} is delivered, and is gone"
            continue
        if list(delivery.entries) and delivery.is_in_order:
            yield f"10: {key} delivers in order, and notes {list(delivery.entries)}"
        if sorted(delivery.entries) != delivery.order or sorted(set(delivery.waiting)) != delivery.waiting:
            yield f"10: {key} has {sorted(delivery.entries)} in the order {delivery.order}, {delivery.waiting} wait"
        delayed = [(each.deliver_at_ms, each.base) for each in delivery.entries.values() if each.deliver_at_ms]
        if sorted(delayed) != delivery.delayed:
            yield f"10: {key} has the delays {delivery.delayed}, its entries {sorted(delayed)}"
        yield from _misplaced(key, delivery, subscription)
        held, keys = Counter[ConsumerId](), Counter[tuple[int, ConsumerId]]()
        for entry in delivery.entries.values():
            if entry.consumer is not None:
                held[entry.consumer] += entry.count
                keys[entry.key, entry.consumer] += 1
        if held != Counter({each.consumer_id: each.held for each in delivery.consumers.values() if each.held}):
            yield f"10: {key} counts {delivery.consumers}, which have {held}"
        if subscription.subscription_type is SubscriptionType.KEY_SHARED:
            found = {key: (holder, count) for (key, holder), count in keys.items()}
            if not delivery.is_out_of_order and (found != delivery.key_holders or len(found) != len(keys)):
                yield f"10: {key} has the keys {delivery.key_holders}, its entries {keys}"


def waits_can_end(state: State) -> Iterator[str]:
    """Invariant 10, for delivery: whatever it waits for is there, so that something ends every wait.

    What lies before an acknowledged run was delivered, or goes on being so. What is with consumers, or delayed, is
    noted. What a transaction may give back is pending in one that is open (`pending_messages_can_end`).
    """
    for key, delivery in state.volatile.deliveries.items():
        subscription = state.subscription(key) if key[0] in state.partitions else None
        if subscription is None or looks_further(subscription, delivery, state.limits):
            continue
        cumulative = subscription.cumulative
        is_reached = delivery.read_to > max((last for _, last in subscription.acknowledged), default=-1)
        may_come_back = cumulative is not None and delivery.read_to < cumulative.before
        if not (is_reached or may_come_back or delivery.delayed or delivery.entries):
            yield f"10: delivery of {key} has come to {delivery.read_to}, and waits for what nobody has: {subscription}"


def _misplaced(key: SubscriptionKey, delivery: Delivery, subscription: Subscription) -> Iterator[str]:
    for entry in delivery.entries.values():
        places = (entry.consumer is not None) + (entry.base in delivery.waiting)
        if delivery.is_done(subscription, entry.base, entry.last):
            yield f"10: {key} still has {entry}, of which nothing is left"
        elif places != (1 if delivery.left(subscription, entry.base, entry.last) and not entry.deliver_at_ms else 0):
            yield f"10: {key} has {entry} in {places} places"
        if entry.last >= delivery.read_to:
            yield f"10: {key} has {entry} before it was looked at"
