"""The progress of messages, for a subscription and its delivery together.

A message that is acknowledged, or pending in a transaction, is nobody's to deliver. One that an abort gives back is
delivered again: of a Shared or Key_Shared subscription exactly that entry, and its redelivery count grows. An Exclusive
or Failover subscription goes back to its position, since it delivers in order, as Apache Pulsar does.

What a transaction has acknowledged cumulatively is a matter of order. Later messages are with the consumer that has
acknowledged so, and with it only:

    delivery has come to       while it is pending   with an abort             the consumer asks for all again
    the offset, or beyond it   goes on               back to the position *    back to the position, and waits
    a place before it          waits for the end     goes on                   back to the position, and waits

Delivery has come to a place before it if the consumer has asked, or if it is another consumer than the one that has
acknowledged.

* The consumers are disconnected as by a seek. A consumer has later messages by then. If it got the earlier ones behind
them, an acknowledgement of the later ones would acknowledge the earlier ones, too, and nobody would ever see them. The
client of a consumer that is disconnected drops what it has, connects again by itself, and gets everything from the
position on, in order. No client asks for it by itself after an abort, least of all after one that the time has brought.

    an entry that is   acknowledged, skipped,   the subscription is   it is moved to the      it is deleted,
                       or its records deleted   moved beyond it *     entry, or before it *   or its topic is *
    not looked at      passed over              passed over           delivered               gone
    with a consumer    passed over              passed over           delivered               gone
    waiting            passed over              passed over           delivered               gone
    delayed            passed over              passed over           delivered in its time   gone
    withheld           passed over              passed over           withheld                gone

* Its consumers are disconnected, and delivery begins again with the next one that connects.
"""

from exacta.core.ids import Offset, SubscriptionKey, TransactionId
from exacta.core.state.delivery import Delivery
from exacta.core.state.redeliveries import RedeliveryCount, note
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.values.runs import Run


def acknowledge(
    state: State,
    key: SubscriptionKey,
    runs: tuple[Run, ...],
    before: Offset,
    counts: tuple[RedeliveryCount, ...] = (),
) -> None:
    """Acknowledge these messages, and all before an offset; and note the redelivery counts of others."""
    subscription = find(state, key)
    _note_counts(state, key, subscription, counts)
    subscription.acknowledge(runs, before)
    _settle(state, key, subscription, runs, before)


def hold(
    state: State,
    key: SubscriptionKey,
    transaction_id: TransactionId,
    runs: tuple[Run, ...],
    before: Offset,
    counts: tuple[RedeliveryCount, ...] = (),
) -> None:
    """Let an open transaction have acknowledged these messages, or all before an offset; and note counts of others."""
    subscription = find(state, key)
    _note_counts(state, key, subscription, counts)
    subscription.hold(transaction_id, runs, before)
    _settle(state, key, subscription, runs, before)


def _note_counts(
    state: State, key: SubscriptionKey, subscription: Subscription, counts: tuple[RedeliveryCount, ...]
) -> None:
    if not counts:
        return
    note(subscription.redelivered, counts)
    delivery = state.volatile.deliveries.get(key)
    if delivery is not None:
        for base, _, _ in counts:
            delivery.unwritten.pop(base, None)


def end(state: State, key: SubscriptionKey, transaction_id: TransactionId, *, commit: bool) -> None:
    """Acknowledge what a transaction has acknowledged, or give it back; do nothing where the subscription is gone."""
    subscription = state.partitions[key[0]].subscriptions.get(key[1])
    if subscription is None:
        return
    delivery = None if commit else closed_by_abort(state, key, transaction_id)
    if delivery is not None:
        del state.volatile.deliveries[key]  # its consumers are told to connect again
    runs, before = subscription.end(transaction_id, commit=commit)
    delivery = state.volatile.deliveries.get(key)
    if commit:
        _settle(state, key, subscription, runs, before)
    elif delivery is not None and delivery.is_in_order:
        if runs or before:
            delivery.begin_again(subscription.position)
    elif delivery is not None:
        for first, last in _with_all_before(runs, before):
            _give_back(delivery, subscription, first, last)


def closed_by_abort(state: State, key: SubscriptionKey, transaction_id: TransactionId) -> Delivery | None:
    """Return the delivery whose consumers an abort disconnects, because it gives back what they have gone beyond."""
    partition, delivery = state.partitions.get(key[0]), state.volatile.deliveries.get(key)
    subscription = None if partition is None else partition.subscriptions.get(key[1])
    if subscription is None or delivery is None or not delivery.is_in_order:
        return None
    pending = subscription.cumulative
    if pending is None or pending.transaction_id != transaction_id:
        return None
    return delivery if subscription.position < pending.before <= delivery.read_to else None


def _give_back(delivery: Delivery, subscription: Subscription, first: Offset, last: Offset) -> None:
    for entry in delivery.touching(first, last):
        if delivery.is_waiting(entry.base):
            continue
        if delivery.left(subscription, max(entry.base, first), min(entry.last, last)):
            delivery.count_again(subscription, entry)
            delivery.take_back(entry, waits=True)


def move(state: State, key: SubscriptionKey, before: Offset) -> None:
    """Let no message before an offset be left."""
    subscription = find(state, key)
    subscription.move(before)
    _settle(state, key, subscription, (), before)


def seek(state: State, key: SubscriptionKey, position: Offset) -> None:
    """Let the subscription go on at a position."""
    find(state, key).seek(position)
    state.volatile.deliveries.pop(key, None)  # its consumers are told to connect again


def drop(state: State, key: SubscriptionKey) -> None:
    """Forget a durable subscription, and its delivery."""
    state.volatile.subscriptions -= 1
    state.volatile.deliveries.pop(key, None)
    state.volatile.left_by_all.discard(key)
    del state.partitions[key[0]].subscriptions[key[1]]


def drop_non_durable(state: State, key: SubscriptionKey) -> None:
    """Forget a non-durable subscription, and its delivery."""
    volatile = state.volatile
    volatile.non_durable_subscriptions -= 1
    volatile.uncommitted.discard(key)
    volatile.deliveries.pop(key, None)
    del volatile.non_durable[key[0]][key[1]]
    if not volatile.non_durable[key[0]]:
        del volatile.non_durable[key[0]]


def find(state: State, key: SubscriptionKey) -> Subscription:
    """Look up a subscription that exists, durable or not."""
    found = state.subscription(key)
    assert found is not None, key
    return found


def _with_all_before(runs: tuple[Run, ...] | list[Run], before: Offset) -> list[Run]:
    return [*runs, (Offset(0), Offset(before - 1))] if before else list(runs)


def _settle(
    state: State,
    key: SubscriptionKey,
    subscription: Subscription,
    runs: tuple[Run, ...] | list[Run],
    before: Offset,
) -> None:
    """Let delivery forget the entries that are done, and withhold those of which all that is left is pending."""
    delivery = state.volatile.deliveries.get(key)
    if delivery is None:
        return
    delivery.read_to = max(delivery.read_to, subscription.position)
    for first, last in _with_all_before(runs, before):
        for entry in delivery.touching(first, last):
            if delivery.is_done(subscription, entry.base, entry.last):
                delivery.forget(entry)
            elif not delivery.left(subscription, entry.base, entry.last):
                delivery.take_back(entry, waits=False)
