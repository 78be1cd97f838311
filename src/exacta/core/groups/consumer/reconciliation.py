"""Leading one member to its target (KIP-848): give up first, then take what others have given up.

A function of plain values: the table is in the package's docstring.
"""

from collections.abc import Callable, Collection

from msgspec.structs import replace

from exacta.core.state.consumer_membership import ConsumerMember, MemberPhase, TopicPartition

Owned = frozenset[TopicPartition] | None
"""What a member reports to own; None where it says nothing."""


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
    """Return the member as it is after this report; itself, if nothing changes.

    `is_held`: whether any member, this one included, holds a partition. `resubscribed`: its subscription has just
    changed, so that it must give up what it no longer asks for, whatever the target.
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
    # What it was giving up until now it holds itself, and may have again.
    unreleased = {each for each in pending - member.held if is_held(each)}
    taken = kept | dict.fromkeys(sorted(pending - unreleased), target_epoch)
    phase = MemberPhase.UNRELEASED if unreleased else MemberPhase.STABLE
    return _at(member, target_epoch, phase, taken, {})


def _still_owns(owned: Owned, revoking: Collection[TopicPartition]) -> bool:
    """Who says nothing is taken to own all of it."""
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
