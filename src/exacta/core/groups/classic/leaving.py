"""Members that leave: by LeaveGroup, by a session's end, by being late for a rebalance."""

from msgspec.structs import replace

from exacta.core.commands import ExpireMember, ExpireRebalance, LeaveGroup, MemberToRemove
from exacta.core.groups.classic.step import ClassicStep, check_member
from exacta.core.groups.consumer.leaving import remove_members
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, MembersLeft
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase


def leave(state: State, command: LeaveGroup, now_ms: int) -> Outcome:
    """Remove members now, with an answer for each; the others rebalance once."""
    if not command.group_id:
        return Outcome(reply=Rejection.INVALID_GROUP_ID)
    if command.group_id in state.volatile.consumer_groups:
        return remove_members(state, command, now_ms)
    step = ClassicStep(state, command.group_id, now_ms)
    rejections = tuple(_let_go(step, member) for member in command.members)
    reply = MembersLeft(rejections=rejections)
    if all(rejections):
        return Outcome(reply=reply)
    if step.membership.phase is not Phase.EMPTY:
        step.begin_rebalance()
        step.complete_if_all_joined()
    return step.outcome(reply)


def _let_go(step: ClassicStep, member: MemberToRemove) -> Rejection | None:
    if not member.member_id:  # an administrator names the instance alone (KIP-345)
        named = step.membership.static.get(member.instance_id or "")
        if named is None:
            return Rejection.UNKNOWN_MEMBER_ID
        step.remove(named)
        return None
    if member.member_id in step.membership.pending:
        step.forget_pending(member.member_id)
        return None
    rejection = check_member(step.membership, member.member_id, member.instance_id)
    if rejection is None:
        step.remove(member.member_id)
    return rejection


def expire_member(state: State, command: ExpireMember, now_ms: int) -> Outcome:
    """Remove a member whose session has ended, unless it waits for our answer."""
    step = ClassicStep(state, command.group_id, now_ms)
    if command.member_id in step.membership.pending:
        step.forget_pending(command.member_id)
        step.complete_if_all_joined()
        return step.outcome(DONE)
    member = step.membership.members.get(command.member_id)
    if member is None:
        return Outcome(reply=DONE)
    deadline_ms = state.volatile.member_deadlines_ms.get((command.group_id, command.member_id), now_ms)
    if not member.new and (member.join_ticket is not None or member.sync_ticket is not None):
        deadline_ms = now_ms + member.session_timeout_ms
    if now_ms < deadline_ms:
        return Outcome(reply=DONE, timers=(Timer(deadline_ms, command),))
    step.remove(command.member_id)
    step.begin_rebalance()
    step.complete_if_all_joined()
    return step.outcome(DONE)


def expire_rebalance(state: State, command: ExpireRebalance, now_ms: int) -> Outcome:
    """Go on without those that did not join, or did not fetch their assignment, in time."""
    step = ClassicStep(state, command.group_id, now_ms)
    if step.membership.phase is Phase.EMPTY:
        return Outcome(reply=DONE)
    if now_ms < step.membership.deadline_ms:
        return Outcome(reply=DONE, timers=(Timer(step.membership.deadline_ms, command),))
    if step.membership.phase is Phase.PREPARING_REBALANCE:
        _complete_or_wait_for_more(step)
        return step.outcome(DONE)
    late = [key for key, member in step.membership.members.items() if not member.synced]
    if not late:
        return Outcome(reply=DONE)
    for member_id in late:
        step.remove(member_id)
    step.begin_rebalance()
    step.complete_if_all_joined()
    return step.outcome(DONE)


def _complete_or_wait_for_more(step: ClassicStep) -> None:
    membership = step.membership
    more_ms = min(step.limits.group_initial_rebalance_delay_ms, membership.first_rebalance_until_ms - step.now_ms)
    if membership.not_before_ms and membership.grew and more_ms > 0:  # KIP-134
        step.membership = replace(membership, grew=False, not_before_ms=step.now_ms + more_ms)
        step.set_deadline(more_ms)
    else:
        step.complete_rebalance()
