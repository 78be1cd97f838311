"""Planted bugs of group membership over restarts."""

from typing import Any

from msgspec.structs import replace

from exacta.core import snapshot
from exacta.core.apply import _APPLY
from exacta.core.commands import ConsumerHeartbeat, SyncGroup
from exacta.core.events import GroupSettled
from exacta.core.groups import migration
from exacta.core.groups.classic import step
from exacta.core.groups.consumer import leaving
from exacta.core.promises import Promise
from exacta.core.state.classic_membership import Membership
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.state import State
from exacta.engine import recovery
from simulation.canaries import Replacements, canary


@canary(
    "members are given partitions by a rebalance that is not durable (decision 0025)", shows=r"groups: members of .*"
)
def sync_not_awaited() -> Replacements:
    return [(SyncGroup, "promises", Promise.NOTHING)]


@canary(
    "a member of the consumer protocol is given partitions before that is durable (decision 0025)",
    shows=r"groups: members of .* were told of epoch",
)
def consumer_not_awaited() -> Replacements:
    return [(ConsumerHeartbeat, "promises", Promise.NOTHING)]


@canary(
    "a restart goes on with the members of the consumer protocol as of before their last change",
    shows=r"groups: there are",
)
def consumer_change_forgotten() -> Replacements:
    recover = snapshot.after_recovery

    def behind(state: State, **options: bool) -> None:
        recover(state, **options)
        for group_id, group in state.settled_consumers.items():
            stale = {key: replace(each, epoch=each.previous_epoch) for key, each in group.members.items()}
            state.volatile.consumer_groups[group_id] = replace(group, members=stale)

    return [(recovery, "after_recovery", behind)]


@canary(
    "a group moves to the consumer protocol, and gives a new member what another one reads still (KIP-848)",
    shows=r"groups: .* moves, and gives",
)
def readers_forgotten_in_moving() -> Replacements:
    return [(migration, "topic_partitions", lambda state, named: frozenset())]


@canary(
    "a group moves back to the classic protocol, and its generations begin again (decision 0012)",
    shows=r"groups: GroupSettled.* comes after",
)
def generations_begin_again_in_moving() -> Replacements:
    keep = migration.downgraded

    def again(state: State, group: ConsumerGroup, **options: Any) -> Membership:
        return replace(keep(state, group, **options), generation=1)

    return [(leaving, "downgraded", again)]


@canary("a restart forgets who is in a group (decision 0001)", shows=r"groups: there are \{\}, and there were")
def members_forgotten() -> Replacements:
    recover = snapshot.after_recovery

    def forgetful(state: State, **options: bool) -> None:
        recover(state, **options)
        state.volatile.memberships.clear()

    return [(recovery, "after_recovery", forgetful)]


@canary(
    "a group whose last members have left has them again after a restart (its tombstone is passed over)",
    shows=r"groups: there are",
)
def departure_forgotten() -> Replacements:
    settled = _APPLY[GroupSettled]

    def kept(state: State, event: GroupSettled) -> None:
        if event.membership is not None:
            settled(state, event)

    return [(_APPLY, GroupSettled, kept)]


@canary(
    "a generation that a crash has forgotten is begun again (decision 0012)",
    shows=r"groups: generation .* is begun a second time",
)
def generation_begun_again() -> Replacements:
    return [(step, "next_epoch", lambda state, epoch: epoch + 1)]
