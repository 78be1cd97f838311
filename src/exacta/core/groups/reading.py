"""The committed offsets of a group, as OffsetFetch answers them (KIP-447).

What an answer owes to one state is taken by `positions` in one step. It is told afterwards, topic by topic, since a
group may have a hundred thousand offsets.
"""

from collections.abc import Iterable, Mapping, Set

from msgspec import Struct

from exacta.core.state.group import CommittedOffset
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


class Positions(Struct, frozen=True):
    """A group's committed offsets by topic and partition, and the partitions whose offsets are unstable."""

    committed: Mapping[str, Mapping[int, CommittedOffset]] = {}
    unstable: Mapping[str, Set[int]] = {}

    def topics(self) -> list[str]:
        """Return the topics of which there is anything, in order."""
        return sorted(self.committed.keys() | self.unstable.keys())

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic of which there is anything, in order."""
        return sorted({*self.committed.get(topic, ()), *self.unstable.get(topic, ())})

    def told(self, topic: str, partitions: Iterable[int]) -> list[GroupOffset]:
        """Return the group's offsets in partitions of a topic."""
        known, moved = self.committed.get(topic, {}), self.unstable.get(topic, ())
        return [
            GroupOffset(topic=topic, partition=index, offset=None, unstable=index in moved)
            if (committed := known.get(index)) is None
            else GroupOffset(
                topic=topic,
                partition=index,
                offset=committed.offset,
                leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                unstable=index in moved,
            )
            for index in partitions
        ]


NO_POSITIONS = Positions()


def positions(state: State, group_id: str, topics: Set[str] | None, *, require_stable: bool) -> Positions:
    """Return a copy of what a group has in these topics, or in all.

    With `require_stable` (KIP-447) a partition with an offset pending in an open transaction is unstable. Its reader
    must ask again, or it would begin before what that transaction has consumed. Otherwise pending offsets are left out.
    """
    group = state.groups.get(group_id)
    if group is None:
        return NO_POSITIONS
    unstable: dict[str, set[int]] = {}
    if require_stable:
        for by_topic in group.pending.values():
            for topic, by_partition in by_topic.items():
                unstable.setdefault(topic, set()).update(by_partition)
    offsets = group.offsets
    if topics is None:
        return Positions({topic: known.copy() for topic, known in offsets.items()}, unstable)
    return Positions({topic: offsets[topic].copy() for topic in topics & offsets.keys()}, unstable)
