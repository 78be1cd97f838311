"""Group membership by the classic protocol: join, sync, heartbeat, leave, generations.

    phase \\ input   join (new or changed)   sync by leader   sync by follower   heartbeat             leave, expiry
    EMPTY           begin a rebalance       unknown member   unknown member     unknown member        unknown member
    PREPARING       take part               rebalancing      rebalancing        rebalancing           go on without
    COMPLETING      begin a rebalance       -> STABLE        wait               ok                    begin a rebalance
    STABLE          begin a rebalance       assignment       assignment         ok                    begin a rebalance

A rebalance completes when every member has joined, or its deadline has come (those that have not joined are out).
Then the generation counts up, and everybody who waits is told. In COMPLETING the leader owes the assignments; a
deadline runs for that too. A member that joins again with nothing changed in COMPLETING or STABLE is told the present
generation (its answer was lost); a leader that joins again in STABLE wants a new assignment.

Membership is volatile (DESIGN D4): each step makes a new frozen `Membership` and emits it as a volatile event. Owns no
offsets; `check_committer` is what offsets need to know of members (KIP-447).
"""

from collections import Counter

from msgspec.structs import replace

from exacta.core.commands import ExpireMember, ExpireRebalance, Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from exacta.core.events import Event, MemberSeen, MembershipChanged
from exacta.core.ids import NO_GENERATION, Ticket
from exacta.core.membership import NOBODY, Member, Membership, Phase
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Joined, MemberIdRequired, Reply, Synced
from exacta.core.state import State

Wake = tuple[Ticket, Reply | Rejection]


class _Step:
    """One decision on one group in the making: the new membership, and who is woken with what."""

    def __init__(self, state: State, group_id: str, now_ms: int) -> None:
        self.limits = state.limits
        self.group_id = group_id
        self.now_ms = now_ms
        self.membership = state.volatile.memberships.get(group_id, NOBODY)
        self.wakes: list[Wake] = []
        self.timers: list[Timer] = []
        self.seen: list[Event] = []

    def outcome(self, reply: Reply | Rejection | None) -> Outcome:
        changed = MembershipChanged(group_id=self.group_id, membership=self.membership)
        return Outcome(events=(changed, *self.seen), reply=reply, wakes=tuple(self.wakes), timers=tuple(self.timers))

    def put(self, member: Member) -> None:
        members = {**self.membership.members, member.member_id: member}
        self.membership = replace(self.membership, members=members)

    def keep_alive(self, member: Member) -> None:
        """Begin or extend the member's session, and set the timer that looks whether it has ended."""
        deadline_ms = self.now_ms + member.session_timeout_ms
        self.seen.append(MemberSeen(group_id=self.group_id, member_id=member.member_id, deadline_ms=deadline_ms))
        self.timers.append(Timer(deadline_ms, ExpireMember(group_id=self.group_id, member_id=member.member_id)))

    def remove(self, member_id: str) -> None:
        gone = self.membership.members[member_id]
        for ticket in (gone.join_ticket, gone.sync_ticket):
            if ticket is not None:
                self.wakes.append((ticket, Rejection.UNKNOWN_MEMBER_ID))
        members = {key: member for key, member in self.membership.members.items() if key != member_id}
        self.membership = replace(self.membership, members=members)

    def begin_rebalance(self, *, wait_ms: int | None = None) -> None:
        """Ask everybody to join again; those who wait for an assignment are told so."""
        if self.membership.phase is Phase.PREPARING_REBALANCE:
            return
        members = {}
        for key, member in self.membership.members.items():
            if member.sync_ticket is not None:
                self.wakes.append((member.sync_ticket, Rejection.REBALANCE_IN_PROGRESS))
            members[key] = replace(member, sync_ticket=None, synced=False)
        self.membership = replace(self.membership, phase=Phase.PREPARING_REBALANCE, members=members)
        if wait_ms is None:
            wait_ms = max((member.rebalance_timeout_ms for member in members.values()), default=0)
        self._set_deadline(wait_ms)

    def _set_deadline(self, wait_ms: int) -> None:
        deadline_ms = self.now_ms + wait_ms
        self.membership = replace(self.membership, deadline_ms=deadline_ms)
        self.timers.append(Timer(deadline_ms, ExpireRebalance(group_id=self.group_id)))

    def complete_if_all_joined(self) -> None:
        """Complete it, but for a group's first rebalance before its delay is over (KIP-134)."""
        if (
            self.membership.phase is Phase.PREPARING_REBALANCE
            and self.now_ms >= self.membership.not_before_ms
            and all(member.join_ticket is not None for member in self.membership.members.values())
        ):
            self.complete_rebalance()

    def complete_rebalance(self) -> None:
        """Begin the next generation with those who have joined."""
        for member in list(self.membership.members.values()):
            if member.join_ticket is None:
                self.remove(member.member_id)
        before = self.membership
        generation = before.generation + 1
        if not before.members:
            # The generation counts on, so that nobody of an earlier one is taken for a member.
            self.membership = Membership(generation=generation, pending=before.pending)
            return
        leader = before.leader if before.leader in before.members else next(iter(before.members))
        self.membership = replace(
            before,
            phase=Phase.COMPLETING_REBALANCE,
            generation=generation,
            leader=leader,
            protocol=_choose_protocol(before.members),
        )
        members = {}
        for key, member in before.members.items():
            assert member.join_ticket is not None
            self.wakes.append((member.join_ticket, _joined(self.membership, key)))
            members[key] = replace(member, join_ticket=None, assignment=b"")
            self.keep_alive(member)
        self.membership = replace(self.membership, members=members)
        self._set_deadline(max(member.rebalance_timeout_ms for member in members.values()))


def _choose_protocol(members: dict[str, Member]) -> str:
    """Return the protocol most members like best among those that all know."""
    common = set.intersection(*({name for name, _ in member.protocols} for member in members.values()))
    votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members.values())
    return votes.most_common(1)[0][0]


def _joined(membership: Membership, member_id: str) -> Joined:
    """Return the answer to a member's join; only the leader is told everybody's metadata."""
    members: tuple[tuple[str, bytes], ...] = ()
    if member_id == membership.leader:
        members = tuple(
            (key, dict(member.protocols)[membership.protocol]) for key, member in membership.members.items()
        )
    return Joined(
        generation=membership.generation,
        protocol_type=membership.protocol_type,
        protocol=membership.protocol,
        leader=membership.leader,
        member_id=member_id,
        members=members,
    )


def _synced(membership: Membership, assignment: bytes) -> Synced:
    return Synced(protocol_type=membership.protocol_type, protocol=membership.protocol, assignment=assignment)


def join(state: State, command: JoinGroup, now_ms: int) -> Outcome:
    """Join or rejoin."""
    step = _Step(state, command.group_id, now_ms)
    membership = step.membership
    known = membership.members.get(command.member_id)
    rejection = _check_join(step, command)
    if rejection is not None:
        return Outcome(reply=rejection)
    if not command.member_id and command.knows_member_id_required:
        step.membership = replace(membership, pending=membership.pending | {command.new_member_id})
        expire = ExpireMember(group_id=command.group_id, member_id=command.new_member_id)
        step.timers.append(Timer(now_ms + command.session_timeout_ms, expire))
        return step.outcome(MemberIdRequired(member_id=command.new_member_id))

    member_id = command.member_id or command.new_member_id
    if known is not None and membership.phase is not Phase.PREPARING_REBALANCE:
        unchanged = known.protocols == command.protocols
        leader_asks = membership.phase is Phase.STABLE and member_id == membership.leader
        if unchanged and not leader_asks:
            step.keep_alive(known)
            return step.outcome(_joined(membership, member_id))
    if known is not None and known.join_ticket is not None:
        step.wakes.append((known.join_ticket, Rejection.REBALANCE_IN_PROGRESS))
    delay_ms: int | None = None
    if membership.phase is Phase.EMPTY:
        delay_ms = step.limits.group_initial_rebalance_delay_ms
        step.membership = replace(
            membership,
            protocol_type=command.protocol_type,
            protocol="",
            leader=member_id,
            members={},
            not_before_ms=now_ms + delay_ms,
        )
    step.membership = replace(step.membership, pending=step.membership.pending - {member_id})
    step.put(
        Member(
            member_id=member_id,
            client_id=command.client_id,
            client_host=command.client_host,
            session_timeout_ms=command.session_timeout_ms,
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            protocols=command.protocols,
            subscription=command.subscription,
            sync_ticket=known.sync_ticket if known is not None else None,
        )
    )
    step.begin_rebalance(wait_ms=delay_ms)
    step.put(replace(step.membership.members[member_id], join_ticket=command.ticket))
    step.complete_if_all_joined()
    return step.outcome(None)


def _check_join(step: _Step, command: JoinGroup) -> Rejection | None:
    limits, membership = step.limits, step.membership
    if not command.group_id:
        return Rejection.INVALID_GROUP_ID
    if not limits.group_min_session_timeout_ms <= command.session_timeout_ms <= limits.group_max_session_timeout_ms:
        return Rejection.INVALID_SESSION_TIMEOUT
    if (
        command.member_id
        and command.member_id not in membership.members
        and command.member_id not in membership.pending
    ):
        return Rejection.UNKNOWN_MEMBER_ID
    if not command.protocol_type or not command.protocols:
        return Rejection.INCONSISTENT_GROUP_PROTOCOL
    others = [member for key, member in membership.members.items() if key != command.member_id]
    if others:
        offered = {name for name, _ in command.protocols}
        for member in others:
            offered &= {name for name, _ in member.protocols}
        if not offered or command.protocol_type != membership.protocol_type:
            return Rejection.INCONSISTENT_GROUP_PROTOCOL
    if command.member_id not in membership.members and len(membership.members) >= limits.group_max_size:
        return Rejection.GROUP_MAX_SIZE_REACHED
    return None


def _check_member(membership: Membership, member_id: str, generation: int) -> Rejection | None:
    if member_id not in membership.members:
        return Rejection.UNKNOWN_MEMBER_ID
    if generation != membership.generation:
        return Rejection.ILLEGAL_GENERATION
    return None


def sync(state: State, command: SyncGroup, now_ms: int) -> Outcome:
    """Fetch the assignment, or bring everybody's."""
    step = _Step(state, command.group_id, now_ms)
    rejection = _check_member(step.membership, command.member_id, command.generation)
    if rejection is None and step.membership.phase is Phase.PREPARING_REBALANCE:
        rejection = Rejection.REBALANCE_IN_PROGRESS
    if rejection is not None:
        return Outcome(reply=rejection)
    member = step.membership.members[command.member_id]
    if step.membership.phase is Phase.STABLE:
        return Outcome(
            events=session_extended(state, command.group_id, command.member_id, now_ms),
            reply=_synced(step.membership, member.assignment),
        )
    step.keep_alive(member)
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
            step.wakes.append((other.sync_ticket, _synced(step.membership, assignment)))
            step.keep_alive(other)
        members[key] = replace(other, assignment=assignment, sync_ticket=None, synced=other.synced or other is member)
    step.membership = replace(step.membership, phase=Phase.STABLE, members=members)
    return step.outcome(_synced(step.membership, assignments.get(command.member_id, b"")))


def heartbeat(state: State, command: Heartbeat, now_ms: int) -> Outcome:
    """Extend the member's session; tell it of a rebalance."""
    membership = state.volatile.memberships.get(command.group_id, NOBODY)
    rejection = _check_member(membership, command.member_id, command.generation)
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


def leave(state: State, command: LeaveGroup, now_ms: int) -> Outcome:
    """Leave now; the others rebalance."""
    step = _Step(state, command.group_id, now_ms)
    if command.member_id in step.membership.pending:
        step.membership = replace(step.membership, pending=step.membership.pending - {command.member_id})
        return step.outcome(DONE)
    if command.member_id not in step.membership.members:
        return Outcome(reply=Rejection.UNKNOWN_MEMBER_ID)
    _go_on_without(step, command.member_id)
    return step.outcome(DONE)


def _go_on_without(step: _Step, member_id: str) -> None:
    step.remove(member_id)
    step.begin_rebalance()
    step.complete_if_all_joined()


def expire_member(state: State, command: ExpireMember, now_ms: int) -> Outcome:
    """Remove a member whose session has ended, unless it is waiting for us."""
    step = _Step(state, command.group_id, now_ms)
    if command.member_id in step.membership.pending:
        step.membership = replace(step.membership, pending=step.membership.pending - {command.member_id})
        return step.outcome(DONE)
    member = step.membership.members.get(command.member_id)
    if member is None:
        return Outcome(reply=DONE)
    deadline_ms = state.volatile.member_deadlines_ms.get((command.group_id, command.member_id), now_ms)
    if member.join_ticket is not None or member.sync_ticket is not None:
        deadline_ms = now_ms + member.session_timeout_ms
    if now_ms < deadline_ms:
        return Outcome(reply=DONE, timers=(Timer(deadline_ms, command),))
    _go_on_without(step, command.member_id)
    return step.outcome(DONE)


def expire_rebalance(state: State, command: ExpireRebalance, now_ms: int) -> Outcome:
    """Go on without those that did not join, or sync, in time."""
    step = _Step(state, command.group_id, now_ms)
    if step.membership.phase in (Phase.EMPTY, Phase.STABLE):
        return Outcome(reply=DONE)
    if now_ms < step.membership.deadline_ms:
        return Outcome(reply=DONE, timers=(Timer(step.membership.deadline_ms, command),))
    if step.membership.phase is Phase.PREPARING_REBALANCE:
        step.complete_rebalance()
    else:
        for member_id in [key for key, member in step.membership.members.items() if not member.synced]:
            step.remove(member_id)
        step.begin_rebalance()
        step.complete_if_all_joined()
    return step.outcome(DONE)


def check_committer(
    state: State, group_id: str, member_id: str, generation: int, *, transactional: bool
) -> Rejection | None:
    """Return why this caller may not commit offsets to the group, or None.

    Who names a member or a generation must be current (KIP-447, invariant 6). Who names none is no member: such a
    commit is taken while the group has no members, or where it is transactional (old request versions can name none).
    """
    membership = state.volatile.memberships.get(group_id, NOBODY)
    if generation == NO_GENERATION and not member_id:
        if transactional or membership.phase is Phase.EMPTY:
            return None
        return Rejection.UNKNOWN_MEMBER_ID
    if generation >= 0 and not state.has_group(group_id):
        return Rejection.ILLEGAL_GENERATION  # there is no group that could have had it
    rejection = _check_member(membership, member_id, generation)
    if rejection is None and not transactional and membership.phase is Phase.COMPLETING_REBALANCE:
        return Rejection.REBALANCE_IN_PROGRESS
    return rejection
