"""Leading one member to its target (KIP-848): give up first, then take what others have given up.

A function of plain values: the table is in the package's docstring.
"""

from collections.abc import Callable, Collection

from msgspec.structs import replace

from exacta.core.state.consumer_membership import ConsumerMember, MemberPhase
from exacta.core.values.consumer_groups import TopicPartition

Owned = frozenset[TopicPartition] | None
"""The partitions that a member reports to own; None if it reports nothing."""


def reconcile(
    member: ConsumerMember,
    *,
    target: frozenset[TopicPartition],
    target_epoch: int,
    subscribed: Collection[bytes],
    owned: Owned,
    is_held: Callable[[TopicPartition], bool],
    resubscribed: bool,
) -> ConsumerMember:
    """Return the member as it is after this report; the same object if nothing changes.

    `is_held` says whether any member, this one included, holds a partition. `resubscribed` says that the subscription
    has just changed. Then the member must give up the topics that it no longer reads, whatever the target is.
    """
    waits_for_it = member.phase is MemberPhase.UNREVOKED and _still_owns(owned, member.revoking)
    if waits_for_it or (member.phase is MemberPhase.STABLE and member.epoch == target_epoch):
        return _give_up_unsubscribed(member, subscribed, owned) if resubscribed else member
    wanted = {partition for partition in target if partition[0] in subscribed}
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition in wanted}
    revoking = {partition: epoch for partition, epoch in member.assigned.items() if partition not in wanted}
    if revoking and _still_owns(owned, revoking):
        return _at(member, member.epoch, MemberPhase.UNREVOKED, kept, revoking)
    pending = wanted - kept.keys()
    # The member still holds what it was giving up until now, and may have it again.
    unreleased = {each for each in pending - member.held if is_held(each)}
    taken = kept | dict.fromkeys(sorted(pending - unreleased), target_epoch)
    phase = MemberPhase.UNRELEASED if unreleased else MemberPhase.STABLE
    return _at(member, target_epoch, phase, taken, {})


def _still_owns(owned: Owned, revoking: Collection[TopicPartition]) -> bool:
    """Return whether the member still owns one of them; a member that reports nothing owns all."""
    return owned is None or any(partition in owned for partition in revoking)


def _give_up_unsubscribed(member: ConsumerMember, subscribed: Collection[bytes], owned: Owned) -> ConsumerMember:
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition[0] in subscribed}
    if len(kept) == len(member.assigned):
        return member
    revoking = member.revoking | {each: epoch for each, epoch in member.assigned.items() if each not in kept}
    if _still_owns(owned, revoking):
        return _at(member, member.epoch, MemberPhase.UNREVOKED, kept, revoking)
    return _at(member, member.epoch, member.phase, kept, member.revoking)


def _at(
    member: ConsumerMember,
    epoch: int,
    phase: MemberPhase,
    assigned: dict[TopicPartition, int],
    revoking: dict[TopicPartition, int],
) -> ConsumerMember:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, phase=phase, assigned=assigned, revoking=revoking)
