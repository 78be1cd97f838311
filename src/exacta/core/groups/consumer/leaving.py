"""Who goes: by saying so, by its session's end, by not giving up in time what it must."""

from msgspec.structs import replace

from exacta.core.commands import ConsumerHeartbeat, ExpireConsumer, ExpireRevocation, LeaveGroup
from exacta.core.groups.consumer.step import Step
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, ConsumerHeartbeatDone, MembersLeft
from exacta.core.state.consumer_membership import LEFT_FOR_A_WHILE_EPOCH, MemberPhase
from exacta.core.state.state import State


def leave(state: State, command: ConsumerHeartbeat, now_ms: int) -> Outcome:
    """Leave for good, or as a static member for a while: its partitions then wait for its successor."""
    if command.group_id not in state.volatile.consumer_groups:
        return Outcome(reply=state.unknown_group)
    step = Step(state, command.group_id, now_ms)
    if command.instance_id is not None:
        named = step.group.static.get(command.instance_id)
        if named is None:
            return Outcome(reply=Rejection.UNKNOWN_MEMBER_ID)
        if named != command.member_id:
            return Outcome(reply=Rejection.FENCED_INSTANCE_ID)
    member = step.group.members.get(command.member_id)
    if member is None:
        return Outcome(reply=Rejection.UNKNOWN_MEMBER_ID)
    if command.member_epoch == LEFT_FOR_A_WHILE_EPOCH:
        step.put(replace(member, epoch=LEFT_FOR_A_WHILE_EPOCH, revoking={}))
    else:
        step.remove([command.member_id])
    return step.outcome(ConsumerHeartbeatDone(member_id=command.member_id, member_epoch=command.member_epoch))


def remove_members(state: State, command: LeaveGroup, now_ms: int) -> Outcome:
    """Remove members by the classic protocol's request, as administrators do."""
    step = Step(state, command.group_id, now_ms)
    gone: set[str] = set()
    rejections: list[Rejection | None] = []
    for asked in command.members:
        named = asked.member_id if asked.instance_id is None else step.group.static.get(asked.instance_id)
        if named not in step.group.members:
            rejections.append(Rejection.UNKNOWN_MEMBER_ID)
        elif asked.instance_id is not None and asked.member_id not in ("", named):
            rejections.append(Rejection.FENCED_INSTANCE_ID)
        else:
            rejections.append(None)
            gone.add(named)
    if gone:
        step.remove(gone)
    return step.outcome(MembersLeft(rejections=tuple(rejections)))


def expire_member(state: State, command: ExpireConsumer, now_ms: int) -> Outcome:
    """Remove a member whose session has ended."""
    group = state.volatile.consumer_groups.get(command.group_id)
    if group is None or command.member_id not in group.members:
        return Outcome(reply=DONE)
    deadline_ms = state.volatile.member_deadlines_ms.get((command.group_id, command.member_id), now_ms)
    if now_ms < deadline_ms:
        return Outcome(reply=DONE, timers=(Timer(deadline_ms, command),))
    step = Step(state, command.group_id, now_ms)
    step.remove([command.member_id])
    return step.outcome(DONE)


def expire_revocation(state: State, command: ExpireRevocation, now_ms: int) -> Outcome:
    """Remove a member that lives but has not given up what it must."""
    group = state.volatile.consumer_groups.get(command.group_id)
    member = None if group is None else group.members.get(command.member_id)
    if member is None or member.phase is not MemberPhase.UNREVOKED or member.epoch == LEFT_FOR_A_WHILE_EPOCH:
        return Outcome(reply=DONE)
    if now_ms < member.revoke_by_ms:
        return Outcome(reply=DONE, timers=(Timer(member.revoke_by_ms, command),))
    step = Step(state, command.group_id, now_ms)
    step.remove([command.member_id])
    return step.outcome(DONE)
