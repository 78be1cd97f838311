"""Offsets of a consumer group, committed from outside of it: by a client that is no member.

Owns the shape of OffsetCommit. A group takes such a commit while it has no members, as it does from the tools that
reset offsets.
"""

from collections.abc import Mapping

from exacta.client.deadline import Deadline
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


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
