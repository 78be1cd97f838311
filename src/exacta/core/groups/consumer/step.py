"""One decision on one group in the making: its next epoch, its target, and the events that say so."""

from collections.abc import Iterable

from msgspec.structs import replace

from exacta.core.commands import ExpireConsumer, ExpireRevocation
from exacta.core.events import ConsumerGroupChanged, Event, GroupEmptied, GroupEpochsReserved, MemberDue, MemberSeen
from exacta.core.groups.consumer.assignors import ASSIGNORS, Subscriber
from exacta.core.groups.consumer.reconciliation import Owned, reconcile
from exacta.core.groups.consumer.subscriptions import resolve, topics_version
from exacta.core.groups.consumer_updates import update
from exacta.core.groups.epochs import next_epoch, reserve
from exacta.core.ids import Ticket
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import Reply
from exacta.core.state.classic_membership import NOBODY, Member
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember, MemberPhase
from exacta.core.state.state import State
from exacta.core.values.consumer_groups import JOINING_EPOCH, TopicPartition

Wake = tuple[Ticket, Reply | Rejection]


class ConsumerStep:
    """The group as it was, changed by methods into what it will be."""

    def __init__(self, state: State, group_id: str, now_ms: int, *, upgraded: ConsumerGroup | None = None) -> None:
        """Begin with the group as it is, or with what a group of the classic protocol becomes."""
        self.state = state
        self.limits = state.limits
        self.group_id = group_id
        self.now_ms = now_ms
        classic = state.volatile.memberships.get(group_id, NOBODY)
        first = max(state.volatile.first_group_epoch, classic.generation)  # a group counts on (decision 0012)
        present = upgraded or state.volatile.consumer_groups.get(group_id)
        self.group = present or ConsumerGroup(epoch=first, target_epoch=first)
        self.is_new = group_id not in state.volatile.consumer_groups
        self.before = self.group
        self.reserved = state.reserved_group_epoch
        self.wakes: list[Wake] = []
        self.timers: list[Timer] = []
        self.events: list[MemberSeen | MemberDue] = []
        if upgraded is not None:
            self._take_over(classic.members.values())

    def _take_over(self, members: Iterable[Member]) -> None:
        """Answer the members of a classic group that wait, so that they join again; their sessions begin again."""
        for member in members:
            for ticket in (member.join_ticket, member.sync_ticket):
                if ticket is not None:
                    self.wakes.append((ticket, Rejection.REBALANCE_IN_PROGRESS))
            self.keep_alive(member.member_id, joins=True)

    def outcome(self, reply: Reply | Rejection) -> Outcome:
        """Return the outcome of the decision. Epochs are reserved before a member learns of one."""
        events: list[Event] = []
        if self.reserved != self.state.reserved_group_epoch:
            events.append(GroupEpochsReserved(end_epoch=self.reserved))
        if self.group is not self.before:
            held = self.state.settled_consumers.get(self.group_id)
            looked = ConsumerGroupChanged(group_id=self.group_id, group=self.group)
            events.append(update(self.group_id, held, self.group) or looked)
        if self.before.members and not self.group.members:
            events.append(GroupEmptied(group_id=self.group_id, at_ms=self.now_ms))
        heard = (each for each in self.events if each.member_id in self.group.members)  # not of whom it has replaced
        return Outcome(events=(*events, *heard), reply=reply, wakes=tuple(self.wakes), timers=tuple(self.timers))

    def bump(self) -> None:
        """Begin the group's next epoch, which no group has ever had before a restart or a deletion."""
        epoch = next_epoch(self.state, self.group.epoch)
        self.reserved = reserve(self.reserved, epoch)
        self.group = replace(self.group, epoch=epoch)

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or change it."""
        static = self.group.static
        before = self.group.members.get(member.member_id)
        if before is not None and before.instance_id not in (None, member.instance_id):
            static = {key: named for key, named in static.items() if key != before.instance_id}
        if member.instance_id is not None and static.get(member.instance_id) != member.member_id:
            static = {**static, member.instance_id: member.member_id}
        self.group = replace(self.group, members={**self.group.members, member.member_id: member}, static=static)

    def remove(self, member_ids: Iterable[str]) -> None:
        """Take members out; their partitions are free at once, and there will be another target."""
        gone = set(member_ids)
        self.group = replace(
            self.group,
            members={key: member for key, member in self.group.members.items() if key not in gone},
            static={key: named for key, named in self.group.static.items() if named not in gone},
            target={key: partitions for key, partitions in self.group.target.items() if key not in gone},
        )
        self.bump()
        if not self.group.members:
            self.group = replace(self.group, target_epoch=self.group.epoch)  # nobody is left to make one for

    def succeed(self, predecessor: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give another member id what a static member left behind; return that member, about to join.

        If the id is a member already, that membership ends: a member cannot have two parts, so its own goes to others.
        """
        if member_id in self.group.members and member_id != predecessor.member_id:
            self.remove([member_id])
        self.group = replace(
            self.group,
            members={key: each for key, each in self.group.members.items() if key != predecessor.member_id},
            target={(member_id if key == predecessor.member_id else key): t for key, t in self.group.target.items()},
        )
        successor = replace(predecessor, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
        self.put(successor)
        return successor

    def keep_alive(self, member_id: str, *, joins: bool) -> None:
        """Begin or extend the member's session; its timer, when due, sees the later deadline."""
        deadline_ms = self.now_ms + session_timeout_ms(self.state, self.group.members[member_id])
        self.events.append(MemberSeen(group_id=self.group_id, member_id=member_id, deadline_ms=deadline_ms))
        if joins:
            expire = ExpireConsumer(group_id=self.group_id, member_id=member_id)
            self.timers.append(Timer(deadline_ms, expire))

    def must_come_by(self, member_id: str, due_ms: int) -> None:
        """Let a member that speaks the classic protocol be out then, unless it has joined or synced by that time."""
        self.events.append(MemberDue(group_id=self.group_id, member_id=member_id, due_ms=due_ms))
        self.timers.append(Timer(due_ms, ExpireRevocation(group_id=self.group_id, member_id=member_id)))

    def look_at_topics(self, *, resubscribed: bool, hidden: frozenset[str] | None) -> None:
        """Begin the next epoch if the members' subscriptions, or the topics that they name, have changed.

        Another assignor begins one too, once most members ask for it. Where it is not known what is hidden (None),
        patterns stay as they were matched last.
        """
        version = topics_version(self.state)
        changed = False
        if resubscribed or version != self.group.topics_version:
            known = self.group.matched if hidden is None else None
            topics, matched = resolve(self.state, self.group.members.values(), hidden or frozenset(), known)
            if known and matched:
                version = self.group.topics_version  # the next heartbeat looks for what patterns match
            changed = topics != self.group.topics or matched != self.group.matched
            self.group = replace(self.group, topics=topics, matched=matched, topics_version=version)
        offered = self.limits.group_consumer_assignors
        reassigned = self.group.members is not self.before.members and (
            preferred_assignor(self.group, offered) != preferred_assignor(self.before, offered)
        )
        if changed or resubscribed or reassigned or self.is_new:
            self.bump()

    def make_target(self) -> None:
        """Make a new target if something has changed since the last one."""
        group = self.group
        if group.epoch <= group.target_epoch:
            return
        subscribers = {
            key: Subscriber(
                topics=frozenset(group.topics[name].topic_id for name in group.subscribed(member)),
                owned=group.target.get(key, frozenset()),
                instance_id=member.instance_id,
            )
            for key, member in group.members.items()
        }
        counts = {topic.topic_id: topic.partition_count for _, topic in sorted(group.topics.items())}
        assignor = preferred_assignor(group, self.limits.group_consumer_assignors)
        target = ASSIGNORS[assignor](subscribers, counts)
        self.group = replace(group, target=target, target_epoch=group.epoch, assignor=assignor)

    def lead(self, member: ConsumerMember, owned: Owned, *, resubscribed: bool) -> ConsumerMember:
        """Lead the member towards its target, as far as it can go now."""
        group = self.group
        if group.is_reconciled(member) and not resubscribed:
            return member
        held: set[TopicPartition] | None = None

        def is_held(partition: TopicPartition) -> bool:
            nonlocal held
            if held is None:  # asked for the first time: most heartbeats have no partition to ask about
                others = (other.held for key, other in group.members.items() if key != member.member_id)
                held = member.held.union(*others)
            return partition in held

        led = reconcile(
            member,
            target=group.target.get(member.member_id, frozenset()),
            target_epoch=group.target_epoch,
            subscribed={group.topics[name].topic_id for name in group.subscribed(member)},
            owned=owned,
            is_held=is_held,
            resubscribed=resubscribed,
        )
        if led is member:
            return member
        if led.phase is MemberPhase.UNREVOKED and led.classic is None:
            revoke_by_ms = self.now_ms + led.rebalance_timeout_ms
            led = replace(led, revoke_by_ms=revoke_by_ms)
            expire = ExpireRevocation(group_id=self.group_id, member_id=member.member_id)
            self.timers.append(Timer(revoke_by_ms, expire))
        self.put(led)
        return led


def session_timeout_ms(state: State, member: ConsumerMember) -> int:
    """Return the session time-out of a member: one that speaks the classic protocol has said its own."""
    terms = member.classic
    return state.limits.group_consumer_session_timeout_ms if terms is None else terms.session_timeout_ms


def preferred_assignor(group: ConsumerGroup, offered: tuple[str, ...]) -> str:
    """Return the assignor that most members ask for. Members that ask for none leave it to the broker's first."""
    votes = [member.assignor for member in group.members.values() if member.assignor in offered]
    return max(offered, key=votes.count)
