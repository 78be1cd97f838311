"""Sets of offsets as runs: sorted, disjoint, and with a gap between any two; both ends of a run belong to it."""

from bisect import bisect_left
from collections.abc import Iterable

from exacta.core.ids import Offset

Run = tuple[Offset, Offset]
"""The first and the last offset."""


def add(runs: list[Run], first: Offset, last: Offset) -> None:
    """Let these offsets be in the set, and join the runs that they touch."""
    start = bisect_left(runs, (first,))
    if start and runs[start - 1][1] >= first - 1:
        start -= 1
        first = runs[start][0]
    end = start
    while end < len(runs) and runs[end][0] <= last + 1:
        last = max(last, runs[end][1])
        end += 1
    runs[start:end] = [(first, last)]


def subtract(runs: list[Run], first: Offset, last: Offset) -> None:
    """Let none of these offsets be in the set."""
    start, end = _touched(runs, first, last)
    left: list[Run] = []
    if start < end:
        if runs[start][0] < first:
            left.append((runs[start][0], Offset(first - 1)))
        if runs[end - 1][1] > last:
            left.append((Offset(last + 1), runs[end - 1][1]))
    runs[start:end] = left


def overlaps(runs: list[Run], first: Offset, last: Offset) -> bool:
    """Return whether one of these offsets is in the set."""
    start, end = _touched(runs, first, last)
    return start < end


def missing(runs: list[Run], first: Offset, last: Offset) -> list[Run]:
    """Return the runs of those of these offsets that are not in the set."""
    start, end = _touched(runs, first, last)
    found: list[Run] = []
    for run_first, run_last in runs[start:end]:
        if first < run_first:
            found.append((first, Offset(run_first - 1)))
        first = Offset(run_last + 1)
    if first <= last:
        found.append((first, last))
    return found


def runs_between(runs: list[Run], first: Offset, last: Offset) -> list[Run]:
    """Return the runs, whole, that have one of these offsets."""
    start, end = _touched(runs, first, last)
    return runs[start:end]


def count(runs: Iterable[Run]) -> int:
    """Return how many offsets are in the set."""
    return sum(last - first + 1 for first, last in runs)


def _touched(runs: list[Run], first: Offset, last: Offset) -> tuple[int, int]:
    """Return the places, from and to, of the runs that have one of these offsets."""
    start = bisect_left(runs, (first,))
    if start and runs[start - 1][1] >= first:
        start -= 1
    return start, bisect_left(runs, (last + 1,), lo=start)
