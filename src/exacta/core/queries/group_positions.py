"""Consumer groups in numbers: their members, and the offsets that they have committed."""

from msgspec import Struct

from exacta.core.groups.lag import positions_of_group
from exacta.core.ids import PartitionId
from exacta.core.state.state import State


class GroupPosition(Struct, frozen=True):
    """The position of a group in one partition."""

    topic: str
    index: int
    partition_id: PartitionId
    offset: int
    """The offset at which the group reads on; -1: it has none yet."""


def member_counts(state: State) -> dict[str, int]:
    """Return how many members each group has that has had some since the start."""
    volatile = state.volatile
    classic = {group: len(found.members) for group, found in volatile.memberships.items()}
    return classic | {group: len(found.members) for group, found in volatile.consumer_groups.items()}


def groups_with_offsets(state: State) -> list[str]:
    """Return the groups that have committed offsets, or will have some if an open transaction commits."""
    return list(state.groups)


def group_positions(state: State, group: str) -> list[GroupPosition]:
    """Return the position of a group in each partition in which it has one, or will have one."""
    return [
        GroupPosition(partition.topic, partition.index, partition.partition_id, committed)
        for partition, committed, _ in positions_of_group(state, group)
    ]
