"""The committed offsets of a group, as OffsetFetch answers them (KIP-447)."""

from collections.abc import Iterable

from msgspec import Struct

from exacta.core.state.state import State


class GroupOffset(Struct, frozen=True, kw_only=True):
    """A group's position in one partition."""

    topic: str
    partition: int
    offset: int | None
    """The committed offset. None: the group has committed none."""
    leader_epoch: int = -1
    metadata: str = ""
    unstable: bool = False
    """An open transaction moves the position; only a reader that wants a stable one is told."""


def fetch_offsets(
    state: State, group_id: str, topics: Iterable[tuple[str, Iterable[int]]] | None, *, require_stable: bool
) -> list[GroupOffset]:
    """Return the offsets in the partitions that are asked for, or in all that are known.

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
            found.append(
                GroupOffset(topic=topic, partition=index, offset=None, unstable=unstable)
                if committed is None
                else GroupOffset(
                    topic=topic,
                    partition=index,
                    offset=committed.offset,
                    leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    unstable=unstable,
                )
            )
    return found
