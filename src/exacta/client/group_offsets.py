"""Read the offsets of a consumer group, and commit them as one of its members, or from outside of it.

The module owns the shapes of OffsetFetch and OffsetCommit. A group takes a commit from outside while it has no members,
as it does from the tools that reset offsets.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from exacta.client.bulk import ask_all
from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.routing import GROUP, Client, Coordinator, Route
from exacta.client.transactions import CommittedOffset, TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from exacta.protocol.kafka.schema import Message


class MemberEpoch(NamedTuple):
    """A member of a group of the consumer protocol, and the epoch that the coordinator gave it last (KIP-848)."""

    member_id: str
    epoch: int


def fetch_offset(
    client: Client, group: str, at: TopicPartition, *, stable: bool, deadline: Deadline | None = None
) -> CommittedOffset | None:
    """Return what `group` committed for a partition, or None.

    With `stable` (KIP-447) an offset whose transaction is open raises `KafkaError` UNSTABLE_OFFSET_COMMIT instead of
    being waited for.
    """
    response = client.call(
        Coordinator(GROUP, group),
        _offset_fetch(group, at, stable=stable),
        what=f"reading the offset of group '{group}'",
        codes=_offset_fetch_codes,
        never_retry=frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT}),
        deadline=deadline,
    )
    return _offsets_in(response).get(at)


def fetch_offsets(
    client: Client, group: str, *, stable: bool = False, wait: bool = True, deadline: Deadline | None = None
) -> dict[TopicPartition, CommittedOffset]:
    """Return everything that `group` has committed.

    Offsets that an open transaction will change are as they were before. With `stable` the call waits for that
    transaction's end or, without `wait`, raises `KafkaError` UNSTABLE_OFFSET_COMMIT.
    """
    response = client.call(
        Coordinator(GROUP, group),
        OffsetFetchRequest(group_id=group, topics=None, require_stable=stable),
        what=f"reading the offsets of group '{group}'",
        codes=_offset_fetch_codes,
        never_retry=frozenset() if wait else frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT}),
        deadline=deadline,
    )
    return _offsets_in(response)


def fetch_stable_offsets(
    client: Client, groups: Sequence[str], at: TopicPartition, deadline: Deadline | None = None
) -> dict[str, CommittedOffset | None]:
    """Return what each group committed for a partition, leaving out the groups with an open transaction (KIP-447)."""
    deadline = deadline or client.deadline()
    requests: list[tuple[Route, Message]] = [
        (Coordinator(GROUP, group), _offset_fetch(group, at, stable=True)) for group in groups
    ]
    found: dict[str, CommittedOffset | None] = {}
    for group, reply in zip(groups, ask_all(client, requests, deadline), strict=True):
        if reply is not None and not any(_offset_fetch_codes(reply)):
            found[group] = _offsets_in(reply).get(at)
            continue
        try:
            found[group] = fetch_offset(client, group, at, stable=True, deadline=deadline)
        except KafkaError as error:
            if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise
    return found


def commit_offsets(
    client: Client,
    group: str,
    offsets: Mapping[TopicPartition, int],
    *,
    member: MemberEpoch | None = None,
    deadline: Deadline | None = None,
) -> None:
    """Store where a group reads on: the next offset of each partition; partitions that are gone are passed over.

    Without `member` the commit comes from outside. Raises `KafkaError`: UNKNOWN_MEMBER_ID where the group has members
    and this is none of them, STALE_MEMBER_EPOCH, GROUP_AUTHORIZATION_FAILED.
    """
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        entry = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        topics.setdefault(topic, []).append(entry)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=entries) for topic, entries in topics.items()],
    )
    if member is not None:
        request.member_id, request.generation_id_or_member_epoch = member
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


def _offset_fetch(group: str, at: TopicPartition, *, stable: bool) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=at.topic, partition_indexes=[at.partition])],
        require_stable=stable,
    )


def _offsets_in(reply: Any) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.name, entry.partition_index): CommittedOffset(entry.committed_offset, entry.metadata or "")
        for topic in reply.topics
        for entry in topic.partitions
        if entry.committed_offset >= 0
    }


def _offset_fetch_codes(reply: Any) -> list[int]:
    return [reply.error_code, *(entry.error_code for topic in reply.topics for entry in topic.partitions)]
