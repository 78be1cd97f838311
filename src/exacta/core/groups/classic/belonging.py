"""The requests of members between rebalances: they fetch their assignment, and say that they live."""

from msgspec.structs import replace

from exacta.core.commands import Heartbeat, SyncGroup
from exacta.core.events import Event, MemberSeen
from exacta.core.groups.classic.step import ClassicStep, check_generation, synced_reply
from exacta.core.groups.consumer import classic_members
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.classic_membership import NOBODY, Membership
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase


def sync(state: State, command: SyncGroup, now_ms: int) -> Outcome:
    """Fetch the assignment of a member; a leader also brings the assignments of all members."""
    if state.has_consumers(command.group_id):
        return classic_members.sync(state, command, now_ms)
    step = ClassicStep(state, command.group_id, now_ms)
    rejection = _check_sync(step.membership, command) or _check_size(state, command)
    if rejection is not None:
        return Outcome(reply=rejection)
    member = step.membership.members[command.member_id]
    step.keep_alive(member)
    if step.membership.phase is Phase.STABLE:
        step.put(replace(member, synced=True))
        return step.outcome(synced_reply(step.membership, member.assignment))
    if command.member_id != step.membership.leader:
        if member.sync_ticket is not None:
            step.wakes.append((member.sync_ticket, Rejection.REBALANCE_IN_PROGRESS))
        step.put(replace(member, sync_ticket=command.ticket, synced=True))
        return step.outcome(None)
    assignments = dict(command.assignments)
    members = {}
    for key, other in step.membership.members.items():
        assignment = assignments.get(key, b"")
        if other.sync_ticket is not None:
            step.wakes.append((other.sync_ticket, synced_reply(step.membership, assignment)))
            step.keep_alive(other)
        members[key] = replace(other, assignment=assignment, sync_ticket=None, synced=other.synced or other is member)
    step.membership = replace(step.membership, phase=Phase.STABLE, members=members)
    return step.outcome(synced_reply(step.membership, assignments.get(command.member_id, b"")))


def _check_sync(membership: Membership, command: SyncGroup) -> Rejection | None:
    if not command.group_id:
        return Rejection.INVALID_GROUP_ID
    rejection = check_generation(membership, command.member_id, command.instance_id, command.generation)
    if rejection is not None:
        return rejection
    for said, is_now in (
        (command.protocol_type, membership.protocol_type),
        (command.protocol, membership.protocol),
    ):
        if said is not None and said != is_now:  # KIP-559
            return Rejection.INCONSISTENT_GROUP_PROTOCOL
    return Rejection.REBALANCE_IN_PROGRESS if membership.phase is Phase.PREPARING_REBALANCE else None


def _check_size(state: State, command: SyncGroup) -> Rejection | None:
    most = state.limits.member_metadata_max_bytes
    return Rejection.LIMIT_REACHED if any(len(each) > most for _, each in command.assignments) else None


def heartbeat(state: State, command: Heartbeat, now_ms: int) -> Outcome:
    """Extend the member's session; tell it of a rebalance."""
    if not command.group_id:
        return Outcome(reply=Rejection.INVALID_GROUP_ID)
    if state.has_consumers(command.group_id):
        return classic_members.heartbeat(state, command, now_ms)
    membership = state.volatile.memberships.get(command.group_id, NOBODY)
    rejection = check_generation(membership, command.member_id, command.instance_id, command.generation)
    if rejection is not None:
        return Outcome(reply=rejection)
    rebalancing = membership.phase is Phase.PREPARING_REBALANCE
    return Outcome(
        events=session_extended(state, command.group_id, command.member_id, now_ms),
        reply=Rejection.REBALANCE_IN_PROGRESS if rebalancing else DONE,
    )


def session_extended(state: State, group_id: str, member_id: str, now_ms: int) -> tuple[Event, ...]:
    """Return the event that extends a member's session; its timer, when due, sees the later deadline."""
    member = state.volatile.memberships.get(group_id, NOBODY).members.get(member_id)
    if member is None:
        return ()
    return (MemberSeen(group_id=group_id, member_id=member_id, deadline_ms=now_ms + member.session_timeout_ms),)
