"""The durable changes of a group of the consumer protocol (KIP-848): the journal holds them, not whole groups.

A group of a thousand members changes thousands of times while it rebalances. Each change is of one member, and one
change is of all targets. A group without members is not kept.
"""

from collections.abc import Mapping

from exacta.core.events import ConsumerGroupUpdated
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.values.consumer_groups import TopicPartition

NO_GROUP = ConsumerGroup(epoch=0, target_epoch=0)
Target = Mapping[str, frozenset[TopicPartition]]


def update(group_id: str, held: ConsumerGroup | None, group: ConsumerGroup) -> ConsumerGroupUpdated | None:
    """Return the event that makes this group of the one that is `held` durably, or None if nothing durable differs."""
    if group is held or not (held or group.members):
        return None
    before = held or NO_GROUP
    event = _difference(group_id, before, group)
    nothing = ConsumerGroupUpdated(
        group_id=group_id,
        epoch=before.epoch,
        target_epoch=before.target_epoch,
        assignor=before.assignor,
        topics_version=group.topics_version,
    )
    return None if event == nothing else event


def made_of_nothing(group_id: str, group: ConsumerGroup) -> ConsumerGroupUpdated:
    """Return the event that makes this group from nothing."""
    return _difference(group_id, NO_GROUP, group)


def _difference(group_id: str, before: ConsumerGroup, group: ConsumerGroup) -> ConsumerGroupUpdated:
    return ConsumerGroupUpdated(
        group_id=group_id,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=group.assignor,
        topics_version=group.topics_version,
        members=tuple(member for key, member in group.members.items() if member is not before.members.get(key)),
        gone=tuple(key for key in before.members if key not in group.members),
        target=_changed_target(before.target, group.target),
        topics=None if group.topics == before.topics else dict(sorted(group.topics.items())),
        matched=None if group.matched == before.matched else _in_order(group.matched),
    )


def _changed_target(before: Target, now: Target) -> dict[str, tuple[TopicPartition, ...]]:
    if now is before:
        return {}
    return {key: tuple(sorted(share)) for key, share in now.items() if share != before.get(key)}


def _in_order(matched: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    return {pattern: tuple(sorted(names)) for pattern, names in matched.items()}


def updated(held: ConsumerGroup | None, event: ConsumerGroupUpdated) -> ConsumerGroup:
    """Return the group as it is after the event."""
    before = held or NO_GROUP
    gone = frozenset(event.gone)
    members = {key: member for key, member in before.members.items() if key not in gone}
    members |= {member.member_id: member for member in event.members}
    static = {member.instance_id: key for key, member in members.items() if member.instance_id is not None}
    return ConsumerGroup(
        epoch=event.epoch,
        target_epoch=event.target_epoch,
        assignor=event.assignor,
        members=members,
        static=static,
        target={key: share for key, share in before.target.items() if key in members}
        | {key: frozenset(share) for key, share in event.target.items()},
        topics=before.topics if event.topics is None else event.topics,
        topics_version=event.topics_version,
        matched=(
            before.matched
            if event.matched is None
            else {pattern: frozenset(names) for pattern, names in event.matched.items()}
        ),
    )
