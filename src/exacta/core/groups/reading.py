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
    offsets = {} if group is None else group.offsets
    pending: dict[str, set[int]] = {}
    if group is not None and require_stable:
        for by_topic in group.pending.values():
            for topic, by_partition in by_topic.items():
                pending.setdefault(topic, set()).update(by_partition)
    if topics is None:
        names = sorted(offsets.keys() | pending.keys())
        topics = ((topic, sorted({*offsets.get(topic, ()), *pending.get(topic, ())})) for topic in names)
    found = []
    for topic, indexes in topics:
        known, moved = offsets.get(topic, {}), pending.get(topic, ())
        for index in indexes:
            committed = known.get(index)
            found.append(
                GroupOffset(topic=topic, partition=index, offset=None, unstable=index in moved)
                if committed is None
                else GroupOffset(
                    topic=topic,
                    partition=index,
                    offset=committed.offset,
                    leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    unstable=index in moved,
                )
            )
    return found
