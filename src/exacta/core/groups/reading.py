"""The committed offsets of a group, as OffsetFetch answers them (KIP-447)."""

from collections.abc import Iterable

from exacta.core.state.group import CommittedOffset
from exacta.core.state.state import State


def fetch_offsets(
    state: State, group_id: str, topics: Iterable[tuple[str, Iterable[int]]] | None, *, require_stable: bool
) -> list[tuple[str, int, CommittedOffset | None, bool]]:
    """Return (topic, partition, committed offset, unstable) for the partitions asked for, or for all that are known.

    With `require_stable` (KIP-447) a partition with an offset pending in an open transaction is unstable. Its reader
    must ask again, or it would begin before what that transaction has consumed. Otherwise pending offsets are left out.
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
