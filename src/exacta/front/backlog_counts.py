"""The backlogs of subscriptions are counted in turns of the loop: one may have a hundred thousand ranges to count."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct

from exacta.core.subscriptions.backlog import BacklogPart, ranges_to_count
from exacta.core.subscriptions.description import DescribedSubscription
from exacta.front.broker import Broker
from exacta.front.request import Request

RANGES_A_TURN = 500
"""A range costs some 10 microseconds. Others wait for one turn."""


class Backlog(Struct):
    """The messages of one subscription, in numbers (`exacta.core.subscriptions.backlog`)."""

    left: int = 0
    pending: int = 0
    held_back: int = 0


def count_backlogs(
    broker: Broker,
    request: Request,
    subscriptions: Sequence[DescribedSubscription],
    done: Callable[[list[Backlog]], None],
) -> None:
    """Call back with the backlog of each; the state that they were described in must be durable."""
    counted: list[Backlog] = []
    steps = _count(broker, subscriptions, counted)

    def turn(_: None) -> None:
        if sum(1 for _ in islice(steps, RANGES_A_TURN)) < RANGES_A_TURN:
            done(counted)
        else:
            broker.engine.scheduler.call_soon(partial(guarded, None))

    guarded = request.guard(turn)
    guarded(None)


def _count(broker: Broker, subscriptions: Sequence[DescribedSubscription], counted: list[Backlog]) -> Iterator[None]:
    """Add a backlog for each; yield after every range."""
    count = broker.engine.lookups.count_between
    for each in subscriptions:
        numbers = [0] * len(BacklogPart)
        for which, sign, first, end in ranges_to_count(each):
            numbers[which] += sign * count(each.partition_id, first, end, read_committed=each.reads_committed)
            yield
        left, pending, held_back = numbers
        counted.append(Backlog(left, pending, held_back))
