"""Expiry of groups: a group that nobody has used for too long is forgotten, with its offsets.

A group expires if it has had no members for as long as `Limits.offsets_retention_ms` says, and if none of its offsets
was committed in that time. It stays as a whole as long as one of its offsets is younger, or waits for the end of a
transaction. A group that has never committed an offset expires like any other. It would count towards
`Limits.max_groups` until a restart otherwise.

The state does not keep when a group has lost its last member. After a restart it counts as if that had been when the
broker started, so a group may stay too long, and never goes too early.

Spark queries remember in groups what they have committed, and may rest for as long as they like. Such a group never
expires. It is known by the metadata of its offsets.
"""

from collections.abc import Iterator
from itertools import chain, filterfalse, islice

from exacta.core.commands import ExpireGroups
from exacta.core.events import GroupDeleted
from exacta.core.groups.deletion import has_members
from exacta.core.outcome import Outcome, Timer
from exacta.core.replies import DONE
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.group import Group
from exacta.core.state.state import State

KEPT_METADATA = ("spark replay marker ", '{"form":')
"""The beginnings of the metadata of replay markers, and of decision records, of Spark queries (`exacta.spark.sink`)."""


def expire_groups(state: State, command: ExpireGroups, now_ms: int) -> Outcome:
    """Forget the groups that nobody has used for too long; after this many offsets go on in a further step."""
    limits = state.limits
    since_ms = now_ms - limits.offsets_retention_ms
    expired: list[GroupDeleted] = []
    position, looked_at = command.next_group, 0
    for group_id in islice(_group_ids(state), command.next_group, None):
        if looked_at >= limits.max_offsets_looked_at:
            rest = ExpireGroups(begun_ms=command.begun_ms, next_group=position - len(expired))
            return Outcome(events=tuple(expired), reply=DONE, timers=(Timer(now_ms, rest),))
        position += 1
        group = state.groups.get(group_id)
        looked_at += 1 if group is None else 1 + sum(map(len, group.offsets.values()))
        if not _is_in_use(state, group_id, since_ms, command.begun_ms) and (group is None or _is_old(group, since_ms)):
            expired.append(GroupDeleted(group_id=group_id, expired_at_ms=now_ms))
    again = Timer(now_ms + limits.group_expiry_interval_ms, ExpireGroups(begun_ms=command.begun_ms))
    return Outcome(events=tuple(expired), reply=DONE, timers=(again,))


def is_kept(group: Group) -> bool:
    """Say whether a group holds what a Spark query remembers."""
    return any(
        offset.metadata.startswith(KEPT_METADATA)
        for by_partition in group.offsets.values()
        for offset in by_partition.values()
    )


def _group_ids(state: State) -> Iterator[str]:
    """Return the groups that have offsets, then those that only have or had members."""
    without = (state.volatile.memberships, state.volatile.consumer_groups)
    return chain(state.groups, *(filterfalse(state.groups.__contains__, each) for each in without))


def _is_in_use(state: State, group_id: str, since_ms: int, begun_ms: int) -> bool:
    """Return whether somebody is a member of a group, or about to be, or was one not long ago."""
    if has_members(state, group_id) or state.volatile.memberships.get(group_id, NOBODY).pending:
        return True
    return state.volatile.emptied_ms.get(group_id, begun_ms) > since_ms


def _is_old(group: Group, since_ms: int) -> bool:
    """Return whether none of a group's offsets is young, or waits, or is to be kept."""
    latest = (offset.at_ms for by_partition in group.offsets.values() for offset in by_partition.values())
    return not group.pending and max(latest, default=0) <= since_ms and not is_kept(group)
