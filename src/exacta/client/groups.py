"""Groups from outside, as an administrator sees them: which there are, their offsets set, their deletion (KIP-229).

Owns the shapes of OffsetCommit, ListGroups and DeleteGroups. A group takes offsets from a client that is no member
while it has no members, as it does from the tools that reset offsets.
"""

from __future__ import annotations

from collections.abc import Mapping

from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.routing import GROUP, BrokerGone, Client, Coordinator, Node
from exacta.client.transactions import TopicPartition
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from exacta.protocol.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.messages.k42_delete_groups import DeleteGroupsRequest


def commit_offsets(
    client: Client, group: str, offsets: Mapping[TopicPartition, int], *, deadline: Deadline | None = None
) -> None:
    """Store where a group reads on: the next offset of each partition; partitions that are gone are passed over.

    Raises `KafkaError`: UNKNOWN_MEMBER_ID where the group has members, GROUP_AUTHORIZATION_FAILED.
    """
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        entry = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        topics.setdefault(topic, []).append(entry)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=entries) for topic, entries in topics.items()],
    )
    client.call(
        Coordinator(GROUP, group),
        request,
        what=f"committing offsets to group '{group}'",
        codes=lambda reply: (
            entry.error_code
            for topic in reply.topics
            for entry in topic.partitions
            if entry.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
        deadline=deadline,
    )


def list_groups(client: Client, prefix: str, deadline: Deadline | None = None) -> list[str]:
    """Return the groups whose name begins with `prefix`, from all brokers."""
    deadline = deadline or client.deadline()
    found: set[str] = set()
    for node_id in client.nodes(deadline):
        try:
            response = client.call(
                Node(node_id),
                ListGroupsRequest(),
                what="listing groups",
                codes=lambda reply: (reply.error_code,),
                deadline=deadline,
            )
        except BrokerGone:  # what it coordinated is another's now, or will be
            continue
        found.update(group.group_id for group in response.groups if group.group_id.startswith(prefix))
    return sorted(found)


def delete_group(client: Client, group: str, deadline: Deadline | None = None) -> bool:
    """Delete a group with its offsets; return whether there was one.

    Raises `KafkaError`, NON_EMPTY_GROUP where it has members.
    """
    try:
        client.call(
            Coordinator(GROUP, group),
            DeleteGroupsRequest(groups_names=[group]),
            what=f"deleting group '{group}'",
            codes=lambda reply: [entry.error_code for entry in reply.results],
            deadline=deadline,
        )
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    return True
