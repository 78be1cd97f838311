"""One decision on one group in the making: the new membership, and the answers to waiting members."""

from collections import Counter
from collections.abc import Set

from msgspec.structs import replace

from exacta.core.commands import ExpireMember, ExpireRebalance
from exacta.core.events import Event, GroupEmptied, GroupEpochsReserved, GroupSettled, MemberSeen, MembershipChanged
from exacta.core.groups.epochs import next_epoch, reserve
from exacta.core.ids import Ticket
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import Joined, Reply, Synced
from exacta.core.state.classic_membership import NOBODY, Member, Membership, settled
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase

Wake = tuple[Ticket, Reply | Rejection]


NOBODY_LEADS_MS = 1_000
"""The least time before the next look whether anybody has joined: a member's own time-out may be 0."""


class ClassicStep:
    """The membership as it was, changed by methods into what it will be."""

    def __init__(self, state: State, group_id: str, now_ms: int, *, downgraded: Membership | None = None) -> None:
        """Begin with the group as it is, or with what a group of the consumer protocol becomes."""
        self.state = state
        self.limits = state.limits
        self.group_id = group_id
        self.now_ms = now_ms
        self.downgraded = downgraded
        self.membership = self.before = (
            downgraded or state.volatile.memberships.get(group_id) or _nobody(state, group_id)
        )
        self.reserved = state.reserved_group_epoch
        self.wakes: list[Wake] = []
        self.timers: list[Timer] = []
        self.seen: list[Event] = []
        for member in downgraded.members.values() if downgraded is not None else ():
            self.keep_alive(member)

    def outcome(self, reply: Reply | Rejection | None) -> Outcome:
        """Return the outcome of the decision. Generations are reserved before a member learns of one."""
        events: list[Event] = []
        if self.reserved != self.state.reserved_group_epoch:
            events.append(GroupEpochsReserved(end_epoch=self.reserved))
        if self.downgraded is not None:
            events.append(GroupSettled(group_id=self.group_id, membership=settled(self.downgraded)))
        events += self._settled()
        events.append(MembershipChanged(group_id=self.group_id, membership=self.membership))
        if self.before.members and not self.membership.members:
            events.append(GroupEmptied(group_id=self.group_id, at_ms=self.now_ms))
        return Outcome(events=(*events, *self.seen), reply=reply, wakes=tuple(self.wakes), timers=tuple(self.timers))

    def _settled(self) -> tuple[Event, ...]:
        """Return the durable event if a rebalance has ended, or a static member has a successor without a rebalance."""
        now = self.membership
        if now.phase is self.before.phase and now.members.keys() == self.before.members.keys():
            return ()
        if now.phase is Phase.STABLE:
            return (GroupSettled(group_id=self.group_id, membership=settled(now)),)
        if now.phase is Phase.EMPTY and self.group_id in self.state.settled:
            return (GroupSettled(group_id=self.group_id, membership=None),)
        return ()

    def put(self, member: Member) -> None:
        """Add a member, or change it."""
        members = {**self.membership.members, member.member_id: member}
        static = self.membership.static
        if member.instance_id is not None and static.get(member.instance_id) != member.member_id:
            static = {**static, member.instance_id: member.member_id}
        self.membership = replace(self.membership, members=members, static=static)

    def remove(self, member_id: str, told: Rejection = Rejection.UNKNOWN_MEMBER_ID) -> None:
        """Take a member out; answer its waiting requests with the reason."""
        self.remove_all({member_id}, told)

    def remove_all(self, gone: Set[str], told: Rejection) -> None:
        """Take members out, at once; answer their waiting requests with the reason."""
        for member_id in gone:
            member = self.membership.members[member_id]
            tickets = (member.join_ticket, member.sync_ticket)
            self.wakes += [(ticket, told) for ticket in tickets if ticket is not None]
        members = {key: member for key, member in self.membership.members.items() if key not in gone}
        static = {key: named for key, named in self.membership.static.items() if named not in gone}
        self.membership = replace(self.membership, members=members, static=static)

    def forget_pending(self, member_id: str) -> None:
        """Forget an id that was given out (KIP-394), because it is used now or never will be."""
        self.membership = replace(self.membership, pending=self.membership.pending - {member_id})

    def keep_alive(self, member: Member, session_timeout_ms: int | None = None) -> None:
        """Begin or extend the member's session, and set the timer for its end."""
        deadline_ms = self.now_ms + (member.session_timeout_ms if session_timeout_ms is None else session_timeout_ms)
        self.seen.append(MemberSeen(group_id=self.group_id, member_id=member.member_id, deadline_ms=deadline_ms))
        self.timers.append(Timer(deadline_ms, ExpireMember(group_id=self.group_id, member_id=member.member_id)))

    def begin_rebalance(self, *, wait_ms: int | None = None) -> None:
        """Ask all members to join again; answer those that wait for an assignment."""
        if self.membership.phase is Phase.PREPARING_REBALANCE:
            return
        members = {}
        unassigned = self.membership.phase is Phase.COMPLETING_REBALANCE
        for key, member in self.membership.members.items():
            if member.sync_ticket is not None:
                self.wakes.append((member.sync_ticket, Rejection.REBALANCE_IN_PROGRESS))
            # The last assignment of a member is shown until there is a new one. The leader has not made one yet.
            assignment = b"" if unassigned else member.assignment
            members[key] = replace(member, sync_ticket=None, synced=False, assignment=assignment)
        self.membership = replace(self.membership, phase=Phase.PREPARING_REBALANCE, members=members)
        self.set_deadline(_rebalance_timeout_ms(self.membership) if wait_ms is None else wait_ms)

    def set_deadline(self, wait_ms: int) -> None:
        """Set the time at which the rebalance goes on without the members that are late."""
        deadline_ms = self.now_ms + wait_ms
        self.membership = replace(self.membership, deadline_ms=deadline_ms)
        self.timers.append(Timer(deadline_ms, ExpireRebalance(group_id=self.group_id)))

    def complete_if_all_joined(self) -> None:
        """Complete the rebalance if all have joined, but a group's first one not before its delay is over (KIP-134)."""
        if (
            self.membership.phase is Phase.PREPARING_REBALANCE
            and self.now_ms >= self.membership.not_before_ms
            and not self.membership.pending
            and all(member.join_ticket is not None for member in self.membership.members.values())
        ):
            self.complete_rebalance()

    def complete_rebalance(self) -> None:
        """Begin the next generation with the members that have joined, and with late static members (KIP-345)."""
        for member in list(self.membership.members.values()):
            if member.join_ticket is None and member.instance_id is None:
                self.remove(member.member_id)
        before = self.membership
        generation = next_epoch(self.state, before.generation)
        if not before.members:
            # The generation counts on, so that nobody of an earlier one is taken for a member. No member learns of it.
            self.membership = Membership(
                generation=generation, protocol_type=before.protocol_type, pending=before.pending
            )
            return
        joined = [key for key, member in before.members.items() if member.join_ticket is not None]
        if not joined:  # nobody is there to lead: wait until somebody joins, or their sessions end
            self.set_deadline(max(_rebalance_timeout_ms(before), NOBODY_LEADS_MS))
            return
        self.reserved = reserve(self.reserved, generation)
        leader = before.leader if before.leader in joined else joined[0]
        self.membership = replace(
            before,
            phase=Phase.COMPLETING_REBALANCE,
            generation=generation,
            leader=leader,
            protocol=choose_protocol(before.members),
            not_before_ms=0,
            subscribed=_subscribed(before.members),
        )
        members = {}
        for key, member in before.members.items():
            if member.join_ticket is not None:
                self.wakes.append((member.join_ticket, joined_reply(self.membership, key)))
                self.keep_alive(member)
            members[key] = replace(member, join_ticket=None, synced=False, new=False)
        self.membership = replace(self.membership, members=members)
        self.set_deadline(_rebalance_timeout_ms(self.membership))


def _nobody(state: State, group_id: str) -> Membership:
    """Return a group without members; where it was of the consumer protocol it counts on (decision 0012)."""
    consumers = state.volatile.consumer_groups.get(group_id)
    return NOBODY if consumers is None else replace(NOBODY, generation=consumers.epoch)


def check_member(membership: Membership, member_id: str, instance_id: str | None) -> Rejection | None:
    """Return the reason why this is no member, or None. A successor under its instance id fences it (KIP-345)."""
    if instance_id is not None:
        named = membership.static.get(instance_id)
        if named is None:
            return Rejection.UNKNOWN_MEMBER_ID
        if named != member_id:
            return Rejection.FENCED_INSTANCE_ID
    return None if member_id in membership.members else Rejection.UNKNOWN_MEMBER_ID


def check_generation(
    membership: Membership, member_id: str, instance_id: str | None, generation: int
) -> Rejection | None:
    """Return the reason why this is no member of the present generation, or None."""
    rejection = check_member(membership, member_id, instance_id)
    if rejection is None and generation != membership.generation:
        return Rejection.ILLEGAL_GENERATION
    return rejection


def _subscribed(members: dict[str, Member]) -> frozenset[str] | None:
    topics: frozenset[str] = frozenset()
    for member in members.values():
        if member.subscription is None:
            return None
        topics |= member.subscription
    return topics


def choose_protocol(members: dict[str, Member]) -> str:
    """Return the protocol that most members prefer among those that all members know."""
    common = set.intersection(*({name for name, _ in member.protocols} for member in members.values()))
    votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members.values())
    return votes.most_common(1)[0][0]


def joined_reply(membership: Membership, member_id: str, *, skip_assignment: bool = False) -> Joined:
    """Return the answer to a member's join; only the leader gets the metadata of all members."""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    if member_id == membership.leader:
        members = tuple(
            (key, member.instance_id, dict(member.protocols)[membership.protocol])
            for key, member in membership.members.items()
        )
    return Joined(
        generation=membership.generation,
        protocol_type=membership.protocol_type,
        protocol=membership.protocol,
        leader=membership.leader,
        member_id=member_id,
        members=members,
        skip_assignment=skip_assignment,
    )


def synced_reply(membership: Membership, assignment: bytes) -> Synced:
    """Return the answer to a member's sync."""
    return Synced(protocol_type=membership.protocol_type, protocol=membership.protocol, assignment=assignment)


def _rebalance_timeout_ms(membership: Membership) -> int:
    return max((member.rebalance_timeout_ms for member in membership.members.values()), default=0)
