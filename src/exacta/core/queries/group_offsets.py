"""The committed offsets of groups, to readers that may read them (KIP-447)."""

from collections.abc import Iterable, Mapping, Set

from msgspec import Struct

from exacta.core.groups.committing import check_reader
from exacta.core.groups.reading import NO_POSITIONS, Positions, positions
from exacta.core.rejections import Rejection
from exacta.core.state.state import State


class AskedOffsets(Struct, frozen=True, kw_only=True):
    """A group whose offsets are asked for, and who asks."""

    group_id: str
    member_id: str | None
    member_epoch: int
    topics: Set[str] | None
    """None: all of them."""
    require_stable: bool


class FoundOffsets(Struct, frozen=True):
    """The offsets of a group, and the ids of the topics where all of them were asked for."""

    positions: Positions = NO_POSITIONS
    topic_ids: Mapping[str, bytes] = {}


NOTHING_KNOWN = FoundOffsets()
"""The answer about a group that is not known."""


def offsets_of_groups(state: State, now_ms: int, asked: Iterable[AskedOffsets]) -> list[FoundOffsets | Rejection]:
    """Return the offsets of each group, all of one state, or why its reader may not have them."""
    return [_offsets(state, each) for each in asked]


def _offsets(state: State, asked: AskedOffsets) -> FoundOffsets | Rejection:
    if asked.group_id not in state.groups and asked.group_id not in state.volatile.consumer_groups:
        return NOTHING_KNOWN
    rejection = check_reader(state, asked.group_id, asked.member_id, asked.member_epoch)
    if rejection is not None:
        return rejection
    found = positions(state, asked.group_id, asked.topics, require_stable=asked.require_stable)
    ids = {name: state.topics[name].topic_id for name in found.topics()} if asked.topics is None else {}
    return FoundOffsets(found, ids)
