"""Members that leave: by their own request, by a session's end, by not giving up partitions in time."""

from msgspec.structs import replace

from exacta.core.commands import ConsumerHeartbeat, ExpireConsumer, ExpireRevocation, LeaveGroup
from exacta.core.groups.classic.step import ClassicStep
from exacta.core.groups.consumer.step import ConsumerStep
from exacta.core.groups.migration import downgraded, is_classic_without
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, ConsumerHeartbeatDone, MembersLeft, Reply
from exacta.core.state.consumer_membership import ConsumerMember, MemberPhase
from exacta.core.state.state import State
from exacta.core.values.consumer_groups import LEFT_FOR_A_WHILE_EPOCH


def leave(state: State, command: ConsumerHeartbeat, now_ms: int) -> Outcome:
    """Let a member leave for good, or a static one for a while: then its partitions wait for its successor."""
    if command.group_id not in state.volatile.consumer_groups:
        return Outcome(reply=state.unknown_group)
    step = ConsumerStep(state, command.group_id, now_ms)
    if command.instance_id is not None:
        named = step.group.static.get(command.instance_id)
        if named is None:
            return Outcome(reply=Rejection.UNKNOWN_MEMBER_ID)
        if named != command.member_id:
            return Outcome(reply=Rejection.FENCED_INSTANCE_ID)
    member = step.group.members.get(command.member_id)
    if member is None:
        return Outcome(reply=Rejection.UNKNOWN_MEMBER_ID)
    reply = ConsumerHeartbeatDone(member_id=command.member_id, member_epoch=command.member_epoch)
    if command.member_epoch != LEFT_FOR_A_WHILE_EPOCH:
        return without(step, {command.member_id}, reply)
    step.put(replace(member, epoch=LEFT_FOR_A_WHILE_EPOCH, revoking={}))
    return step.outcome(reply)


def without(step: ConsumerStep, gone: set[str], reply: Reply) -> Outcome:
    """Take members out. If all that stay speak the classic protocol, the group is a classic one, which rebalances."""
    if gone >= step.group.members.keys() or not is_classic_without(step.state, step.group, gone):
        step.remove(gone)
        return step.outcome(reply)
    classic = downgraded(step.state, step.group, gone=gone)
    rebalance = ClassicStep(step.state, step.group_id, step.now_ms, downgraded=classic)
    rebalance.begin_rebalance()
    return rebalance.outcome(reply)


def remove_members(state: State, command: LeaveGroup, now_ms: int) -> Outcome:
    """Remove members by the classic protocol's request, as administrators and members of that protocol do."""
    step = ConsumerStep(state, command.group_id, now_ms)
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
    reply = MembersLeft(rejections=tuple(rejections))
    return without(step, gone, reply) if gone else Outcome(reply=reply)


def expire_member(state: State, command: ExpireConsumer, now_ms: int) -> Outcome:
    """Remove a member whose session has ended."""
    group = state.volatile.consumer_groups.get(command.group_id)
    if group is None or command.member_id not in group.members:
        return Outcome(reply=DONE)
    deadline_ms = state.volatile.member_deadlines_ms.get((command.group_id, command.member_id), now_ms)
    if now_ms < deadline_ms:
        return Outcome(reply=DONE, timers=(Timer(deadline_ms, command),))
    return without(ConsumerStep(state, command.group_id, now_ms), {command.member_id}, DONE)


def expire_revocation(state: State, command: ExpireRevocation, now_ms: int) -> Outcome:
    """Remove a member that lives but has not given up its revoked partitions, or has not joined or synced in time."""
    group = state.volatile.consumer_groups.get(command.group_id)
    member = None if group is None else group.members.get(command.member_id)
    due_ms = None if member is None else _due_ms(state, command, member)
    if due_ms is None:
        return Outcome(reply=DONE)
    if now_ms < due_ms:
        return Outcome(reply=DONE, timers=(Timer(due_ms, command),))
    return without(ConsumerStep(state, command.group_id, now_ms), {command.member_id}, DONE)


def _due_ms(state: State, command: ExpireRevocation, member: ConsumerMember) -> int | None:
    """Return the time until which a member must do what it has been told; None: it must do nothing."""
    if member.classic is not None:
        return state.volatile.members_due_ms.get((command.group_id, command.member_id))
    waited_for = member.phase is MemberPhase.UNREVOKED and member.epoch != LEFT_FOR_A_WHILE_EPOCH
    return member.revoke_by_ms if waited_for else None
