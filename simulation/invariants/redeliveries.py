"""The invariant of redelivery counts (decision 0061); `invariants.py` says how such functions are made."""

from collections.abc import Iterator

from exacta.core.events import (
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    SubscriptionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
)
from exacta.core.ids import SubscriptionKey
from exacta.core.state.redeliveries import MOST_KNOWN, RedeliveryCount
from exacta.core.state.state import State
from simulation.invariants.log import Log

_BEGIN_ANEW = (SubscriptionCreated, SubscriptionChanged, SubscriptionDeleted, SubscriptionMoved)


def counts_are_those_that_were_written(state: State, log: Log) -> Iterator[str]:
    """A subscription knows the last count that was written of each entry, as long as something is left of the entry."""
    written = _written(log)
    for partition in state.partitions.values():
        for name, subscription in partition.subscriptions.items():
            known = written.get((partition.partition_id, name), {})
            left = [each for _, each in sorted(known.items()) if subscription.unacknowledged(each[0], each[1])]
            if len(left) < MOST_KNOWN and subscription.redelivered != left:
                yield f"redeliveries: {name} of {partition.topic} knows {subscription.redelivered}, not {left}"


def _written(log: Log) -> dict[SubscriptionKey, dict[int, RedeliveryCount]]:
    written: dict[SubscriptionKey, dict[int, RedeliveryCount]] = {}
    for event in log:
        if isinstance(event, _BEGIN_ANEW):
            written.pop((event.partition_id, event.name), None)
        elif isinstance(event, MessagesAcknowledged | MessagesAcknowledgedInTransaction) and event.counts:
            known = written.setdefault((event.partition_id, event.name), {})
            known.update({int(count[0]): count for count in event.counts})
    return written


def counts_do_not_fall(state: State) -> Iterator[str]:
    """An entry has at least the count that was written, unless all consumers had left in between."""
    for key, delivery in state.volatile.deliveries.items():
        subscription = state.subscription(key) if key[0] in state.partitions else None
        if subscription is None or delivery.counts_anew:
            continue
        for base, _, count in subscription.redelivered:
            entry = delivery.entries.get(base)
            if entry is not None and entry.redeliveries < count:
                yield f"redeliveries: {entry} of {key} counts less than the {count} that were written"
