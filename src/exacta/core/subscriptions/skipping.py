"""Skipping messages in a consumer's place: an administrator skips or clears a backlog, or its messages expire.

What is skipped is acknowledged for good, as if a consumer had acknowledged all messages before an offset at once
(`acknowledging.py` has the table). Consumers stay connected, and what lies behind stays as it is: in this a skip
differs from a seek. Messages that no consumer may see yet, because a transaction is open before them, are not skipped.
One that reads uncommitted messages sees them, so that they are skipped for its subscription.
"""

from itertools import islice

from exacta.core.commands import Acknowledge
from exacta.core.commands.subscriptions import LATEST, Skip
from exacta.core.event import Event
from exacta.core.ids import Offset
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.state import State
from exacta.core.subscriptions.acknowledging import acknowledge
from exacta.core.subscriptions.isolation import end_of


def skip(state: State, command: Skip, now_ms: int) -> Outcome:
    """Acknowledge all messages before an offset for one subscription, or for all that are behind it."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if command.subscription is not None:
        found = state.subscription((partition.partition_id, command.subscription))
        if found is None:
            return Outcome(reply=Rejection.SUBSCRIPTION_NOT_FOUND)
        before = end_of(partition, found) if command.before == LATEST else command.before
        return acknowledge(state, _all_before(command, found.name, before), now_ms)
    before = partition.last_stable_offset if command.before == LATEST else command.before
    if not 0 <= before <= partition.last_stable_offset:
        return Outcome(reply=Rejection.OFFSET_OUT_OF_RANGE)
    behind = (each.name for each in partition.subscriptions.values() if each.position < before)
    events: list[Event] = []
    for name in islice(behind, state.limits.max_expired_at_once):
        events += acknowledge(state, _all_before(command, name, before), now_ms).events
    return Outcome(events=tuple(events), reply=DONE)


def _all_before(command: Skip, name: str, before: Offset) -> Acknowledge:
    return Acknowledge(topic=command.topic, partition=command.partition, subscription=name, before=before)
