"""Be a member of a consumer group, whose coordinator says which partitions are this member's (KIP-848).

Theory of operation. Each heartbeat says all that a member can say, so that each answer holds the whole assignment and a
heartbeat may be repeated after a lost connection. The caller reads what is assigned. It stops reading what is assigned
no more, commits for it, and then says what it holds; the coordinator gives no partition to another member before that.
A member that was silent for too long is fenced. It holds nothing then, may not commit what it read, and joins again
with the next heartbeat.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from exacta.client.deadline import Deadline
from exacta.client.errors import ClientError, KafkaError
from exacta.client.group_offsets import MemberEpoch, commit_offsets
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_JOINS = 0
_LEAVES = -1
"""Epochs of a member that is not in the group."""

_REBALANCE_TIMEOUT_MS = 60_000
"""So long the coordinator waits for partitions that were given to another member."""

_AT_ONCE = float("-inf")
_LEAVING_MS = 5_000

_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH})


def remove_member(client: Client, group: str, member_id: str, deadline: Deadline | None = None) -> None:
    """Take a member out of a group of the consumer protocol, as it does itself when it leaves; harmless if it is out.

    Raises `KafkaError`.
    """
    client.call(
        Coordinator(GROUP, group),
        ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=_LEAVES),
        what=f"removing member '{member_id}' of group '{group}'",
        codes=lambda reply: [reply.error_code] if reply.error_code != ErrorCode.UNKNOWN_MEMBER_ID else [],
        deadline=deadline,
    )


class GroupMember:
    """A member of a group. It stays in the group only while the caller asks again and again what is assigned to it."""

    def __init__(
        self, client: Client, group: str, topics: Iterable[str], *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._now_s = now_s
        self._client = client
        self._group = group
        self._topics = list(topics)
        self._id = str(uuid.uuid4())
        self._epoch = _JOINS
        self._held: frozenset[TopicPartition] = frozenset()
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._due_s = _AT_ONCE
        self._has_lost_all = False
        self.heartbeats_without_partitions = 0
        """Counts the last heartbeats in a row whose answers assigned nothing."""

    @property
    def seconds_to_heartbeat(self) -> float:
        """Return the time until the next heartbeat is due, in seconds; 0 where it is due."""
        return max(0.0, self._due_s - self._now_s())

    def assigned(self) -> frozenset[TopicPartition]:
        """Return the partitions that are this member's now; send a heartbeat if one is due.

        A member that was fenced has none at first: what it has read and not committed will be read again, maybe by
        another member.
        Raises `KafkaError`, GROUP_ID_NOT_FOUND where a classic group cannot move, and `UnsupportedByBroker`.
        """
        if not self.seconds_to_heartbeat:
            try:
                reply = self._heartbeat()
            except KafkaError as error:
                if error.code not in _FENCED or self._epoch == _JOINS:
                    raise
                self._fenced()
            else:
                self._epoch = reply.member_epoch
                self._due_s = self._now_s() + reply.heartbeat_interval_ms / 1000
                if reply.assignment is not None:
                    self._assigned = self._named(reply.assignment)
                self.heartbeats_without_partitions = 0 if self._assigned else self.heartbeats_without_partitions + 1
        if self._has_lost_all:  # the caller has to stop reading, also what is assigned to it once more
            self._has_lost_all = False
            return frozenset()
        return self._assigned

    def hold(self, partitions: frozenset[TopicPartition]) -> None:
        """Take note of what the caller reads from now on; the coordinator is told with the next call of `assigned`."""
        if partitions != self._held:
            self._held = partitions
            self._due_s = _AT_ONCE

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit the next offset of each partition; return False where this member was fenced, and commit nothing."""
        if self._epoch == _JOINS:
            return False
        try:
            commit_offsets(self._client, self._group, offsets, member=MemberEpoch(self._id, self._epoch))
        except KafkaError as error:
            if error.code not in _FENCED:
                raise
            self._fenced()
            return False
        return True

    def leave(self) -> None:
        """Give all partitions back; where the coordinator cannot be told soon, it finds out when the session ends."""
        if self._epoch != _JOINS:
            with suppress(ClientError):
                remove_member(self._client, self._group, self._id, self._client.deadline(_LEAVING_MS))
            self._fenced()

    def _fenced(self) -> None:
        self._epoch = _JOINS
        self._held = self._assigned = frozenset()
        self._has_lost_all = True
        self._due_s = _AT_ONCE

    def _heartbeat(self) -> ConsumerGroupHeartbeatResponse:
        held: dict[str, list[int]] = {}
        for topic, partition in sorted(self._held):
            held.setdefault(topic, []).append(partition)
        reply: ConsumerGroupHeartbeatResponse = self._client.call(
            Coordinator(GROUP, self._group),
            ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._id,
                member_epoch=self._epoch,
                rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
                subscribed_topic_names=self._topics,
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=partitions)
                    for topic, partitions in held.items()
                    if (topic_id := self._client.topic_id(topic)) is not None
                ],
            ),
            what=f"being a member of group '{self._group}'",
            codes=lambda reply: (reply.error_code,),
        )
        return reply

    def _named(self, assignment: Assignment) -> frozenset[TopicPartition]:
        """Return the assignment by the names of topics; a topic that was deleted meanwhile has none."""
        ids = {each.topic_id for each in assignment.topic_partitions}
        if not ids <= self._names().keys():
            self._client.refresh(self._topics, self._client.deadline())
        names = self._names()
        return frozenset(
            TopicPartition(names[each.topic_id], partition)
            for each in assignment.topic_partitions
            if each.topic_id in names
            for partition in each.partitions
        )

    def _names(self) -> dict[bytes | None, str]:
        return {self._client.topic_id(topic): topic for topic in self._topics}
