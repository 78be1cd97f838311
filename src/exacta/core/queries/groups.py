"""Consumer groups: lists, and what is told of those that are named."""

from collections.abc import Iterable, Sequence

from exacta.core.groups import description
from exacta.core.groups.description import DescribedConsumerGroup, DescribedGroup, ListedGroup
from exacta.core.groups.lag import CountedPartition, lag_of_group, places_of_group
from exacta.core.state.state import State


def sorted_group_names(state: State, now_ms: int) -> list[str]:
    """Return the names of every group that has members or offsets, in their order."""
    return sorted(description.group_names(state))


def groups_with_members(state: State, now_ms: int) -> list[str]:
    """Return the names of the groups that have members, in any order."""
    classic = (group_id for group_id, each in state.volatile.memberships.items() if each.members)
    consumers = (group_id for group_id, each in state.volatile.consumer_groups.items() if each.members)
    return list(dict.fromkeys((*classic, *consumers)))


def listed_group(state: State, now_ms: int, group_id: str) -> ListedGroup | None:
    """See `description.list_group`."""
    return description.list_group(state, group_id)


def described_groups(
    state: State, now_ms: int, group_ids: Iterable[str]
) -> list[DescribedGroup | DescribedConsumerGroup | None]:
    """Return these groups with their members; None where there is no group of a name."""
    return [description.describe_group(state, group_id) for group_id in group_ids]


def places_read(state: State, now_ms: int, group: str) -> list[tuple[str, int]] | None:
    """Return the partitions that a group has a position in, or will have; None: there is no such group."""
    return places_of_group(state, group) if state.has_group(group) else None


def lags(state: State, now_ms: int, group: str, places: Sequence[tuple[str, int]]) -> list[CountedPartition]:
    """See `lag_of_group`."""
    return list(lag_of_group(state, now_ms, group, places))
