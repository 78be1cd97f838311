"""The busiest topics have series of their own; all others are summed in one.

Theory of operation. Which topics are busy changes, and yet every series must only grow. So what a topic has done is
given out at each scrape: what has come since the last one is added to the topic's own series if it has one now, else to
the others. A topic that becomes one of the busiest begins its series where it was, or with what comes from then
on. One that is so no more keeps its number for the time when it is back.
"""

from collections.abc import Mapping
from heapq import nlargest

Amounts = tuple[int, ...]
"""Several amounts of one topic, each of which only grows."""


class Busiest:
    """Divides the amounts of topics among series. The sum of its amounts makes a topic busy; older ones count less."""

    def __init__(self, width: int, most: int) -> None:
        """`width` is the number of amounts; at most `most` topics have series of their own."""
        self._most = most
        self._seen: dict[str, Amounts] = {}
        self._activity: dict[str, float] = {}
        self._own: dict[str, list[int]] = {}
        self._shown: set[str] = set()
        self._others = [0] * width

    def divide(self, totals: Mapping[str, Amounts]) -> tuple[dict[str, list[int]], list[int]]:
        """Return the amounts of the series of topics, and those of all others together."""
        nothing = (0,) * len(self._others)
        grown: dict[str, Amounts] = {}
        for topic, amounts in totals.items():
            before = self._seen.get(topic, nothing)
            if amounts != before:
                if any(now < then for now, then in zip(amounts, before, strict=True)):
                    before = nothing  # the topic was created again
                grown[topic] = tuple(now - then for now, then in zip(amounts, before, strict=True))
        self._seen = dict(totals)
        self._choose(totals, grown)
        for topic, growth in grown.items():
            target = self._own[topic] if topic in self._shown else self._others
            for number, amount in enumerate(growth):
                target[number] += amount
        return {topic: self._own[topic] for topic in sorted(self._shown)}, self._others

    def _choose(self, totals: Mapping[str, Amounts], grown: Mapping[str, Amounts]) -> None:
        activity = {topic: before / 2 for topic, before in self._activity.items() if topic in totals}
        for topic, growth in grown.items():
            activity[topic] = activity.get(topic, 0.0) + sum(growth)
        self._activity = activity
        stay = {topic: activity[topic] * 2 for topic in self._shown if topic in activity}
        rank = activity | stay  # who has a series keeps it until another is twice as busy
        self._shown = set(nlargest(self._most, rank, key=rank.__getitem__))
        self._own = {topic: own for topic, own in self._own.items() if topic in totals}
        for topic in self._shown - self._own.keys():
            self._own[topic] = [0] * len(self._others)
