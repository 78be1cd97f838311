"""Answers that only read the state, where they need more than a look-up."""

from collections.abc import Iterable, Sequence

from exacta.core.ids import Offset
from exacta.core.state import AbortedTransaction, CommittedOffset, Partition, State


def fetch_offsets(
    state: State, group_id: str, topics: Iterable[tuple[str, Iterable[int]]] | None, *, require_stable: bool
) -> list[tuple[str, int, CommittedOffset | None, bool]]:
    """Return (topic, partition, committed offset, unstable) for the partitions asked for, or for all that are known.

    `require_stable` (KIP-447): a partition with an offset pending in an open transaction is unstable, and its reader
    must ask again, or it would begin before what that transaction has consumed. Otherwise what is pending is not known.
    """
    group = state.groups.get(group_id)
    if topics is None:
        known: dict[str, set[int]] = {}
        if group is not None:
            for offsets in (group.offsets, *(group.pending.values() if require_stable else ())):
                for topic, by_partition in offsets.items():
                    known.setdefault(topic, set()).update(by_partition)
        topics = ((topic, sorted(indexes)) for topic, indexes in sorted(known.items()))
    found = []
    for topic, indexes in topics:
        for index in indexes:
            committed = group.offsets.get(topic, {}).get(index) if group is not None else None
            unstable = (
                require_stable
                and group is not None
                and any(index in pending.get(topic, {}) for pending in group.pending.values())
            )
            found.append((topic, index, committed, unstable))
    return found


def aborted_between(partition: Partition, from_offset: Offset, end_offset: Offset) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions with records in [from_offset, end_offset), in the order of their markers.

    A reader at `from_offset` needs every one whose marker is not behind it, even if it began before (KIP-98). What the
    reader is not given yet is not looked at: there may be much more of it.
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
