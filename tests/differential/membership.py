"""How the steps of groups' members are sent, and what is compared of their answers."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k08_offset_commit,
    k09_offset_fetch,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k42_delete_groups,
    k47_offset_delete,
)
from tests.differential.calls import Answer, Call, name_of, sends
from tests.differential.members import (
    UNREADABLE,
    CommitAsMember,
    CommitInTransactionAsMember,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroup,
    FetchOffsets,
    Heartbeat,
    Join,
    Leave,
    ListGroups,
    Sync,
)
from tests.differential.side import Side
from tests.differential.steps import (
    MEMBERS,
)
from tests.differential.transactions import commit_in_transaction, of_first

SESSION_MS = 1_800_000


class Leader(NamedTuple):
    """Who leads, as a member was told."""

    name: str


class Led(NamedTuple):
    """What the leader is told of everybody; nothing to others."""

    members: tuple[Answer, ...]


@sends(Join)
def join(side: Side, step: Join) -> Call:
    """Make a JoinGroup."""
    group = side.group(step.group)
    request = k11_join_group.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=side.parking.member_id(group, step.client, step.age),
        group_instance_id=step.instance,
        protocol_type=step.protocol_type,
        protocols=[
            k11_join_group.JoinGroupRequestProtocol(name=name, metadata=_subscription(side, step.topics))
            for name in step.protocols
        ],
    )

    def learn(reply: Any) -> None:
        if reply.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            side.parking.given(group, step.client, reply.member_id)
        if reply.error_code == ErrorCode.NONE:
            side.parking.told(group, step.client).generation = reply.generation_id

    def describe(reply: Any) -> Answer:
        name = side.parking.name
        members = [
            (name(each.member_id), each.group_instance_id or "", each.metadata == _subscription(side, step.topics))
            for each in reply.members
        ]
        return (
            name_of(reply.error_code),
            reply.generation_id,
            name(reply.member_id),
            Leader(name(reply.leader)),
            reply.protocol_name,
            reply.protocol_type,
            reply.skip_assignment,
            Led(tuple(sorted(members))),
        )

    return Call(request=request, version=step.version, describe=describe, parks=True, learn=learn)


def _subscription(side: Side, topics: str) -> bytes:
    if topics == UNREADABLE:
        return b"\xff"
    name = (side.topic if topics == "t" else "elsewhere").encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)


@sends(Sync)
def sync(side: Side, step: Sync) -> Call:
    """Make a SyncGroup."""
    group = side.group(step.group)
    told = side.parking.told(group, step.client)
    assignments = []
    if step.assigns:
        for client in MEMBERS:
            assignment = f"{client} in {told.generation} by {step.client}".encode()
            member_id = side.parking.member_id(group, client, 0)
            if member_id:
                assignments.append(
                    k14_sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                )
    request = k14_sync_group.SyncGroupRequest(
        group_id=group,
        generation_id=told.generation + step.late,
        member_id=side.parking.member_id(group, step.client, step.age),
        group_instance_id=step.instance,
        protocol_type="consumer" if step.version >= 5 else None,
        protocol_name=step.protocol if step.version >= 5 else None,
        assignments=assignments,
    )

    def describe(reply: Any) -> Answer:
        return (name_of(reply.error_code), reply.assignment, reply.protocol_type, reply.protocol_name)

    return Call(request=request, version=step.version, describe=describe, parks=True)


@sends(Heartbeat)
def heartbeat(side: Side, step: Heartbeat) -> Call:
    """Make a Heartbeat."""
    group = side.group(step.group)
    request = k12_heartbeat.HeartbeatRequest(
        group_id=group,
        generation_id=side.parking.told(group, step.client).generation + step.late,
        member_id=side.parking.member_id(group, step.client, step.age),
        group_instance_id=step.instance,
    )
    return Call(request=request, version=step.version, describe=lambda reply: (name_of(reply.error_code),))


@sends(Leave)
def leave(side: Side, step: Leave) -> Call:
    """Make a LeaveGroup."""
    group = side.group(step.group)
    ids = [side.parking.member_id(group, step.client, step.age)]
    ids += [side.parking.member_id(group, client, 0) for client in step.others]
    request = k13_leave_group.LeaveGroupRequest(
        group_id=group,
        member_id=ids[0],
        members=[
            k13_leave_group.MemberIdentity(member_id=each, group_instance_id=None if number else step.instance)
            for number, each in enumerate(ids)
        ],
    )

    def describe(reply: Any) -> Answer:
        members = tuple((side.parking.name(each.member_id), name_of(each.error_code)) for each in reply.members)
        return (name_of(reply.error_code), members)

    return Call(request=request, version=step.version, describe=describe)


@sends(CommitAsMember)
def commit_as_member(side: Side, step: CommitAsMember) -> Call:
    """Make an OffsetCommit."""
    group = side.group(step.group)
    entry = k08_offset_commit.OffsetCommitRequestPartition(partition_index=step.partition, committed_offset=step.offset)
    request = k08_offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=side.parking.told(group, step.client).generation + step.late,
        member_id=side.parking.member_id(group, step.client, step.age),
        group_instance_id=step.instance,
        topics=[k08_offset_commit.OffsetCommitRequestTopic(name=side.topic, partitions=[entry])],
    )
    return Call(
        request=request, version=step.version, code=of_first, describe=lambda reply: (name_of(of_first(reply)),)
    )


@sends(CommitInTransactionAsMember)
def commit_in_transaction_as_member(side: Side, step: CommitInTransactionAsMember) -> Call:
    """Make a TxnOffsetCommit."""
    group = side.group(step.group)
    member = {
        "member_id": side.parking.member_id(group, step.member, step.member_age),
        "generation_id": side.parking.told(group, step.member).generation + step.late,
        "group_instance_id": step.instance,
    }
    return commit_in_transaction(side, step, member)


@sends(FetchOffsets)
def fetch_offsets(side: Side, step: FetchOffsets) -> Call:
    """Make an OffsetFetch."""
    indexes = [0, 1, 7]
    if step.version < 8:
        topic = k09_offset_fetch.OffsetFetchRequestTopic(name=side.topic, partition_indexes=indexes)
        request = k09_offset_fetch.OffsetFetchRequest(
            group_id=side.group(step.group),
            topics=None if step.everything else [topic],
            require_stable=step.stable,
        )
    else:
        topics = [k09_offset_fetch.OffsetFetchRequestTopics(name=side.topic, partition_indexes=indexes)]
        groups = [
            k09_offset_fetch.OffsetFetchRequestGroup(
                group_id=side.group(group), topics=None if step.everything else topics
            )
            for group in (step.group, "nobody knows it")
        ]
        request = k09_offset_fetch.OffsetFetchRequest(groups=groups, require_stable=step.stable)

    def of_topics(topics: Any) -> Answer:
        return tuple(
            sorted(
                (each.partition_index, each.committed_offset, each.metadata, name_of(each.error_code))
                for topic in topics
                for each in topic.partitions
            )
        )

    def describe(reply: Any) -> Answer:
        if step.version < 8:
            return (name_of(reply.error_code), of_topics(reply.topics))
        return (
            name_of(reply.groups[0].error_code),
            *(
                (group.group_id.removeprefix(side.name), name_of(group.error_code), of_topics(group.topics))
                for group in reply.groups
            ),
        )

    return Call(request=request, version=step.version, describe=describe)


@sends(DeleteOffsets)
def delete_offsets(side: Side, step: DeleteOffsets) -> Call:
    """Make an OffsetDelete."""
    partitions = [k47_offset_delete.OffsetDeleteRequestPartition(partition_index=each) for each in step.partitions]
    topics = [k47_offset_delete.OffsetDeleteRequestTopic(name=side.topic, partitions=partitions)]
    request = k47_offset_delete.OffsetDeleteRequest(group_id=side.group(step.group), topics=topics)

    def describe(reply: Any) -> Answer:
        codes = [
            (each.partition_index, name_of(each.error_code)) for topic in reply.topics for each in topic.partitions
        ]
        return (name_of(reply.error_code), *sorted(codes))

    return Call(request=request, version=step.version, describe=describe)


@sends(DeleteGroups)
def delete_groups(side: Side, step: DeleteGroups) -> Call:
    """Make a DeleteGroups."""
    request = k42_delete_groups.DeleteGroupsRequest(groups_names=[side.group(each) for each in step.groups])

    def describe(reply: Any) -> Answer:
        return tuple(sorted((each.group_id, name_of(each.error_code)) for each in reply.results))

    return Call(
        request=request, version=step.version, code=lambda reply: reply.results[0].error_code, describe=describe
    )


@sends(DescribeGroup)
def describe_group(side: Side, step: DescribeGroup) -> Call:
    """Make a DescribeGroups."""
    request = k15_describe_groups.DescribeGroupsRequest(groups=[side.group(step.group)])

    def describe(reply: Any) -> Answer:
        group = reply.groups[0]
        members = [
            (
                side.parking.name(each.member_id),
                each.group_instance_id or "",
                each.client_id,
                each.client_host,
                len(each.member_metadata),
                each.member_assignment,
            )
            for each in group.members
        ]
        return (
            name_of(group.error_code),
            group.group_state,
            group.protocol_type,
            group.protocol_data,
            *sorted(members),
        )

    return Call(request=request, version=step.version, code=lambda reply: reply.groups[0].error_code, describe=describe)


@sends(ListGroups)
def list_groups(side: Side, step: ListGroups) -> Call:
    """Make a ListGroups."""
    request = k16_list_groups.ListGroupsRequest(states_filter=list(step.states))

    def describe(reply: Any) -> Answer:
        groups = [
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in reply.groups
            if each.group_id.startswith(f"{side.name}-")
        ]
        return (name_of(reply.error_code), *sorted(groups))

    return Call(request=request, version=step.version, describe=describe)
