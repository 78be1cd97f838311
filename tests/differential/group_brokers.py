"""Apache Kafka and Exacta with one group of the consumer protocol, for random histories of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from exacta.protocol.kafka.messages import (
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k13_leave_group,
    k19_create_topics,
    k22_init_producer_id,
    k26_end_txn,
    k28_txn_offset_commit,
    k47_offset_delete,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
)
from tests.conformance.brokers import HOST, kafka_process
from tests.differential.group_steps import (
    INSTANCES,
    PARTITIONS,
    TOPICS,
    VERSIONS,
    Beat,
    Commit,
    Forget,
    Member,
    Read,
    Remove,
    Step,
    Told,
)
from tests.differential.side import NOT_YET, PATIENCE_S
from tests.kafka.wire import Wire, front
from tests.waiting import wait_until

KAFKAS = (
    "group.consumer.assignment.interval.ms=0",
    "group.consumer.min.assignment.interval.ms=0",
    "group.consumer.assignor.offload.enable=false",
)


class Broker:
    """One of the two, and the group that a sequence is about."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.wire = Wire(address)
        self.group = ""
        self.producer = (-1, -1)
        topics = [
            k19_create_topics.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        self.wire.ask(k19_create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
        wanted = [k03_metadata.MetadataRequestTopic(name=name) for name in TOPICS]
        self.ids: dict[str, bytes] = {}

        def there() -> bool:
            found = self.wire.ask(k03_metadata.MetadataRequest(topics=wanted), 12).topics
            self.ids = {topic.name: topic.topic_id for topic in found if topic.error_code == 0}
            return self.ids.keys() == TOPICS.keys()

        wait_until(there, PATIENCE_S)
        for kind in (0, 1):
            ask = k10_find_coordinator.FindCoordinatorRequest(coordinator_keys=["x"], key_type=kind)
            wait_until(partial(self._is_found, ask), PATIENCE_S)
        self.names = {topic_id: name for name, topic_id in self.ids.items()}
        wait_until(self._binds, PATIENCE_S)

    def _is_found(self, ask: k10_find_coordinator.FindCoordinatorRequest) -> bool:
        return bool(self.wire.ask(ask, 4).coordinators[0].error_code == 0)

    def _binds(self) -> bool:
        request = k22_init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        bound = self.wire.ask(request, 4)
        self.producer = (bound.producer_id, bound.producer_epoch)
        return bound.error_code == 0

    def begin(self, group: str) -> None:
        """Turn to another group."""
        self.group = group
        wait_until(lambda: self.describe()[0] not in NOT_YET, PATIENCE_S)

    def describe(self) -> tuple[Any, ...]:
        """Return all of the group."""
        request = k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[self.group])
        [found] = self.wire.ask(request, 1).groups

        def plain(assignment: Any) -> Told:
            return sorted((each.topic_name, index) for each in assignment.topic_partitions for index in each.partitions)

        shown = [
            (
                member.member_id,
                member.instance_id,
                member.member_epoch,
                member.subscribed_topic_names,
                plain(member.assignment),
                plain(member.target_assignment),
            )
            for member in sorted(found.members, key=lambda member: member.member_id)
        ]
        epochs = (found.group_epoch, found.assignment_epoch)
        return found.error_code, found.group_state, epochs, found.assignor_name, shown

    def beat(self, step: Beat, member: Member) -> tuple[Any, ...]:
        """Send a heartbeat; who joins says everything."""
        m = k68_consumer_group_heartbeat
        epoch = member.named(step.epoch)
        owned = [] if epoch == 0 else member.owns(step.owned)
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=step.member,
            member_epoch=epoch,
            instance_id={"own": INSTANCES[step.member], "none": None}.get(step.instance, "z"),
            subscribed_topic_names=None if step.topics is None else list(step.topics),
        )
        if epoch == 0:
            request.rebalance_timeout_ms = 60_000
            request.subscribed_topic_names = list(step.topics or TOPICS)
            request.server_assignor = "range"
            request.instance_id = INSTANCES[step.member]
        if owned is not None:
            request.topic_partitions = [
                m.TopicPartitions(topic_id=self.ids[topic], partitions=indexes)
                for topic, indexes in _by_topic(owned).items()
            ]
        answer = self.wire.ask(request, 1)
        told = None
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            told = sorted((self.names[each.topic_id], index) for each in parts for index in each.partitions)
        return answer.error_code, answer.member_id, answer.member_epoch, told

    def commit(self, step: Commit, member: Member) -> tuple[Any, ...]:
        """Commit; a transaction is aborted at once, so that nothing waits in the group."""
        partitions = step.partitions or tuple(member.told[:2]) or (PARTITIONS[0],)
        version = VERSIONS[step.transactional][step.version]
        epoch = member.named(step.epoch)
        if not step.transactional:
            m = k08_offset_commit
            request = m.OffsetCommitRequest(
                group_id=self.group,
                member_id=step.member,
                generation_id_or_member_epoch=epoch,
                topics=self._named(m.OffsetCommitRequestTopic, m.OffsetCommitRequestPartition, partitions, offset=1),
            )
            return self._codes(self.wire.ask(request, version))
        version = max(version, 5)  # it registers its group itself
        answer: list[tuple[Any, ...]] = []

        def taken() -> bool:
            answer[:] = [self._codes(self.wire.ask(self._transactional(step.member, epoch, partitions), version))]
            return not any(code in NOT_YET for _, _, code in answer[0])

        wait_until(taken, PATIENCE_S)
        wait_until(self._aborts, PATIENCE_S)
        return answer[0]

    def _transactional(
        self, member_id: str, epoch: int, partitions: Sequence[tuple[str, int]]
    ) -> k28_txn_offset_commit.TxnOffsetCommitRequest:
        m = k28_txn_offset_commit
        return m.TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=self.group,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            member_id=member_id,
            generation_id=epoch,
            topics=self._named(m.TxnOffsetCommitRequestTopic, m.TxnOffsetCommitRequestPartition, partitions, offset=2),
        )

    def _named(
        self,
        topic_class: Callable[..., Any],
        partition_class: Callable[..., Any],
        partitions: Sequence[tuple[str, int]],
        offset: int,
    ) -> list[Any]:
        """Return what commits an offset in these partitions, in the classes of a request."""
        return [
            topic_class(
                name=topic,
                topic_id=self.ids[topic],
                partitions=[
                    partition_class(partition_index=index, committed_offset=offset, committed_metadata="")
                    for index in indexes
                ],
            )
            for topic, indexes in _by_topic(partitions).items()
        ]

    def _aborts(self) -> bool:
        request = k26_end_txn.EndTxnRequest(
            transactional_id="x", producer_id=self.producer[0], producer_epoch=self.producer[1], committed=False
        )
        ended = self.wire.ask(request, 5)
        if ended.error_code == 0:
            self.producer = (ended.producer_id, ended.producer_epoch)
        return ended.error_code not in NOT_YET

    def _codes(self, answer: Any) -> tuple[Any, ...]:
        return tuple(
            sorted(
                (topic.name or self.names[topic.topic_id], partition.partition_index, partition.error_code)
                for topic in answer.topics
                for partition in topic.partitions
            )
        )

    def read(self, step: Read, member: Member) -> tuple[Any, ...]:
        """Ask for an offset as a member."""
        m = k09_offset_fetch
        topics = [m.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        asked = m.OffsetFetchRequestGroup(
            group_id=self.group, member_id=step.member, member_epoch=member.named(step.epoch), topics=topics
        )
        [found] = self.wire.ask(m.OffsetFetchRequest(groups=[asked]), 9).groups
        return found.error_code, [topic.partitions[0].committed_offset for topic in found.topics]

    def remove(self, step: Remove) -> tuple[Any, ...]:
        """Remove members."""
        m = k13_leave_group
        named = [m.MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in step.members]
        left = self.wire.ask(m.LeaveGroupRequest(group_id=self.group, members=named), 5)
        return left.error_code, [each.error_code for each in left.members]

    def forget(self) -> tuple[Any, ...]:
        """Delete offsets of all topics."""
        m = k47_offset_delete
        topics = [
            m.OffsetDeleteRequestTopic(name=name, partitions=[m.OffsetDeleteRequestPartition(partition_index=0)])
            for name in TOPICS
        ]
        answer = self.wire.ask(m.OffsetDeleteRequest(group_id=self.group, topics=topics), 0)
        return answer.error_code, sorted((topic.name, topic.partitions[0].error_code) for topic in answer.topics)

    def run(self, step: Step, member: Member) -> tuple[Any, ...]:
        """Send a step's request; return what came of it."""
        match step:
            case Beat():
                return self.beat(step, member)
            case Commit():
                return self.commit(step, member)
            case Read():
                return self.read(step, member)
            case Remove():
                return self.remove(step)
            case Forget():
                return self.forget()


def _by_topic(partitions: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return found


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    """Apache Kafka and Exacta."""
    with kafka_process(tmp_path_factory.mktemp("kafka"), overrides=KAFKAS) as kafka, front() as exacta:
        both = Broker((HOST, kafka.port)), Broker(exacta.address)
        yield both
        for broker in both:
            broker.wire.socket.close()
