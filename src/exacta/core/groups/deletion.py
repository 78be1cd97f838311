"""Deleting a group (KIP-229), with what is remembered of its membership, or only some of its offsets (KIP-496).

Offsets in it that wait for the end of an open transaction are deleted as well, as in Apache Kafka, and that end brings
none of them back. The transaction itself goes on, and may commit further offsets to the group, which begins again.
"""

from collections.abc import Callable

from exacta.core.commands import DeleteGroup, DeleteOffsets
from exacta.core.events import GroupDeleted, OffsetsDeleted
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, OffsetsDeletedReply
from exacta.core.state.classic_membership import CONSUMERS, NOBODY, Membership
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase


def delete(state: State, command: DeleteGroup, now_ms: int) -> Outcome:
    """Delete a group that has no members."""
    if has_members(state, command.group_id):
        return Outcome(reply=Rejection.NON_EMPTY_GROUP)
    if not state.has_group(command.group_id):
        return Outcome(reply=Rejection.GROUP_ID_NOT_FOUND)
    return Outcome(events=(GroupDeleted(group_id=command.group_id),), reply=DONE)


def has_members(state: State, group_id: str) -> bool:
    """Say whether somebody is a member of a group, or about to be."""
    membership = state.volatile.memberships.get(group_id, NOBODY)
    consumers = state.volatile.consumer_groups.get(group_id)
    return membership.phase is not Phase.EMPTY or (consumers is not None and bool(consumers.members))


def delete_offsets(state: State, command: DeleteOffsets, now_ms: int) -> Outcome:
    """Delete offsets of partitions, except for topics that a member reads, or may read."""
    membership = state.volatile.memberships.get(command.group_id, NOBODY)
    if not state.has_group(command.group_id):
        return Outcome(reply=Rejection.GROUP_ID_NOT_FOUND)
    if membership.members and membership.protocol_type != CONSUMERS:
        return Outcome(reply=Rejection.NON_EMPTY_GROUP)
    is_read = _is_read(state, membership, command.group_id)
    rejections = tuple(_check_offset(state, is_read, *partition) for partition in command.partitions)
    group = state.groups.get(command.group_id)
    known = () if group is None else (group.offsets, *group.pending.values())
    deleted = {
        (topic, index): None
        for (topic, index), rejection in zip(command.partitions, rejections, strict=True)
        if rejection is None and any(index in offsets.get(topic, {}) for offsets in known)
    }
    gone = OffsetsDeleted(group_id=command.group_id, partitions=tuple(deleted), pending=True)
    events = (gone,) if deleted else ()
    return Outcome(events=events, reply=OffsetsDeletedReply(rejections=rejections))


def _is_read(state: State, membership: Membership, group_id: str) -> Callable[[str], bool]:
    """Return a function that says whether a member reads a topic, or may read it."""
    consumers = state.volatile.consumer_groups.get(group_id)
    if consumers is not None:
        read = {name for member in consumers.members.values() for name in consumers.subscribed(member)}
        return read.__contains__
    # While members join again, they still read the topics of their last generation.
    subscribed = membership.subscribed if membership.members else frozenset()
    return lambda topic: subscribed is None or topic in subscribed


def _check_offset(state: State, is_read: Callable[[str], bool], topic: str, index: int) -> Rejection | None:
    if state.partition(topic, index) is None:
        return Rejection.UNKNOWN_TOPIC_OR_PARTITION
    return Rejection.GROUP_SUBSCRIBED_TO_TOPIC if is_read(topic) else None
