"""The redelivery counts of one subscription's entries, as far as acknowledgements have written them (decision 0061).

Delivery counts in memory. An event that acknowledges messages carries the counts that have grown since the last one, of
the entries that are still to be delivered. So a restart goes on from these counts, as share groups do (KIP-932).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from exacta.core.ids import Offset
from exacta.core.values.runs import Run, missing

RedeliveryCount = tuple[Offset, Offset, int]
"""The first and the last offset of an entry, and how often it was delivered again."""

MOST_KNOWN = 1_000
"""The counts of this many entries are known, those of the oldest messages. The others begin again after a restart."""
MOST_AT_ONCE = 100
"""An event carries this many counts; the next one carries more."""


def count_of(known: list[RedeliveryCount], base: Offset) -> int:
    """Return the count of an entry that was written; 0: none was."""
    place = bisect_left(known, base, key=_first)
    return known[place][2] if place < len(known) and known[place][0] == base else 0


def note(known: list[RedeliveryCount], counts: tuple[RedeliveryCount, ...]) -> None:
    """Take up counts, each in the place of the entry's earlier one."""
    for count in counts:
        place = bisect_left(known, count[0], key=_first)
        if place < len(known) and known[place][0] == count[0]:
            known[place] = count
        else:
            known.insert(place, count)
    del known[MOST_KNOWN:]


def forget_done(known: list[RedeliveryCount], runs: Iterable[Run], acknowledged: list[Run], position: Offset) -> None:
    """Forget the entries of which every message is acknowledged, now that these runs are, or the position has moved."""
    del known[: bisect_left(known, position, key=_last)]
    for first, last in runs:
        begin, end = bisect_left(known, first, key=_last), bisect_right(known, last, key=_first)
        if begin < end:
            touched = known[begin:end]
            known[begin:end] = [each for each in touched if missing(acknowledged, max(each[0], position), each[1])]


def _first(count: RedeliveryCount) -> Offset:
    return count[0]


def _last(count: RedeliveryCount) -> Offset:
    return count[1]
