"""A judge of looks at sidecar topics: they show each transaction whole, in the order of the commits, and nothing else.

`looks.py` says what a look is, and judges marker topics. Here no look may show a part of a transaction, whatever else
is open, and the log has neither markers nor gaps nor records of aborted transactions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, groupby

from tests.pulsar_clients.looks import Log, Look, amount_of, name_of


class SidecarJudge:
    """Compares the log with itself, and the looks with the log; `anomalies` is what is wrong."""

    partial = 0

    def __init__(self, log: Log) -> None:
        """Take a log in which nothing is going to enter any more."""
        self._log = log
        self._size = defaultdict[str, int](int)
        orders = {topic: [name for name, _ in groupby(map(name_of, lying))] for topic, lying in log.items()}
        for lying in log.values():
            for each in lying:
                self._size[name_of(each)] += 1
        self.anomalies = [*self._misplaced(), *_in_other_orders(orders)]

    def _misplaced(self) -> Iterator[str]:
        for topic, lying in self._log.items():
            if any(each.is_marker for each in lying):
                yield f"{topic} has markers"
            if [each.offset for each in lying] != list(range(len(lying))):
                yield f"{topic} has gaps"

    def values(self, topic: str) -> list[str]:
        """Return the committed values of a topic, in order."""
        return [each.value for each in self._log[topic]]

    def judge(self, looks: Iterable[Look]) -> None:
        """Go through looks, in the order in which they were taken."""
        taken, shown, total = dict.fromkeys(self._log, 0), defaultdict[str, int](int), 0
        for number, seen in enumerate(looks):
            changed: set[str] = set()
            for topic, (stable, end) in seen.items():
                if stable != end:
                    self.anomalies.append(f"look {number} has an end at {end} of {topic}, and stable is {stable}")
                if end < taken[topic]:
                    self.anomalies.append(f"look {number} goes back in {topic}, from {taken[topic]} to {end}")
                for each in self._log[topic][taken[topic] : end]:
                    total += amount_of(each)
                    shown[name_of(each)] += 1
                    changed.add(name_of(each))
                taken[topic] = max(taken[topic], end)
            torn = sorted(name for name in changed if shown[name] != self._size[name])
            self.anomalies += [f"look {number} shows a part of {name}" for name in torn]
            if total and not torn:
                self.anomalies.append(f"look {number} shows accounts that add up to {total}")


def _in_other_orders(orders: dict[str, list[str]]) -> Iterator[str]:
    for topic, names in orders.items():
        if len(set(names)) < len(names):
            yield f"{topic} has {sorted({name for name in names if names.count(name) > 1})} in more than one place"
    for one, other in combinations(orders, 2):
        common = set(orders[one]) & set(orders[other])
        if [name for name in orders[one] if name in common] != [name for name in orders[other] if name in common]:
            yield f"{one} and {other} have transactions in different orders"
