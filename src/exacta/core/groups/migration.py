"""A group changes its protocol while it has members: `group.consumer.migration.policy=bidirectional` (KIP-848).

Owns the two conversions, as functions of plain values, and their conditions, which are Apache Kafka's.

- The first member of the consumer protocol joins a classic group. Then the group is `upgraded`: it is a consumer group
  with all its members.
- The last member of the consumer protocol leaves a consumer group. Then the group is `downgraded`: it is a classic
  group with those that stay.

An upgraded group goes on from its generation, which is the epoch of every member. A member holds what its last
assignment has given it, so nobody else gets any of that before the member has given it up. Requests that wait are
answered REBALANCE_IN_PROGRESS. In between, members of both protocols are in one group (`consumer.classic_members`).

A downgraded group has the epoch as its generation, and members join again. Where a static member has only come back
with the other protocol, and everybody had what it shall have, the group is stable.

Each conversion is one durable event, so a crash finds the group as one or the other, never as both or neither.
"""

from collections.abc import Collection, Mapping

from exacta.core.groups.classic.step import choose_protocol
from exacta.core.groups.consumer_words import read_assignment, read_subscription, version_of, write_assignment
from exacta.core.state.classic_membership import CONSUMERS, NOBODY, Member, Membership
from exacta.core.state.consumer_membership import ClassicTerms, ConsumerGroup, ConsumerMember
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase
from exacta.core.values.consumer_groups import TopicPartition

Protocols = tuple[tuple[str, bytes], ...]
NONE_REPLACED: Mapping[str, Protocols] = {}


def upgraded(state: State, group_id: str) -> ConsumerGroup | None:
    """Return a group of the consumer protocol with the members of a classic one; None where it cannot be one.

    It cannot if it has too many members, if its members are no consumers, or if what they have said or were assigned
    cannot be read. An assignor of the application's own may have put more into an assignment than partitions, which
    would be lost. And all of them together may have said no more than one may, since everybody else waits meanwhile.
    """
    membership, last = state.volatile.memberships[group_id], state.settled.get(group_id, NOBODY)
    if membership.protocol_type != CONSUMERS or len(membership.members) > state.limits.group_consumer_max_size:
        return None
    sizes = (len(_chosen(each, membership.protocol)) + len(each.assignment) for each in membership.members.values())
    if sum(sizes) > state.limits.member_metadata_max_bytes:
        return None
    members: dict[str, ConsumerMember] = {}
    target: dict[str, frozenset[TopicPartition]] = {}
    taken: set[TopicPartition] = set()
    for key, member in membership.members.items():
        said = read_subscription(_chosen(member, membership.protocol))
        assigned = read_assignment(member.assignment or _last_assignment(last, member))
        if said is None or assigned is None:
            return None
        # A leader that has given one partition to two members has broken its promise. The first one keeps it.
        held = topic_partitions(state, assigned) - taken
        taken |= held
        target[key] = held
        members[key] = ConsumerMember(
            member_id=key,
            instance_id=member.instance_id,
            rack_id=said.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            principal=member.principal,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topics=said.topics,
            epoch=membership.generation,
            previous_epoch=membership.generation,
            assigned=dict.fromkeys(sorted(held), membership.generation),
            classic=ClassicTerms(session_timeout_ms=member.session_timeout_ms, protocols=member.protocols),
        )
    return ConsumerGroup(
        epoch=max(membership.generation, state.volatile.first_group_epoch),  # it counts on from there (decision 0012)
        target_epoch=membership.generation,
        members=members,
        static=membership.static,
        target=target,
    )


def _last_assignment(last: Membership, member: Member) -> bytes:
    """Return what the last rebalance that has ended gave a member.

    It may read that still, although the group has forgotten it in the rebalances that have not ended since.
    """
    before = last.members.get(member.member_id) or last.members.get(last.static.get(member.instance_id or "", ""))
    return b"" if before is None else before.assignment


def _chosen(member: Member, protocol: str) -> bytes:
    """Return what a member has said for the group's protocol, or for its first one while none is chosen."""
    return dict(member.protocols).get(protocol, member.protocols[0][1])


def is_classic_without(state: State, group: ConsumerGroup, gone: Collection[str]) -> bool:
    """Return whether all others than these members speak the classic protocol, and may be a classic group."""
    left = [member.classic for key, member in group.members.items() if key not in gone]
    spoken = [{name for name, _ in classic.protocols} for classic in left if classic is not None]
    if len(spoken) < len(left) or len(left) > state.limits.group_max_size:
        return False
    return not left or bool(set.intersection(*spoken))


def downgraded(
    state: State, group: ConsumerGroup, *, gone: Collection[str] = (), replaced: Mapping[str, Protocols] = NONE_REPLACED
) -> Membership:
    """Return the stable classic group of those that are left of a consumer group.

    `replaced` are static members of the consumer protocol, with the protocols of those that are about to replace them.
    """
    members = {
        key: _classic_member(state, group, member, replaced.get(key))
        for key, member in group.members.items()
        if key not in gone
    }
    return Membership(
        phase=Phase.STABLE,
        generation=group.epoch,
        protocol_type=CONSUMERS,
        protocol=choose_protocol(members),
        leader=next(iter(members)),
        members=members,
        static={instance_id: key for instance_id, key in group.static.items() if key in members},
        subscribed=frozenset().union(*(group.subscribed(group.members[key]) for key in members)),
    )


def _classic_member(state: State, group: ConsumerGroup, member: ConsumerMember, successors: Protocols | None) -> Member:
    terms = member.classic
    if terms is None:
        assert successors is not None  # everybody else who speaks the consumer protocol is gone
        terms = ClassicTerms(session_timeout_ms=state.limits.group_consumer_session_timeout_ms, protocols=successors)
    names = state.volatile.topic_names
    assigned = [(names[topic_id], index) for topic_id, index in member.assigned if topic_id in names]
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        principal=member.principal,
        session_timeout_ms=terms.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=terms.protocols,
        instance_id=member.instance_id,
        subscription=group.subscribed(member),
        assignment=write_assignment(version_of(terms.protocols[0][1]), assigned),
        synced=True,
    )


def topic_partitions(state: State, named: Collection[tuple[str, int]]) -> frozenset[TopicPartition]:
    """Return the partitions by the ids of their topics, as far as they exist."""
    return frozenset(
        (topic.topic_id, index)
        for name, index in named
        if (topic := state.topics.get(name)) is not None and 0 <= index < topic.partition_count
    )


def supports(group: ConsumerGroup, protocol_type: str, protocols: Protocols) -> bool:
    """Return whether all members that speak the classic protocol know one of these protocols."""
    spoken = [member.classic.protocols for member in group.members.values() if member.classic is not None]
    known = [{name for name, _ in each} for each in spoken]
    return protocol_type == CONSUMERS and any(all(name in each for each in known) for name, _ in protocols)
