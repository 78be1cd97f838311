"""The aborted transactions that a reader of a range of offsets must know of (KIP-98)."""

from collections.abc import Sequence

from exacta.core.ids import Offset
from exacta.core.state.partition import AbortedTransaction, Partition


def aborted_between(partition: Partition, from_offset: Offset, end_offset: Offset) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions with records in [from_offset, end_offset), in the order of their markers.

    A reader at `from_offset` needs every transaction whose marker lies at that offset or later, even if it began before
    (KIP-98). Transactions that begin at `end_offset` or later are not looked at: there may be many more of them.
    """
    aborted = partition.aborted
    low, high = 0, len(aborted)
    while low < high:  # markers lie in offset order
        middle = (low + high) // 2
        if aborted[middle].last_offset < from_offset:
            low = middle + 1
        else:
            high = middle
    found: list[AbortedTransaction] = []
    for place in range(low, len(aborted)):
        entry = aborted[place]
        if entry.first_offset < end_offset:
            found.append(entry)
        if entry.last_stable_offset >= end_offset:
            break
    return found
