"""Members that speak the classic protocol in a group of the consumer protocol: join, sync, heartbeat (KIP-848).

The answer to a join comes at once, since nobody waits for others here. It names no leader: the broker assigns.
"""

from msgspec.structs import replace

from exacta.core.commands import ExpireRevocation, Heartbeat, JoinGroup, SyncGroup
from exacta.core.events import Event, MemberDue, MemberSeen
from exacta.core.groups.consumer.step import ConsumerStep, session_timeout_ms
from exacta.core.groups.consumer_words import (
    ConsumerProtocolSubscription,
    read_subscription,
    version_of,
    write_assignment,
)
from exacta.core.groups.migration import supports, topic_partitions
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Joined, MemberIdRequired, Synced
from exacta.core.state.classic_membership import CONSUMERS
from exacta.core.state.consumer_membership import ClassicTerms, ConsumerGroup, ConsumerMember, MemberPhase
from exacta.core.state.state import State


def join(state: State, command: JoinGroup, now_ms: int) -> Outcome:
    """Join the group, or join it again and report what is owned."""
    step = ConsumerStep(state, command.group_id, now_ms)
    members = step.group.members
    if command.member_id not in members and len(members) >= step.limits.group_consumer_max_size:
        return Outcome(reply=Rejection.GROUP_MAX_SIZE_REACHED)
    said = read_subscription(command.protocols[0][1]) if command.protocols else None
    if said is None or not supports(step.group, command.protocol_type, command.protocols):
        return Outcome(reply=Rejection.INCONSISTENT_GROUP_PROTOCOL)
    if not command.member_id and command.instance_id is None and command.knows_member_id_required:
        return Outcome(reply=MemberIdRequired(member_id=command.new_member_id))
    known = _find(step, command)
    if isinstance(known, Rejection):
        return Outcome(reply=known)
    member = _described(known, command, said)
    step.put(member)
    resubscribed = (member.topics, member.pattern) != (known.topics, known.pattern)
    step.look_at_topics(resubscribed=resubscribed, hidden=None)
    step.make_target()
    member = step.lead(member, topic_partitions(state, said.owned), resubscribed=resubscribed)
    step.keep_alive(member.member_id, joins=True)
    step.must_come_by(member.member_id, now_ms + member.rebalance_timeout_ms)
    return step.outcome(
        Joined(
            generation=member.epoch,
            protocol_type=CONSUMERS,
            protocol=command.protocols[0][0],
            leader="",
            member_id=member.member_id,
        )
    )


def _find(step: ConsumerStep, command: JoinGroup) -> ConsumerMember | Rejection:
    """Return the member as it was before it joined: a new one, a present one, or a successor."""
    member_id = command.member_id or command.new_member_id
    if command.instance_id is None:
        return step.group.members.get(member_id) or ConsumerMember(member_id=member_id)
    named = step.group.static.get(command.instance_id)
    if command.member_id:
        if named is None:
            return Rejection.UNKNOWN_MEMBER_ID
        return step.group.members[named] if named == command.member_id else Rejection.FENCED_INSTANCE_ID
    if named is None:
        return ConsumerMember(member_id=member_id)
    return step.succeed(step.group.members[named], member_id)


def _described(known: ConsumerMember, command: JoinGroup, said: ConsumerProtocolSubscription) -> ConsumerMember:
    return replace(
        known,
        instance_id=known.instance_id if command.instance_id is None else command.instance_id,
        rack_id=known.rack_id if said.rack_id is None else said.rack_id,
        client_id=command.client_id,
        client_host=command.client_host,
        principal=command.principal,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        topics=said.topics,
        pattern="",
        classic=ClassicTerms(session_timeout_ms=command.session_timeout_ms, protocols=command.protocols),
    )


def sync(state: State, command: SyncGroup, now_ms: int) -> Outcome:
    """Tell a member what it owns. What a leader of before assigns is passed over."""
    group = state.volatile.consumer_groups[command.group_id]
    member = _check(group, command)
    if isinstance(member, Rejection):
        return Outcome(reply=member)
    assert member.classic is not None  # it has been checked
    protocol, words = member.classic.protocols[0]
    if command.protocol_type not in (None, CONSUMERS) or command.protocol not in (None, protocol):
        return Outcome(reply=Rejection.INCONSISTENT_GROUP_PROTOCOL)
    if member.epoch < group.epoch and member.phase is not MemberPhase.UNREVOKED:
        return _rejoin(state, command, member, now_ms)
    names = state.volatile.topic_names
    owned = [(names[topic_id], index) for topic_id, index in member.assigned if topic_id in names]
    assignment = write_assignment(version_of(words), owned)
    synced = MemberDue(group_id=command.group_id, member_id=command.member_id, due_ms=None)
    return Outcome(
        events=(_seen(state, command, member, now_ms), synced),
        reply=Synced(protocol_type=CONSUMERS, protocol=protocol, assignment=assignment),
    )


def heartbeat(state: State, command: Heartbeat, now_ms: int) -> Outcome:
    """Extend the member's session; tell it to join again where there is more for it to do or to have."""
    group = state.volatile.consumer_groups[command.group_id]
    member = _check(group, command)
    if isinstance(member, Rejection):
        return Outcome(reply=member)
    seen = _seen(state, command, member, now_ms)
    waits = member.phase is MemberPhase.UNRELEASED and _waits_for_others(group, member)
    if member.epoch == group.epoch and (waits or member.phase is MemberPhase.STABLE):
        return Outcome(events=(seen,), reply=DONE)
    return _rejoin(state, command, member, now_ms, seen)


def _check(group: ConsumerGroup, command: SyncGroup | Heartbeat) -> ConsumerMember | Rejection:
    """Return the member that has sent this, or the reason why it is none of this generation."""
    if command.instance_id is not None:
        named = group.static.get(command.instance_id)
        if named is None:
            return Rejection.UNKNOWN_MEMBER_ID
        if named != command.member_id:
            return Rejection.FENCED_INSTANCE_ID
    member = group.members.get(command.member_id)
    if member is None or member.classic is None:
        return Rejection.UNKNOWN_MEMBER_ID
    return member if member.epoch == command.generation else Rejection.ILLEGAL_GENERATION


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether somebody else still has a partition that the member shall get."""
    wanted = group.target.get(member.member_id, frozenset()) - member.assigned.keys()
    return any(not wanted.isdisjoint(other.held) for other in group.members.values())


def _rejoin(
    state: State, command: SyncGroup | Heartbeat, member: ConsumerMember, now_ms: int, *events: Event
) -> Outcome:
    """Ask the member to join again, by the time that it was given first."""
    reply = Rejection.REBALANCE_IN_PROGRESS
    if (command.group_id, member.member_id) in state.volatile.members_due_ms:
        return Outcome(events=events, reply=reply)
    due_ms = now_ms + member.rebalance_timeout_ms
    due = MemberDue(group_id=command.group_id, member_id=member.member_id, due_ms=due_ms)
    expire = ExpireRevocation(group_id=command.group_id, member_id=member.member_id)
    return Outcome(events=(*events, due), reply=reply, timers=(Timer(due_ms, expire),))


def _seen(state: State, command: SyncGroup | Heartbeat, member: ConsumerMember, now_ms: int) -> MemberSeen:
    deadline_ms = now_ms + session_timeout_ms(state, member)
    return MemberSeen(group_id=command.group_id, member_id=command.member_id, deadline_ms=deadline_ms)
