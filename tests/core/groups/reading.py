"""The offsets of a group, as a test asks for them."""

from collections.abc import Iterable

from exacta.core.groups.reading import GroupOffset, positions
from exacta.core.state.state import State


def fetch_offsets(
    state: State, group_id: str, topics: Iterable[tuple[str, Iterable[int]]] | None, *, require_stable: bool
) -> list[GroupOffset]:
    """Return the offsets in these partitions, or in all of which there is anything."""
    found = positions(state, group_id, None, require_stable=require_stable)
    wanted = topics if topics is not None else [(topic, found.partitions(topic)) for topic in found.topics()]
    return [each for topic, indexes in wanted for each in found.told(topic, indexes)]
