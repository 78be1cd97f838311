"""ConsumerGroupHeartbeat: a member joins, goes on, or leaves."""

from msgspec.structs import replace

from exacta.core.commands import ConsumerHeartbeat
from exacta.core.groups.consumer.leaving import leave
from exacta.core.groups.consumer.step import ConsumerStep
from exacta.core.groups.consumer.subscriptions import is_pattern
from exacta.core.groups.migration import upgraded
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import ConsumerHeartbeatDone
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.consumer_membership import ConsumerMember
from exacta.core.state.state import State
from exacta.core.state.weights import texts
from exacta.core.values.classic_groups import Phase
from exacta.core.values.consumer_groups import JOINING_EPOCH, LEFT_FOR_A_WHILE_EPOCH


def heartbeat(state: State, command: ConsumerHeartbeat, now_ms: int) -> Outcome:
    """Join a group or go on in it; take the report of owned partitions, and answer with the assigned ones."""
    if command.assignor is not None and command.assignor not in state.limits.group_consumer_assignors:
        return Outcome(reply=Rejection.UNSUPPORTED_ASSIGNOR)
    if texts((*(command.topics or ()), command.pattern or "")) > state.limits.member_metadata_max_bytes:
        return Outcome(reply=Rejection.LIMIT_REACHED)
    if command.leaves:
        return leave(state, command, now_ms)
    joins = command.member_epoch == JOINING_EPOCH
    classic = state.volatile.memberships.get(command.group_id, NOBODY)
    if not joins and command.group_id not in state.volatile.consumer_groups:
        # The group may have gone back to the classic protocol without this member, which joins again then.
        return Outcome(reply=state.unknown_group if classic.phase is Phase.EMPTY else Rejection.UNKNOWN_MEMBER_ID)
    if not state.has_room_for_group(command.group_id):
        return Outcome(reply=Rejection.LIMIT_REACHED)
    if command.rehearsed is not None and command.rehearsed.scene.is_as_it_was(state):
        outcome: Outcome = command.rehearsed.outcome
        return outcome
    group = None if classic.phase is Phase.EMPTY else upgraded(state, command.group_id)
    if group is None and classic.phase is not Phase.EMPTY:
        return Outcome(reply=Rejection.GROUP_ID_NOT_FOUND)
    step = ConsumerStep(state, command.group_id, now_ms, upgraded=group)
    members = step.group.members
    if command.member_id not in members and len(members) >= step.limits.group_consumer_max_size:
        return Outcome(reply=Rejection.GROUP_MAX_SIZE_REACHED)
    known = _find(step, command, joins=joins)
    if isinstance(known, Rejection):
        return Outcome(reply=known)
    return _go_on(step, command, known, joins=joins)


def _find(step: ConsumerStep, command: ConsumerHeartbeat, *, joins: bool) -> ConsumerMember | Rejection:
    """Return the member as it was before this heartbeat: a new one, a present one, or a successor."""
    if command.instance_id is not None:
        static_id = step.group.static.get(command.instance_id)
        predecessor = None if static_id is None else step.group.members[static_id]
        if joins:
            if predecessor is None:
                return step.group.members.get(command.member_id) or ConsumerMember(member_id=command.member_id)
            if predecessor.epoch != LEFT_FOR_A_WHILE_EPOCH and predecessor.classic is None:
                return Rejection.UNRELEASED_INSTANCE_ID
            return step.succeed(predecessor, command.member_id)
        if predecessor is None:
            return Rejection.UNKNOWN_MEMBER_ID
        if predecessor.member_id != command.member_id:
            return Rejection.FENCED_INSTANCE_ID
    member = step.group.members.get(command.member_id)
    if member is None:
        return ConsumerMember(member_id=command.member_id) if joins else Rejection.UNKNOWN_MEMBER_ID
    return _check_epoch(member, command) or member


def _check_epoch(member: ConsumerMember, command: ConsumerHeartbeat) -> Rejection | None:
    if command.member_epoch in (JOINING_EPOCH, member.epoch):
        return None
    # The answer with the present epoch may have been lost: a member that owns no more than its assignment goes on.
    lost = (
        command.member_epoch == member.previous_epoch
        and command.member_epoch < member.epoch
        and command.owned is not None
        and command.owned <= member.assigned.keys()
    )
    return None if lost else Rejection.FENCED_MEMBER_EPOCH


def _go_on(step: ConsumerStep, command: ConsumerHeartbeat, known: ConsumerMember, *, joins: bool) -> Outcome:
    member = _described(known, command)
    if member.pattern != known.pattern and not is_pattern(member.pattern):
        return Outcome(reply=Rejection.INVALID_REGULAR_EXPRESSION)
    if member is not known or command.member_id not in step.group.members:
        step.put(member)
    resubscribed = (member.topics, member.pattern) != (known.topics, known.pattern)
    step.look_at_topics(resubscribed=resubscribed, hidden=command.hidden)
    step.make_target()
    member = step.lead(member, command.owned, resubscribed=resubscribed)
    step.keep_alive(member.member_id, joins=joins)
    told = joins or command.is_full or member.assigned.keys() != known.assigned.keys()
    return step.outcome(
        ConsumerHeartbeatDone(
            member_id=member.member_id,
            member_epoch=member.epoch,
            assignment=frozenset(member.assigned) if told else None,
        )
    )


def _described(known: ConsumerMember, command: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with what it says of itself; the rest is as it was."""
    said = replace(
        known,
        instance_id=known.instance_id if command.instance_id is None else command.instance_id,
        rack_id=known.rack_id if command.rack_id is None else command.rack_id,
        client_id=command.client_id,
        client_host=command.client_host,
        principal=command.principal,
        rebalance_timeout_ms=(
            known.rebalance_timeout_ms if command.rebalance_timeout_ms < 0 else command.rebalance_timeout_ms
        ),
        topics=known.topics if command.topics is None else command.topics,
        pattern=known.pattern if command.pattern is None else command.pattern,
        assignor=known.assignor if command.assignor is None else command.assignor,
        classic=None,
    )
    return known if said == known else said
