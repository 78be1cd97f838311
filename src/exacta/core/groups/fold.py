"""The fold of the events of offsets and groups; `core/apply.py` has the table of all events."""

from collections.abc import Callable, Iterable
from typing import Any

from exacta.core.commands import OffsetToCommit
from exacta.core.events import (
    ConsumerGroupChanged,
    ConsumerGroupUpdated,
    Event,
    GroupDeleted,
    GroupEmptied,
    GroupEpochsReserved,
    GroupSettled,
    MemberDue,
    MemberSeen,
    MembershipChanged,
    OffsetsCommitted,
    OffsetsDeleted,
    TransactionalOffsetsCommitted,
)
from exacta.core.groups.consumer_updates import updated
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.group import CommittedOffset, Group, OffsetMap
from exacta.core.state.state import State


def _group(state: State, group_id: str) -> Group:
    group = state.groups.get(group_id)
    if group is None:
        group = state.groups[group_id] = Group(group_id)
    return group


def _store(state: State, target: OffsetMap, offsets: tuple[OffsetToCommit, ...], at_ms: int) -> None:
    order = state.next_commit_order
    state.next_commit_order = order + 1
    for offset in offsets:
        if offset.topic in state.topics:
            target.setdefault(offset.topic, {})[offset.partition] = CommittedOffset(
                offset.offset, offset.leader_epoch, offset.metadata, at_ms, order
            )


def _offsets_committed(state: State, event: OffsetsCommitted) -> None:
    _store(state, _group(state, event.group_id).offsets, event.offsets, event.at_ms)


def _transactional_offsets_committed(state: State, event: TransactionalOffsetsCommitted) -> None:
    pending = _group(state, event.group_id).pending.setdefault(event.transaction_id, {})
    _store(state, pending, event.offsets, event.at_ms)


def _group_deleted(state: State, event: GroupDeleted) -> None:
    state.groups.pop(event.group_id, None)
    state.settled.pop(event.group_id, None)
    state.settled_consumers.pop(event.group_id, None)
    volatile = state.volatile
    volatile.emptied_ms.pop(event.group_id, None)
    classic, group = volatile.memberships.pop(event.group_id, NOBODY), _without_dues(state, event.group_id)
    # A group of the same name goes on counting where this one has ended.
    last = max(classic.generation, 0 if group is None else group.epoch)
    volatile.first_group_epoch = max(volatile.first_group_epoch, last)


def _group_emptied(state: State, event: GroupEmptied) -> None:
    state.volatile.emptied_ms[event.group_id] = event.at_ms


def _offsets_deleted(state: State, event: OffsetsDeleted) -> None:
    group = state.groups[event.group_id]
    for offsets in (group.offsets, *(group.pending.values() if event.pending else ())):
        for topic, index in event.partitions:
            if offsets.get(topic, {}).pop(index, None) is not None and not offsets[topic]:
                del offsets[topic]


def _membership_changed(state: State, event: MembershipChanged) -> None:
    before = state.volatile.memberships.get(event.group_id, NOBODY)
    consumers = state.volatile.consumer_groups.get(event.group_id)
    former = before.members.keys() | (consumers.members.keys() if consumers is not None else set())
    _forget_deadlines(state, event.group_id, former - event.membership.members.keys())
    state.volatile.memberships[event.group_id] = event.membership
    _without_dues(state, event.group_id)


def _forget_deadlines(state: State, group_id: str, member_ids: Iterable[str]) -> None:
    for member_id in member_ids:
        state.volatile.member_deadlines_ms.pop((group_id, member_id), None)
        state.volatile.members_due_ms.pop((group_id, member_id), None)


def _group_settled(state: State, event: GroupSettled) -> None:
    if event.membership is None:
        state.settled.pop(event.group_id, None)
    else:
        state.settled[event.group_id] = event.membership
        state.settled_consumers.pop(event.group_id, None)


def _group_epochs_reserved(state: State, event: GroupEpochsReserved) -> None:
    state.reserved_group_epoch = event.end_epoch


def _consumer_group_changed(state: State, event: ConsumerGroupChanged) -> None:
    state.volatile.consumer_groups[event.group_id] = event.group


def _consumer_group_updated(state: State, event: ConsumerGroupUpdated) -> None:
    group = updated(state.settled_consumers.get(event.group_id), event)
    classic = state.volatile.memberships.pop(event.group_id, NOBODY)
    _forget_deadlines(state, event.group_id, (*event.gone, *(classic.members.keys() - group.members.keys())))
    state.volatile.consumer_groups[event.group_id] = group
    state.settled.pop(event.group_id, None)
    if group.members:
        state.settled_consumers[event.group_id] = group
    else:
        state.settled_consumers.pop(event.group_id, None)


def _without_dues(state: State, group_id: str) -> ConsumerGroup | None:
    """Take a group of the consumer protocol out, and what its members had to do; return it."""
    group = state.volatile.consumer_groups.pop(group_id, None)
    for member_id in group.members if group is not None else ():
        state.volatile.members_due_ms.pop((group_id, member_id), None)
    return group


def _member_seen(state: State, event: MemberSeen) -> None:
    state.volatile.member_deadlines_ms[event.group_id, event.member_id] = event.deadline_ms


def _member_due(state: State, event: MemberDue) -> None:
    if event.due_ms is None:
        state.volatile.members_due_ms.pop((event.group_id, event.member_id), None)
    else:
        state.volatile.members_due_ms[event.group_id, event.member_id] = event.due_ms


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    OffsetsCommitted: _offsets_committed,
    TransactionalOffsetsCommitted: _transactional_offsets_committed,
    OffsetsDeleted: _offsets_deleted,
    GroupDeleted: _group_deleted,
    GroupEmptied: _group_emptied,
    GroupEpochsReserved: _group_epochs_reserved,
    MembershipChanged: _membership_changed,
    MemberSeen: _member_seen,
    MemberDue: _member_due,
    GroupSettled: _group_settled,
    ConsumerGroupChanged: _consumer_group_changed,
    ConsumerGroupUpdated: _consumer_group_updated,
}
