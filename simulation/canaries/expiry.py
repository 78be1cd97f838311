"""Planted bugs of what is forgotten by time: groups that nobody uses (KIP-211)."""

from typing import Any

from exacta.core.apply import _APPLY
from exacta.core.commands import ExpireGroups
from exacta.core.events import GroupDeleted, GroupEmptied
from exacta.core.groups import expiry
from exacta.core.state.group import Group
from exacta.core.state.state import State
from exacta.core.transactions.expiry import timers_after_recovery
from exacta.engine import recovery
from simulation.canaries import Replacements, canary


@canary(
    "the retention of a group counts from its last commit, although it had members until lately (KAFKA-4682)",
    shows=r"expiry: sitting.* is idle for|offsets: sitting.* has None",
)
def expiry_counts_from_the_commit() -> Replacements:
    return [(_APPLY, GroupEmptied, lambda state, event: None)]


@canary("a group expires that has members", shows=r"expiry: .* has the members")
def expiry_of_active_groups() -> Replacements:
    is_in_use = expiry._is_in_use

    def of_another(state: State, group_id: str, since_ms: int, begun_ms: int) -> bool:
        return is_in_use(state, group_id + "!", since_ms, begun_ms)

    return [(expiry, "_is_in_use", of_another)]


@canary("a group expires in which a Spark query remembers what it has committed", shows=r"expiry: .* Spark query")
def expiry_of_spark_groups() -> Replacements:
    return [(expiry, "is_kept", lambda group: False)]


@canary("a group expires whose offsets wait for a transaction", shows=r"expiry: .* that wait for")
def expiry_of_pending_offsets() -> Replacements:
    is_old = expiry._is_old

    def without_pending(group: Group, since_ms: int) -> bool:
        return is_old(Group(group.group_id, group.offsets), since_ms)

    return [(expiry, "_is_old", without_pending)]


@canary(
    "a group expires as soon as one of its offsets is old enough", shows=r"expiry: .* is idle for|offsets: .* has None"
)
def expiry_by_the_oldest_offset() -> Replacements:
    is_old = expiry._is_old

    def by_one(group: Group, since_ms: int) -> bool:
        return any(
            is_old(Group(group.group_id, {topic: {index: offset}}, group.pending), since_ms)
            for topic, by_partition in group.offsets.items()
            for index, offset in by_partition.items()
        ) and not expiry.is_kept(group)

    return [(expiry, "_is_old", by_one)]


@canary(
    "after a restart groups that have lost their members shortly before are taken for long unused",
    shows=r"expiry: .* is idle for|offsets: .* has None",
)
def expiry_forgets_the_start() -> Replacements:
    is_in_use = expiry._is_in_use

    def never_begun(state: State, group_id: str, since_ms: int, begun_ms: int) -> bool:
        return is_in_use(state, group_id, since_ms, 0)

    return [(expiry, "_is_in_use", never_begun)]


@canary("groups expire in memory, and are back after a restart", shows=r"offsets: .* has \d+ of .*, and not \['None'\]")
def expiry_not_journaled() -> Replacements:
    return [(GroupDeleted, "durable", False)]  # nothing else deletes groups there


@canary("after a restart nothing looks for groups that have expired", shows=r"expiry: .* is still there")
def expiry_ends_with_a_restart() -> Replacements:
    def without(state: State, now_ms: int) -> list[Any]:
        timers = timers_after_recovery(state, now_ms)
        has_begun = any(state.groups)
        return [each for each in timers if not (has_begun and isinstance(each.command, ExpireGroups))]

    return [(recovery, "timers_after_recovery", without)]
