"""Writes, and reads that would show them: what `test_pipelined_reads` sends behind one another on one connection.

Knows brokers by what they answer only, so that Apache Kafka can be asked the same.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k01_fetch,
    k08_offset_commit,
    k09_offset_fetch,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k23_offset_for_leader_epoch,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k32_describe_configs,
    k33_alter_configs,
    k35_describe_log_dirs,
    k37_create_partitions,
    k44_incremental_alter_configs,
    k47_offset_delete,
    k61_describe_producers,
    k75_describe_topic_partitions,
    k17785_describe_lag,
)
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from exacta.protocol.kafka.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from exacta.protocol.kafka.schema import Message
from tests.kafka.transaction_states import NOT_YET
from tests.kafka.wire import batch, values_in

Ask = Callable[[Message, int], Any]
PATIENCE_S = 20.0
RECORDS = 3
TOPIC_RESOURCE = 2
NEW = "-new"
_numbers = itertools.count()


class Scene(Struct):
    """A topic with records, a group with an offset in it, and a transaction that is open there."""

    topic: str
    group: str
    transactional_id: str
    producer_id: int = -1
    producer_epoch: int = -1

    @property
    def new_topic(self) -> str:
        """A topic that is not there."""
        return self.topic + NEW

    @property
    def new_group(self) -> str:
        """A group that is not there."""
        return self.group + NEW

    def producer(self) -> dict[str, Any]:
        """Return who writes."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }


def prepared(ask: Ask) -> Scene:
    """Make a scene under names of its own."""
    name = f"s{os.getpid()}-{next(_numbers)}"
    scene = Scene(f"{name}-topic", f"{name}-group", f"{name}-id")
    done(ask, create(scene.topic), 7)
    for key_type, key in enumerate((scene.group, scene.transactional_id)):
        done(ask, FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)
    done(ask, produce(scene, *[b"v"] * RECORDS), 9)
    done(ask, commit(scene, 1), 8)
    begun = done(ask, begin(scene), 4)
    scene.producer_id, scene.producer_epoch = begun.producer_id, begun.producer_epoch
    topics = [AddPartitionsToTxnTopic(name=scene.topic, partitions=[0])]
    who = {f"v3_and_below_{name}": value for name, value in scene.producer().items()}
    done(ask, AddPartitionsToTxnRequest(**who, v3_and_below_topics=topics), 3)
    records = batch(b"t", **_pair(scene), base_sequence=0, transactional=True)
    done(ask, _produce(scene, records, transactional_id=scene.transactional_id), 9)
    return scene


def done(ask: Ask, message: Message, version: int) -> Any:
    """Ask until the answer has no error; Kafka tells clients to come again while it makes something ready."""
    end = time.monotonic() + PATIENCE_S
    while True:
        answer = ask(message, version)
        codes = {*error_codes(answer)} - {ErrorCode.NONE}
        if not codes:
            return answer
        assert codes <= {*NOT_YET, ErrorCode.NOT_LEADER_OR_FOLLOWER}, f"{message}: {answer}"
        assert time.monotonic() < end, f"{message}: {answer}"
        time.sleep(0.01)


def error_codes(answer: Any) -> Iterator[int]:
    """Return all error codes of an answer."""
    for name in getattr(answer, "__struct_fields__", ()):
        value = getattr(answer, name)
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, list):
            for each in value:
                yield from error_codes(each)


def _pair(scene: Scene) -> dict[str, int]:
    return {"producer_id": scene.producer_id, "producer_epoch": scene.producer_epoch}


def create(topic: str) -> Message:
    new = k19_create_topics.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    return k19_create_topics.CreateTopicsRequest(topics=[new], timeout_ms=10_000)


def produce(scene: Scene, *values: bytes) -> Message:
    return _produce(scene, batch(*values))


def _produce(scene: Scene, records: bytes, **fields: Any) -> Message:
    data = TopicProduceData(name=scene.topic, partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data], **fields)


def commit(scene: Scene, offset: int) -> Message:
    partition = k08_offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = k08_offset_commit.OffsetCommitRequestTopic(name=scene.topic, partitions=[partition])
    return k08_offset_commit.OffsetCommitRequest(group_id=scene.group, topics=[topic])


def begin(scene: Scene) -> Message:
    return InitProducerIdRequest(transactional_id=scene.transactional_id, transaction_timeout_ms=60_000)


# --- writes -----------------------------------------------------------------------------------------------------------


def _delete_topic(scene: Scene) -> Message:
    topics = [k20_delete_topics.DeleteTopicState(name=scene.topic)]
    return k20_delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


def _create_partitions(scene: Scene) -> Message:
    topic = k37_create_partitions.CreatePartitionsTopic(name=scene.topic, count=2)
    return k37_create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)


def _delete_records(scene: Scene) -> Message:
    partition = k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = k21_delete_records.DeleteRecordsTopic(name=scene.topic, partitions=[partition])
    return k21_delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)


def _alter(scene: Scene) -> Message:
    config = k33_alter_configs.AlterableConfig(name="retention.ms", value="123456789")
    resource = k33_alter_configs.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=scene.topic, configs=[config]
    )
    return k33_alter_configs.AlterConfigsRequest(resources=[resource])


def _alter_incrementally(scene: Scene) -> Message:
    config = k44_incremental_alter_configs.AlterableConfig(name="retention.ms", value="123456789")
    resource = k44_incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=scene.topic, configs=[config]
    )
    return k44_incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


def _delete_offset(scene: Scene) -> Message:
    partition = k47_offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topic = k47_offset_delete.OffsetDeleteRequestTopic(name=scene.topic, partitions=[partition])
    return k47_offset_delete.OffsetDeleteRequest(group_id=scene.group, topics=[topic])


def _commit_in_transaction(scene: Scene) -> list[tuple[Message, int]]:
    partition = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    topic = k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name=scene.topic, partitions=[partition])
    offsets = k28_txn_offset_commit.TxnOffsetCommitRequest(**scene.producer(), group_id=scene.group, topics=[topic])
    group = AddOffsetsToTxnRequest(**scene.producer(), group_id=scene.group)
    return [(group, 3), (offsets, 3), (EndTxnRequest(**scene.producer(), committed=True), 3)]


def _mark_aborted(scene: Scene) -> Message:
    topic = k27_write_txn_markers.WritableTxnMarkerTopic(name=scene.topic, partition_indexes=[0])
    marker = k27_write_txn_markers.WritableTxnMarker(**_pair(scene), topics=[topic])
    return k27_write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def _join(scene: Scene) -> Message:
    return JoinGroupRequest(
        group_id=scene.new_group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def _heartbeat(scene: Scene) -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id=scene.new_group,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[scene.topic],
        topic_partitions=[],
    )


WRITES: dict[str, Callable[[Scene], list[tuple[Message, int]]]] = {
    "CreateTopics": lambda scene: [(create(scene.new_topic), 7)],
    "DeleteTopics": lambda scene: [(_delete_topic(scene), 6)],
    "CreatePartitions": lambda scene: [(_create_partitions(scene), 3)],
    "DeleteRecords": lambda scene: [(_delete_records(scene), 2)],
    "AlterConfigs": lambda scene: [(_alter(scene), 2)],
    "IncrementalAlterConfigs": lambda scene: [(_alter_incrementally(scene), 1)],
    "Produce": lambda scene: [(produce(scene, b"w"), 9)],
    "OffsetCommit": lambda scene: [(commit(scene, 2), 8)],
    "OffsetDelete": lambda scene: [(_delete_offset(scene), 0)],
    "DeleteGroups": lambda scene: [(DeleteGroupsRequest(groups_names=[scene.group]), 2)],
    "InitProducerId": lambda scene: [(begin(scene), 4)],
    "TxnOffsetCommit, EndTxn": _commit_in_transaction,
    "EndTxn": lambda scene: [(EndTxnRequest(**scene.producer(), committed=True), 3)],
    "WriteTxnMarkers": lambda scene: [(_mark_aborted(scene), 1)],
    "JoinGroup": lambda scene: [(_join(scene), 3)],
    "ConsumerGroupHeartbeat": lambda scene: [(_heartbeat(scene), 0)],
}

# --- reads ------------------------------------------------------------------------------------------------------------


class ReadRequest(Struct):
    """A request that shows what has been written, and what of its answer does."""

    message: Message
    version: int
    shown: Callable[[Any], Any]


Places = list[tuple[str, list[int]]]


def _by_place(topics: list[Any], told: Callable[[Any], Any]) -> dict[tuple[bool, int], Any]:
    """Return what is told of each partition, by whether its topic is new, and by its index."""

    def place(topic: Any, partition: Any) -> tuple[bool, int]:
        name = topic.topic if hasattr(topic, "topic") else topic.name
        index = partition.partition if hasattr(partition, "partition") else partition.partition_index
        return name.endswith(NEW), index

    return {place(topic, each): told(each) for topic in topics for each in topic.partitions}


def _places(scene: Scene) -> Places:
    return [(scene.topic, [0, 1]), (scene.new_topic, [0])]


def _new_places(scene: Scene) -> Places:
    return [(scene.topic, [1]), (scene.new_topic, [0])]


def _metadata(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        topics = {each.name: len(each.partitions) for each in answer.topics}
        return topics.get(scene.topic), topics.get(scene.new_topic)

    return ReadRequest(MetadataRequest(topics=None), 9, shown)


def _topic_partitions(scene: Scene) -> ReadRequest:
    topics = [k75_describe_topic_partitions.TopicRequest(name=name) for name in (scene.topic, scene.new_topic)]
    request = k75_describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics)

    def shown(answer: Any) -> Any:
        return {each.name.endswith(NEW): (each.error_code, len(each.partitions)) for each in answer.topics}

    return ReadRequest(request, 0, shown)


def _configs(scene: Scene) -> ReadRequest:
    resources = [
        k32_describe_configs.DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=["retention.ms"]
        )
        for name in (scene.topic, scene.new_topic)
    ]

    def shown(answer: Any) -> Any:
        return {
            each.resource_name.endswith(NEW): (each.error_code, [config.value for config in each.configs])
            for each in answer.results
        }

    return ReadRequest(k32_describe_configs.DescribeConfigsRequest(resources=resources), 4, shown)


def _offsets(timestamp: int, isolation_level: int) -> Callable[[Scene], ReadRequest]:
    def made(scene: Scene) -> ReadRequest:
        topics = [
            ListOffsetsTopic(
                name=name,
                partitions=[ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in indexes],
            )
            for name, indexes in _places(scene)
        ]

        def shown(answer: Any) -> Any:
            return _by_place(answer.topics, lambda each: (each.error_code, each.offset))

        return ReadRequest(ListOffsetsRequest(isolation_level=isolation_level, topics=topics), 7, shown)

    return made


def _records(isolation_level: int, places: Callable[[Scene], Places] = _places) -> Callable[[Scene], ReadRequest]:
    def made(scene: Scene) -> ReadRequest:
        topics = [
            k01_fetch.FetchTopic(
                topic=name,
                partitions=[
                    k01_fetch.FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1 << 20)
                    for each in indexes
                ],
            )
            for name, indexes in places(scene)
        ]
        request = k01_fetch.FetchRequest(
            isolation_level=isolation_level, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics
        )

        def fetched(each: Any) -> Any:
            offsets = (each.high_watermark, each.last_stable_offset, each.log_start_offset)
            return each.error_code, *offsets, values_in(each.records)

        def shown(answer: Any) -> Any:
            return _by_place(answer.responses, fetched)

        return ReadRequest(request, 11, shown)

    return made


def _ends(scene: Scene) -> ReadRequest:
    topics = [
        k23_offset_for_leader_epoch.OffsetForLeaderTopic(
            topic=name,
            partitions=[
                k23_offset_for_leader_epoch.OffsetForLeaderPartition(
                    partition=each, current_leader_epoch=-1, leader_epoch=0
                )
                for each in indexes
            ],
        )
        for name, indexes in _places(scene)
    ]

    def shown(answer: Any) -> Any:
        return _by_place(answer.topics, lambda each: (each.error_code, each.end_offset))

    return ReadRequest(k23_offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=topics), 4, shown)


def _producers(scene: Scene) -> ReadRequest:
    topics = [
        k61_describe_producers.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in _places(scene)
    ]

    def shown(answer: Any) -> Any:
        def told(each: Any) -> Any:
            return each.error_code, sorted(producer.current_txn_start_offset for producer in each.active_producers)

        return _by_place(answer.topics, told)

    return ReadRequest(k61_describe_producers.DescribeProducersRequest(topics=topics), 0, shown)


def _sizes(scene: Scene) -> ReadRequest:
    topics = [
        k35_describe_log_dirs.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in _places(scene)
    ]

    def shown(answer: Any) -> Any:
        return sorted(
            (topic.name == scene.topic, each.partition_index, each.partition_size)
            for topic in answer.results[0].topics
            for each in topic.partitions
        )

    return ReadRequest(k35_describe_log_dirs.DescribeLogDirsRequest(topics=topics), 2, shown)


def _group_offsets(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        return [
            (each.error_code, each.committed_offset)
            for group in answer.groups
            for topic in group.topics
            for each in topic.partitions
        ]

    topic = k09_offset_fetch.OffsetFetchRequestTopics(name=scene.topic, partition_indexes=[0])
    group = k09_offset_fetch.OffsetFetchRequestGroup(group_id=scene.group, topics=[topic])
    return ReadRequest(k09_offset_fetch.OffsetFetchRequest(groups=[group], require_stable=True), 8, shown)


def _groups(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        groups = {each.group_id: each.group_state for each in answer.groups}
        return groups.get(scene.group), groups.get(scene.new_group)

    return ReadRequest(ListGroupsRequest(), 4, shown)


def _group(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        return {each.group_id.endswith(NEW): (each.group_state, len(each.members)) for each in answer.groups}

    return ReadRequest(DescribeGroupsRequest(groups=[scene.group, scene.new_group]), 5, shown)


def _consumer_group(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        return [(each.error_code, each.group_state, len(each.members)) for each in answer.groups]

    return ReadRequest(ConsumerGroupDescribeRequest(group_ids=[scene.new_group]), 0, shown)


def _transactions(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        return [
            each.transaction_state
            for each in answer.transaction_states
            if each.transactional_id == scene.transactional_id
        ]

    return ReadRequest(ListTransactionsRequest(), 0, shown)


def _transaction(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        return [
            (each.transaction_state, each.producer_epoch - scene.producer_epoch, len(each.topics))
            for each in answer.transaction_states
        ]

    return ReadRequest(DescribeTransactionsRequest(transactional_ids=[scene.transactional_id]), 0, shown)


def _lag(scene: Scene) -> ReadRequest:
    def shown(answer: Any) -> Any:
        return [
            (
                each.committed_offset,
                each.visible_end_offset,
                each.unread_records,
                each.held_back_records,
                len(each.open_transactions),
            )
            for group in answer.groups
            for topic in group.topics
            for each in topic.partitions
        ]

    return ReadRequest(k17785_describe_lag.DescribeLagRequest(groups=[scene.group]), 0, shown)


EARLIEST, LATEST, LATEST_TIME = -2, -1, -3

READS: dict[str, Callable[[Scene], ReadRequest]] = {
    "Metadata": _metadata,
    "DescribeTopicPartitions": _topic_partitions,
    "DescribeConfigs": _configs,
    "ListOffsets, earliest": _offsets(EARLIEST, 0),
    "ListOffsets, earliest, read_committed": _offsets(EARLIEST, 1),
    "ListOffsets, latest": _offsets(LATEST, 0),
    "ListOffsets, latest, read_committed": _offsets(LATEST, 1),
    "ListOffsets, latest time": _offsets(LATEST_TIME, 0),
    "ListOffsets, by time": _offsets(0, 1),
    "Fetch": _records(0),
    "Fetch, read_committed": _records(1),
    "Fetch, new partitions": _records(1, _new_places),
    "OffsetForLeaderEpoch": _ends,
    "DescribeProducers": _producers,
    "DescribeLogDirs": _sizes,
    "OffsetFetch": _group_offsets,
    "ListGroups": _groups,
    "DescribeGroups": _group,
    "ConsumerGroupDescribe": _consumer_group,
    "ListTransactions": _transactions,
    "DescribeTransactions": _transaction,
    "DescribeLag": _lag,
}
