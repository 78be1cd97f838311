"""Delayed messages: Shared and Key_Shared subscriptions hold an entry back until its time has come (volatile).

    an entry whose time         Shared, Key_Shared   Exclusive, Failover *
    has come, when it is read   delivered            delivered
    is still to come            delayed **           delivered
    comes                       waiting ***          -

* These deliver in order.

** It is noted as delayed. The next ones are looked at, also those of its key.

*** Or withheld, if all that is left of it is pending.

A delay counts from the sending, also in a transaction: the time is one that the producer has named, and it goes by the
time that never jumps. No entry is delivered early. Apache Pulsar 4.2 goes by ticks of a second, by its default, so that
it may be early or late by one, and leaves the same types out. A restart forgets delays, and so does the leave of the
last consumer: the entries are read again, with their times. An acknowledgement ends a delay with its entry.

There is one timer for each subscription with delays, for the earliest time. At most `max_delayed_entries` are held
back. Then delivery of new entries waits: to deliver one early would break a promise.
"""

from itertools import islice, takewhile

from exacta.core.commands.subscriptions import EndDelays
from exacta.core.events import DelaysEnded
from exacta.core.ids import Offset
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.delivery import Delivery, SeenEntry
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.subscriptions.subscribing import find

_MOST_AT_ONCE = 1_000


def without_past_delay(seen: SeenEntry, delivery: Delivery, now_ms: int) -> SeenEntry:
    """Return the entry, and only with a delay that holds it back in this delivery now."""
    if seen.deliver_at_ms and (delivery.is_in_order or seen.deliver_at_ms <= now_ms):
        return SeenEntry(seen.base, seen.count, seen.key, gaps=seen.gaps)
    return seen


def timers(partition: Partition, name: str, noted: list[SeenEntry]) -> tuple[Timer, ...]:
    """Return the timer for the first of these delays to end."""
    first_ms = min((seen.deliver_at_ms for seen in noted if seen.deliver_at_ms), default=0)
    return (Timer(first_ms, _command(partition, name)),) if first_ms else ()


def end_delays(state: State, command: EndDelays, now_ms: int) -> Outcome:
    """End the delays whose time has come, and look again when the next one's comes."""
    found = find(state, command.topic, command.partition, command.subscription)
    if isinstance(found, Rejection):
        return Outcome(reply=DONE)
    partition, subscription, delivery = found
    delayed: list[tuple[int, Offset]] = [] if delivery is None else delivery.delayed
    due = [base for _, base in islice(takewhile(lambda each: each[0] <= now_ms, delayed), _MOST_AT_ONCE)]
    left = delayed[len(due) : len(due) + 1]
    ended = DelaysEnded(partition_id=partition.partition_id, name=subscription.name, entries=tuple(due))
    return Outcome(
        events=(ended,) if due else (),
        reply=DONE,
        timers=tuple(Timer(at_ms, _command(partition, subscription.name)) for at_ms, _ in left),
    )


def _command(partition: Partition, name: str) -> EndDelays:
    return EndDelays(topic=partition.topic, partition=partition.index, subscription=name)
