"""The sinks of consumers: where each consumer's entries are pushed, and in what form the consumers of a front read.

Owns the ids of consumers, since the consumers of all fronts have theirs in one space.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from exacta.core.ids import ConsumerId
from exacta.ports.log import Form, Sent


class _EntrySink(NamedTuple):
    push: Callable[[list[Sent]], None]
    form: Form


class EntrySinks:
    """The sinks by their consumers. All consumers of a subscription are of one front, and so of one form."""

    def __init__(self) -> None:
        self._by_consumer: dict[ConsumerId, _EntrySink] = {}
        self._last_id = 0

    def __len__(self) -> int:
        """Return how many consumers have a sink."""
        return len(self._by_consumer)

    def new_consumer_id(self) -> ConsumerId:
        """Return an id that no consumer of any front has had since the start."""
        self._last_id += 1
        return ConsumerId(self._last_id)

    def register(self, consumer_id: ConsumerId, push: Callable[[list[Sent]], None], form: Form) -> None:
        """Push what a consumer is to have from now on, in this form."""
        self._by_consumer[consumer_id] = _EntrySink(push, form)

    def remove(self, consumer_id: ConsumerId) -> None:
        """Push nothing to a consumer any more."""
        self._by_consumer.pop(consumer_id, None)

    def clear(self) -> None:
        """Push nothing to anybody any more."""
        self._by_consumer.clear()

    def form(self, consumers: Iterable[ConsumerId]) -> Form | None:
        """Return the form in which a subscription's consumers read; None: none of them has a sink."""
        return next((self._by_consumer[each].form for each in consumers if each in self._by_consumer), None)

    def push(self, sent: Sequence[Sent]) -> None:
        """Give each consumer its entries in one call; what is for a consumer without a sink is dropped."""
        by_consumer: dict[ConsumerId, list[Sent]] = {}
        for each in sent:
            by_consumer.setdefault(each.entry.consumer_id, []).append(each)
        for consumer_id, entries in by_consumer.items():
            sink = self._by_consumer.get(consumer_id)
            if sink is not None:
                sink.push(entries)
