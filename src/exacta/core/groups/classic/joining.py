"""JoinGroup: new members, members that join again, and successors of static members."""

from msgspec.structs import replace

from exacta.core.commands import ExpireMember, JoinGroup
from exacta.core.groups.classic.step import ClassicStep, check_member, choose_protocol, joined_reply
from exacta.core.groups.consumer import classic_members
from exacta.core.groups.migration import downgraded, is_classic_without, supports
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import MemberIdRequired
from exacta.core.state.classic_membership import Member
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The time that a new member's first JoinGroup may wait, whatever its session. The member cannot send heartbeats until
it is answered, and its client may be gone. It is a constant in Apache Kafka too."""


def join(state: State, command: JoinGroup, now_ms: int) -> Outcome:
    """Join or rejoin."""
    step = ClassicStep(state, command.group_id, now_ms)
    if (rejection := _check_request(step, command)) is not None:
        return Outcome(reply=rejection)
    if state.has_consumers(command.group_id):
        classic = _by_replacing_the_last_consumer(state, command, now_ms)
        if classic is None:
            return classic_members.join(state, command, now_ms)
        step = classic
    if command.member_id and not state.has_group(command.group_id):
        return Outcome(reply=Rejection.UNKNOWN_MEMBER_ID)
    if not state.has_room_for_group(command.group_id):
        return Outcome(reply=Rejection.LIMIT_REACHED)
    if not _has_room(step, command.member_id):
        if command.member_id in step.membership.members:
            step.remove(command.member_id)
            step.complete_if_all_joined()
            return step.outcome(Rejection.GROUP_MAX_SIZE_REACHED)
        return Outcome(reply=Rejection.GROUP_MAX_SIZE_REACHED)
    if not _is_consistent(step, command):
        return Outcome(reply=Rejection.INCONSISTENT_GROUP_PROTOCOL)
    if not command.member_id:
        return _join_new(step, command)
    if command.instance_id is None and command.member_id in step.membership.pending:
        return _add(step, command, command.member_id)
    rejection = check_member(step.membership, command.member_id, command.instance_id)
    if rejection is not None:
        return Outcome(reply=rejection)
    return _join_again(step, command)


def _by_replacing_the_last_consumer(state: State, command: JoinGroup, now_ms: int) -> ClassicStep | None:
    """Return the classic group that a group becomes as its last member of the consumer protocol comes back without it.

    Only a static member can, under its instance id; its predecessor is still in the group. If all had what they shall
    have, and the member reads what it has read, nobody needs to rebalance.
    """
    group = state.volatile.consumer_groups[command.group_id]
    named = None if command.member_id or command.instance_id is None else group.static.get(command.instance_id)
    if named is None or not is_classic_without(state, group, {named}):
        return None
    if command.subscription is None or not supports(group, command.protocol_type, command.protocols):
        return None
    membership = downgraded(state, group, replaced={named: command.protocols})
    step = ClassicStep(state, command.group_id, now_ms, downgraded=membership)
    has_all = all(group.target.get(key) == member.assigned.keys() for key, member in group.members.items())
    if not has_all or group.epoch > group.target_epoch or command.subscription != group.members[named].topics:
        step.begin_rebalance()
    return step


def _check_request(step: ClassicStep, command: JoinGroup) -> Rejection | None:
    limits = step.limits
    if not command.group_id:
        return Rejection.INVALID_GROUP_ID
    if not limits.group_min_session_timeout_ms <= command.session_timeout_ms <= limits.group_max_session_timeout_ms:
        return Rejection.INVALID_SESSION_TIMEOUT
    size = sum(len(name) + len(metadata) for name, metadata in command.protocols)
    is_too_much = size > limits.member_metadata_max_bytes or len(command.protocols) > limits.max_protocols_per_member
    return Rejection.LIMIT_REACHED if is_too_much else None


def _has_room(step: ClassicStep, member_id: str) -> bool:
    """Return whether one more may join. In a rebalance the first are in: a former member may find the group full."""
    members, limit = step.membership.members, step.limits.group_max_size
    match step.membership.phase:
        case Phase.EMPTY:
            return True
        case Phase.PREPARING_REBALANCE:
            waiting = {key for key, member in members.items() if member.join_ticket is not None}
            return member_id in waiting or len(waiting) < limit
        case _:
            return member_id in members or len(members) < limit


def _is_consistent(step: ClassicStep, command: JoinGroup) -> bool:
    """Return whether there will be a protocol that all know, counting what the member has offered until now."""
    if not command.protocol_type or not command.protocols:
        return False
    if step.membership.phase is Phase.EMPTY:
        return True
    offered = {name for name, _ in command.protocols}
    for member in step.membership.members.values():
        offered &= {name for name, _ in member.protocols}
    return bool(offered) and command.protocol_type == step.membership.protocol_type


def _join_new(step: ClassicStep, command: JoinGroup) -> Outcome:
    if command.instance_id is not None:
        if (predecessor_id := step.membership.static.get(command.instance_id)) is not None:
            return _succeed(step, command, predecessor_id)
    elif command.knows_member_id_required:
        if len(step.membership.pending) >= step.limits.max_pending_members:
            return Outcome(reply=Rejection.GROUP_MAX_SIZE_REACHED)
        pending = step.membership.pending | {command.new_member_id}
        step.membership = replace(step.membership, pending=pending)
        expire = ExpireMember(group_id=command.group_id, member_id=command.new_member_id)
        step.timers.append(Timer(step.now_ms + command.session_timeout_ms, expire))
        return step.outcome(MemberIdRequired(member_id=command.new_member_id))
    return _add(step, command, command.new_member_id)


def _add(step: ClassicStep, command: JoinGroup, member_id: str) -> Outcome:
    first_rebalance = step.membership.phase is Phase.EMPTY
    delay_ms: int | None = None
    if first_rebalance:
        delay_ms = step.limits.group_initial_rebalance_delay_ms
        step.membership = replace(
            step.membership,
            protocol_type=command.protocol_type,
            protocol="",
            leader=member_id,
            not_before_ms=step.now_ms + delay_ms,
            first_rebalance_until_ms=step.now_ms + max(command.rebalance_timeout_ms, delay_ms),
            grew=False,
        )
    elif step.membership.phase is Phase.PREPARING_REBALANCE and step.now_ms < step.membership.not_before_ms:
        step.membership = replace(step.membership, grew=True)
    step.forget_pending(member_id)
    member = _member(command, member_id)
    step.put(member)
    step.begin_rebalance(wait_ms=delay_ms)
    step.put(replace(member, join_ticket=command.ticket, new=True))
    step.keep_alive(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    step.complete_if_all_joined()
    return step.outcome(None)


def _member(command: JoinGroup, member_id: str) -> Member:
    return Member(
        member_id=member_id,
        client_id=command.client_id,
        client_host=command.client_host,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        protocols=command.protocols,
        instance_id=command.instance_id,
        subscription=command.subscription,
        principal=command.principal,
    )


def _join_again(step: ClassicStep, command: JoinGroup) -> Outcome:
    known = step.membership.members[command.member_id]
    if step.membership.phase is not Phase.PREPARING_REBALANCE:
        leader_asks = step.membership.phase is Phase.STABLE and command.member_id == step.membership.leader
        if known.protocols == command.protocols and not leader_asks:
            step.keep_alive(known)
            return step.outcome(joined_reply(step.membership, command.member_id))
    if known.join_ticket is not None:
        step.wakes.append((known.join_ticket, Rejection.REBALANCE_IN_PROGRESS))
    _take_part(step, command, known)
    return step.outcome(None)


def _take_part(step: ClassicStep, command: JoinGroup, known: Member) -> None:
    """Let a present member wait for the next generation, with what it says now."""
    changed = replace(
        _member(command, known.member_id),
        instance_id=known.instance_id,  # also where it is not named again
        assignment=known.assignment,
        sync_ticket=known.sync_ticket,
        synced=known.synced,
        new=known.new,
    )
    step.put(changed)
    step.begin_rebalance()
    step.put(replace(step.membership.members[known.member_id], join_ticket=command.ticket))
    step.complete_if_all_joined()


def _succeed(step: ClassicStep, command: JoinGroup, predecessor_id: str) -> Outcome:
    """Take the place of the static member that had this instance id."""
    before = step.membership
    predecessor = before.members[predecessor_id]
    step.remove(predecessor_id, Rejection.FENCED_INSTANCE_ID)
    successor = replace(
        _member(command, command.new_member_id), assignment=predecessor.assignment, synced=predecessor.synced
    )
    step.put(successor)
    leader = successor.member_id if before.leader == predecessor_id else before.leader
    step.membership = replace(step.membership, leader=leader)
    step.keep_alive(successor)
    if before.phase is Phase.STABLE and choose_protocol(step.membership.members) == before.protocol:
        if command.knows_skip_assignment:
            # KIP-814: the leader learns the members of the group, and that they have their assignments.
            skip = leader == successor.member_id
            return step.outcome(joined_reply(step.membership, successor.member_id, skip_assignment=skip))
        # An older client that is told to lead would assign. So its predecessor is named as the leader.
        return step.outcome(
            replace(joined_reply(step.membership, successor.member_id), leader=before.leader, members=())
        )
    _take_part(step, command, successor)
    return step.outcome(None)
