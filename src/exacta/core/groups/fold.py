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
from exacta.core.state import weights
from exacta.core.state.classic_membership import NOBODY, Membership
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.group import CommittedOffset, Group, OffsetMap
from exacta.core.state.state import State
from exacta.core.values.usage import Table


def _group(state: State, group_id: str) -> Group:
    group = state.groups.get(group_id)
    if group is None:
        group = state.groups[group_id] = Group(group_id)
        _count_offsets(state, group_id, weights.group(group))
    return group


def _count_offsets(state: State, group_id: str, size: int) -> None:
    state.volatile.usage[Table.OFFSETS].change(group_id, size)


def _store(state: State, group_id: str, target: OffsetMap, offsets: tuple[OffsetToCommit, ...], at_ms: int) -> None:
    order = state.next_commit_order
    state.next_commit_order = order + 1
    size = 0
    for offset in offsets:
        if offset.topic not in state.topics:
            continue
        by_partition = target.get(offset.topic)
        if by_partition is None:
            by_partition = target[offset.topic] = {}
            size += weights.offsets_of_topic(offset.topic, by_partition)
        before = by_partition.get(offset.partition)
        by_partition[offset.partition] = now = CommittedOffset(
            offset.offset, offset.leader_epoch, offset.metadata, at_ms, order
        )
        if before is None:
            size += weights.offset(now)
        elif before.metadata != now.metadata:
            size += weights.offset(now) - weights.offset(before)
    if size:
        _count_offsets(state, group_id, size)


def _offsets_committed(state: State, event: OffsetsCommitted) -> None:
    _store(state, event.group_id, _group(state, event.group_id).offsets, event.offsets, event.at_ms)


def _transactional_offsets_committed(state: State, event: TransactionalOffsetsCommitted) -> None:
    pending = _group(state, event.group_id).pending
    if event.transaction_id not in pending:
        pending[event.transaction_id] = {}
        _count_offsets(state, event.group_id, weights.PENDING_OFFSETS)
    _store(state, event.group_id, pending[event.transaction_id], event.offsets, event.at_ms)


def _group_deleted(state: State, event: GroupDeleted) -> None:
    group = state.groups.pop(event.group_id, None)
    if group is not None:
        _count_offsets(state, event.group_id, -weights.group(group))
    _settle(state, event.group_id, None)
    state.settled_consumers.pop(event.group_id, None)
    volatile = state.volatile
    volatile.emptied_ms.pop(event.group_id, None)
    classic, group_of_consumers = (
        volatile.memberships.get(event.group_id, NOBODY),
        _forget_consumers(state, event.group_id),
    )
    _change_membership(state, event.group_id, None)
    # A group of the same name goes on counting where this one has ended.
    last = max(classic.generation, 0 if group_of_consumers is None else group_of_consumers.epoch)
    volatile.first_group_epoch = max(volatile.first_group_epoch, last)


def _group_emptied(state: State, event: GroupEmptied) -> None:
    state.volatile.emptied_ms[event.group_id] = event.at_ms


def _offsets_deleted(state: State, event: OffsetsDeleted) -> None:
    group = state.groups[event.group_id]
    size = 0
    for offsets in (group.offsets, *(group.pending.values() if event.pending else ())):
        for topic, index in event.partitions:
            gone = offsets.get(topic, {}).pop(index, None)
            if gone is None:
                continue
            size -= weights.offset(gone)
            if not offsets[topic]:
                size -= weights.offsets_of_topic(topic, {})
                del offsets[topic]
    _count_offsets(state, event.group_id, size)


def _membership_changed(state: State, event: MembershipChanged) -> None:
    before = state.volatile.memberships.get(event.group_id, NOBODY)
    consumers = state.volatile.consumer_groups.get(event.group_id)
    former = before.members.keys() | (consumers.members.keys() if consumers is not None else set())
    _forget_deadlines(state, event.group_id, former - event.membership.members.keys())
    _change_membership(state, event.group_id, event.membership)
    _forget_consumers(state, event.group_id)


def _change_membership(state: State, group_id: str, membership: Membership | None) -> None:
    _replace(state, state.volatile.memberships, group_id, membership)


def _settle(state: State, group_id: str, membership: Membership | None) -> None:
    _replace(state, state.settled, group_id, membership)


def _replace(state: State, table: dict[str, Membership], group_id: str, now: Membership | None) -> None:
    size = weights.membership_growth(group_id, table.get(group_id), now)
    if now is None:
        table.pop(group_id, None)
    else:
        table[group_id] = now
    _count_members(state, group_id, size)


def _count_members(state: State, group_id: str, size: int) -> None:
    if size:
        state.volatile.usage[Table.MEMBERS].change(group_id, size)


def _forget_deadlines(state: State, group_id: str, member_ids: Iterable[str]) -> None:
    for member_id in member_ids:
        state.volatile.member_deadlines_ms.pop((group_id, member_id), None)
        state.volatile.members_due_ms.pop((group_id, member_id), None)


def _group_settled(state: State, event: GroupSettled) -> None:
    _settle(state, event.group_id, event.membership)
    if event.membership is not None:
        state.settled_consumers.pop(event.group_id, None)


def _group_epochs_reserved(state: State, event: GroupEpochsReserved) -> None:
    state.reserved_group_epoch = event.end_epoch


def _consumer_group_changed(state: State, event: ConsumerGroupChanged) -> None:
    _change_consumers(state, event.group_id, event.group)


def _change_consumers(state: State, group_id: str, group: ConsumerGroup) -> None:
    before = state.volatile.consumer_groups.get(group_id)
    state.volatile.consumer_groups[group_id] = group
    _count_members(state, group_id, weights.consumer_growth(group_id, before, group))


def _consumer_group_updated(state: State, event: ConsumerGroupUpdated) -> None:
    group = updated(state.settled_consumers.get(event.group_id), event)
    classic = state.volatile.memberships.get(event.group_id, NOBODY)
    _forget_deadlines(state, event.group_id, (*event.gone, *(classic.members.keys() - group.members.keys())))
    _change_consumers(state, event.group_id, group)
    _change_membership(state, event.group_id, None)
    _settle(state, event.group_id, None)
    if group.members:
        state.settled_consumers[event.group_id] = group
    else:
        state.settled_consumers.pop(event.group_id, None)


def _forget_consumers(state: State, group_id: str) -> ConsumerGroup | None:
    """Take a group of the consumer protocol out, and what its members had to do; return it."""
    group = state.volatile.consumer_groups.pop(group_id, None)
    if group is None:
        return None
    for member_id in group.members:
        state.volatile.members_due_ms.pop((group_id, member_id), None)
    _count_members(state, group_id, -weights.consumer_group(group_id, group))
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
