"""A scene, and the writes that change it: `test_pipelined_reads` sends reads behind them on one connection.

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
    k08_offset_commit,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k33_alter_configs,
    k37_create_partitions,
    k44_incremental_alter_configs,
    k47_offset_delete,
)
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from exacta.protocol.kafka.schema import Message
from tests.kafka.transaction_states import NOT_YET
from tests.kafka.wire import batch

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


def _pair(scene: Scene) -> dict[str, Any]:
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
