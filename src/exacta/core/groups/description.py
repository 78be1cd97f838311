"""Groups as they are shown: the read model that handlers, tools and consoles read instead of the state.

This module owns what is said of a group and of its members. Everything is frozen and of one state.
"""

from collections.abc import Collection
from enum import Enum

from msgspec import Struct

from exacta.core.groups.consumer.step import preferred_assignor
from exacta.core.state.classic_membership import CONSUMERS, NOBODY, Member, Membership
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase
from exacta.core.values.consumer_groups import GroupPhase, TopicPartition


class GroupType(Enum):
    """The protocol that the members of a group speak, by Kafka's names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class ListedGroup(Struct, frozen=True, kw_only=True):
    """One group in a list of all."""

    group_id: str
    group_type: GroupType
    protocol_type: str
    """The word by which members of the classic protocol say what they are, mostly "consumer"; empty without members."""
    phase: Phase | GroupPhase


class DescribedMember(Struct, frozen=True, kw_only=True):
    """One member of a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    """The member's subscription for the protocol that was chosen; empty while none is."""
    assignment: bytes


class DescribedGroup(Struct, frozen=True, kw_only=True):
    """A group of the classic protocol, or one without members."""

    group_id: str
    phase: Phase
    protocol_type: str
    protocol: str
    """The assignor that was chosen; empty while none is."""
    members: tuple[DescribedMember, ...]


class AssignedTopic(Struct, frozen=True, kw_only=True):
    """The partitions of one topic that a member has, or will have."""

    topic: str
    topic_id: bytes
    partitions: tuple[int, ...]


class DescribedConsumer(Struct, frozen=True, kw_only=True):
    """One member of a group of the consumer protocol."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    epoch: int
    speaks_classic: bool
    """It speaks the classic protocol, while the group moves from the one to the other."""
    topics: tuple[str, ...]
    pattern: str
    assignment: tuple[AssignedTopic, ...]
    """The partitions that it owns, or has to give up."""
    target: tuple[AssignedTopic, ...]


class DescribedConsumerGroup(Struct, frozen=True, kw_only=True):
    """A group of the consumer protocol (KIP-848)."""

    group_id: str
    phase: GroupPhase
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]


def group_names(state: State) -> set[str]:
    """Return the names of every group that has members or offsets."""
    volatile = state.volatile
    return state.groups.keys() | volatile.memberships.keys() | volatile.consumer_groups.keys()


def list_group(state: State, group_id: str) -> ListedGroup | None:
    """Return a group as it is listed; None where there is no group of this name."""
    is_there = state.has_group(group_id) or group_id in state.volatile.consumer_groups
    return _listed(state, group_id) if is_there else None


def describe_group(state: State, group_id: str) -> DescribedGroup | DescribedConsumerGroup | None:
    """Return a group with its members; None where there is no group of this name."""
    consumers = state.volatile.consumer_groups.get(group_id)
    if consumers is not None:
        return _described_consumers(state, group_id, consumers)
    return _described(state, group_id) if state.has_group(group_id) else None


def _listed(state: State, group_id: str) -> ListedGroup:
    consumers = state.volatile.consumer_groups.get(group_id)
    if consumers is not None:
        return ListedGroup(
            group_id=group_id,
            group_type=GroupType.CONSUMER,
            protocol_type=CONSUMERS,
            phase=consumers.phase,
        )
    membership = state.volatile.memberships.get(group_id, NOBODY)
    return ListedGroup(
        group_id=group_id,
        group_type=GroupType.CLASSIC,
        protocol_type=membership.protocol_type,
        phase=membership.phase,
    )


def _described(state: State, group_id: str) -> DescribedGroup:
    membership = state.volatile.memberships.get(group_id, NOBODY)
    return DescribedGroup(
        group_id=group_id,
        phase=membership.phase,
        protocol_type=membership.protocol_type,
        protocol=membership.protocol if membership.phase is Phase.STABLE else "",
        members=tuple(_member(membership, member) for member in membership.members.values()),
    )


def _member(membership: Membership, member: Member) -> DescribedMember:
    stable = membership.phase is Phase.STABLE
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=dict(member.protocols).get(membership.protocol, b"") if stable else b"",
        assignment=member.assignment,
    )


def _described_consumers(state: State, group_id: str, group: ConsumerGroup) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group_id,
        phase=group.phase,
        epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor=preferred_assignor(group, state.limits.group_consumer_assignors),
        members=tuple(_consumer(state, group, member) for member in group.members.values()),
    )


def _consumer(state: State, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumer:
    return DescribedConsumer(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        epoch=member.epoch,
        speaks_classic=member.classic is not None,
        topics=tuple(sorted(member.topics)),
        pattern=member.pattern,
        assignment=_assigned(state, member.assigned.keys() | member.revoking.keys()),
        target=_assigned(state, group.target.get(member.member_id, ())),
    )


def _assigned(state: State, partitions: Collection[TopicPartition]) -> tuple[AssignedTopic, ...]:
    """Name the partitions by topic; those of a topic that is gone belong to no member any more."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    return tuple(
        AssignedTopic(topic=name, topic_id=topic_id, partitions=tuple(indexes))
        for topic_id, indexes in by_topic.items()
        if (name := state.volatile.topic_names.get(topic_id)) is not None
    )
