"""The backlog of a subscription, in messages: which ranges of the log are counted, and what each count is part of.

Offsets also number what is for nobody: markers, aborted records, what compaction has removed. So messages are counted
in the log (the engine's look-ups). A message before the last stable offset that is not acknowledged is *left*, unless
an open transaction has acknowledged it: then it is *pending*. Messages from the last stable offset on are *held back*.
A cumulative acknowledgement that is pending covers everything before B; without one, B is the position.

    left = [B, last stable) - acknowledged from B on - pending from B on
    pending = [position, B) - acknowledged before B + pending from B on
    held back = [last stable or position, end)

A subscription that reads uncommitted messages (`isolation.py`) gets everything before the end: for it, the end takes
the place of the last stable offset, nothing is held back, and aborted messages are counted.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum

from exacta.core.ids import Offset
from exacta.core.subscriptions.description import DescribedSubscription
from exacta.core.values.runs import Run


class BacklogPart(IntEnum):
    """The numbers that are counted."""

    LEFT = 0
    PENDING = 1
    HELD_BACK = 2


Range = tuple[BacklogPart, int, Offset, Offset]
"""The number that changes, by 1 or -1 for each message; the first offset of the range, and the one after its last."""


def ranges_to_count(found: DescribedSubscription) -> Iterator[Range]:
    """Yield the ranges that make up the backlog; none is empty."""
    return (each for each in _ranges(found) if each[2] < each[3])


def _ranges(found: DescribedSubscription) -> Iterator[Range]:
    position, end = Offset(found.told.position), Offset(found.told.high_watermark)
    stable = Offset(found.told.last_stable_offset) if found.reads_committed else end
    split = max((position, *(each.before for each in found.pending)))
    yield BacklogPart.LEFT, 1, split, stable
    yield BacklogPart.PENDING, 1, position, split
    for first, behind in _ends(found.acknowledged):
        yield BacklogPart.PENDING, -1, first, min(behind, split)
        yield BacklogPart.LEFT, -1, max(first, split), behind
    for pending in found.pending:
        for first, behind in _ends(pending.runs):
            yield BacklogPart.PENDING, 1, max(first, split), behind
            yield BacklogPart.LEFT, -1, max(first, split), behind
    yield BacklogPart.HELD_BACK, 1, max(position, stable), end


def _ends(runs: Sequence[Run]) -> Iterator[tuple[Offset, Offset]]:
    return ((first, Offset(last + 1)) for first, last in runs)
