"""Requests about resources that are named, for the tests of access: one builder for each API that needs several lines.

A builder gets the version and the names.
"""

from collections.abc import Sequence

from msgspec import Struct

from exacta.protocol.kafka.messages import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k13_leave_group,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k32_describe_configs,
    k33_alter_configs,
    k37_create_partitions,
    k43_elect_leaders,
    k44_incremental_alter_configs,
    k45_alter_partition_reassignments,
    k47_offset_delete,
    k57_update_features,
    k61_describe_producers,
    k68_consumer_group_heartbeat,
    k75_describe_topic_partitions,
    k17784_end_transactions,
    k17791_acknowledge_messages,
)
from exacta.protocol.kafka.schema import Message
from tests.kafka.wire import batch

IN_TOPIC_CONFIGS = 2


class Names(Struct, frozen=True, kw_only=True):
    """The resources that a request names. `ids` are the topics' ids, for the versions that name topics by them."""

    topics: Sequence[str]
    groups: Sequence[str]
    transactional_ids: Sequence[str]
    ids: dict[str, bytes] = {}
    bound: dict[str, tuple[int, int]] = {}
    """Transactional id -> producer id and epoch."""

    def topic_id(self, topic: str) -> bytes:
        """Return the id of a topic; one that no topic has where it is not known."""
        return self.ids.get(topic, bytes([7]) * 16)

    def producer(self, transactional_id: str) -> tuple[int, int]:
        """Return producer id and epoch."""
        return self.bound.get(transactional_id, (1, 0))


def produce(version: int, names: Names) -> Message:
    return k00_produce.ProduceRequest(
        acks=-1,
        topic_data=[
            k00_produce.TopicProduceData(
                name=topic,
                topic_id=names.topic_id(topic),
                partition_data=[k00_produce.PartitionProduceData(index=0, records=batch(b"x"))],
            )
            for topic in names.topics
        ],
    )


def fetch(version: int, names: Names) -> Message:
    return k01_fetch.FetchRequest(
        topics=[
            k01_fetch.FetchTopic(
                topic=topic,
                topic_id=names.topic_id(topic),
                partitions=[k01_fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)],
            )
            for topic in names.topics
        ]
    )


def list_offsets(version: int, names: Names) -> Message:
    return k02_list_offsets.ListOffsetsRequest(
        topics=[
            k02_list_offsets.ListOffsetsTopic(
                name=topic, partitions=[k02_list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
            for topic in names.topics
        ]
    )


def metadata(version: int, names: Names) -> Message:
    topics = [k03_metadata.MetadataRequestTopic(name=topic) for topic in names.topics]
    return k03_metadata.MetadataRequest(topics=topics, include_topic_authorized_operations=version >= 8)


def offset_commit(version: int, names: Names) -> Message:
    return k08_offset_commit.OffsetCommitRequest(
        group_id=names.groups[0],
        topics=[
            k08_offset_commit.OffsetCommitRequestTopic(
                name=topic,
                topic_id=names.topic_id(topic),
                partitions=[k08_offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
            )
            for topic in names.topics
        ],
    )


def offset_fetch(version: int, names: Names) -> Message:
    if version < 8:
        topics = [k09_offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[0]) for topic in names.topics]
        return k09_offset_fetch.OffsetFetchRequest(group_id=names.groups[0], topics=topics)
    return k09_offset_fetch.OffsetFetchRequest(
        groups=[
            k09_offset_fetch.OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    k09_offset_fetch.OffsetFetchRequestTopics(
                        name=topic, topic_id=names.topic_id(topic), partition_indexes=[0]
                    )
                    for topic in names.topics
                ],
            )
            for group in names.groups
        ]
    )


def find_coordinator(version: int, names: Names) -> Message:
    if version < 4:
        return k10_find_coordinator.FindCoordinatorRequest(key=names.groups[0])
    return k10_find_coordinator.FindCoordinatorRequest(coordinator_keys=list(names.groups))


def join(version: int, names: Names) -> Message:
    return k11_join_group.JoinGroupRequest(
        group_id=names.groups[0],
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[k11_join_group.JoinGroupRequestProtocol(name="range")],
    )


def leave(version: int, names: Names) -> Message:
    return k13_leave_group.LeaveGroupRequest(
        group_id=names.groups[0], member_id="m", members=[k13_leave_group.MemberIdentity(member_id="m")]
    )


def create_topics(version: int, names: Names) -> Message:
    topics = [
        k19_create_topics.CreatableTopic(name=f"{topic}-new", num_partitions=1, replication_factor=1)
        for topic in names.topics
    ]
    return k19_create_topics.CreateTopicsRequest(topics=topics)


def delete_topics(version: int, names: Names) -> Message:
    if version < 6:
        return k20_delete_topics.DeleteTopicsRequest(topic_names=list(names.topics))
    return k20_delete_topics.DeleteTopicsRequest(
        topics=[k20_delete_topics.DeleteTopicState(name=topic) for topic in names.topics]
    )


def delete_records(version: int, names: Names) -> Message:
    return k21_delete_records.DeleteRecordsRequest(
        topics=[
            k21_delete_records.DeleteRecordsTopic(
                name=topic, partitions=[k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=1)]
            )
            for topic in names.topics
        ]
    )


def epochs(version: int, names: Names) -> Message:
    return k23_offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        topics=[
            k23_offset_for_leader_epoch.OffsetForLeaderTopic(
                topic=topic, partitions=[k23_offset_for_leader_epoch.OffsetForLeaderPartition(partition=0)]
            )
            for topic in names.topics
        ]
    )


def add_partitions(version: int, names: Names) -> Message:
    transactional_id = names.transactional_ids[0]
    producer_id, producer_epoch = names.producer(transactional_id)
    topics = [k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in names.topics]
    if version < 4:
        return k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=producer_epoch,
            v3_and_below_topics=topics,
        )
    transaction = k24_add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=producer_epoch, topics=topics
    )
    return k24_add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction])


def add_offsets(version: int, names: Names) -> Message:
    producer_id, producer_epoch = names.producer(names.transactional_ids[0])
    return k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=names.transactional_ids[0],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        group_id=names.groups[0],
    )


def end_txn(version: int, names: Names) -> Message:
    producer_id, producer_epoch = names.producer(names.transactional_ids[0])
    return k26_end_txn.EndTxnRequest(
        transactional_id=names.transactional_ids[0], producer_id=producer_id, producer_epoch=producer_epoch
    )


def markers(version: int, names: Names) -> Message:
    producer_id, producer_epoch = names.producer(names.transactional_ids[0])
    topics = [k27_write_txn_markers.WritableTxnMarkerTopic(name=topic, partition_indexes=[0]) for topic in names.topics]
    marker = k27_write_txn_markers.WritableTxnMarker(
        producer_id=producer_id, producer_epoch=producer_epoch, topics=topics
    )
    return k27_write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def txn_offset_commit(version: int, names: Names) -> Message:
    producer_id, producer_epoch = names.producer(names.transactional_ids[0])
    return k28_txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=names.transactional_ids[0],
        group_id=names.groups[0],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=[
            k28_txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=topic,
                topic_id=names.topic_id(topic),
                partitions=[k28_txn_offset_commit.TxnOffsetCommitRequestPartition(committed_offset=5)],
            )
            for topic in names.topics
        ],
    )


def describe_configs(version: int, names: Names) -> Message:
    return k32_describe_configs.DescribeConfigsRequest(
        resources=[
            k32_describe_configs.DescribeConfigsResource(resource_type=IN_TOPIC_CONFIGS, resource_name=topic)
            for topic in names.topics
        ]
    )


def alter_configs(version: int, names: Names) -> Message:
    configs = [k33_alter_configs.AlterableConfig(name="retention.ms", value="1")]
    return k33_alter_configs.AlterConfigsRequest(
        resources=[
            k33_alter_configs.AlterConfigsResource(resource_type=IN_TOPIC_CONFIGS, resource_name=topic, configs=configs)
            for topic in names.topics
        ]
    )


def incremental(version: int, names: Names) -> Message:
    configs = [k44_incremental_alter_configs.AlterableConfig(name="retention.ms", value="1")]
    return k44_incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            k44_incremental_alter_configs.AlterConfigsResource(
                resource_type=IN_TOPIC_CONFIGS, resource_name=topic, configs=configs
            )
            for topic in names.topics
        ]
    )


def create_partitions(version: int, names: Names) -> Message:
    return k37_create_partitions.CreatePartitionsRequest(
        topics=[k37_create_partitions.CreatePartitionsTopic(name=topic, count=3) for topic in names.topics]
    )


def elect(version: int, names: Names) -> Message:
    return k43_elect_leaders.ElectLeadersRequest(
        topic_partitions=[k43_elect_leaders.TopicPartitions(topic=topic, partitions=[0]) for topic in names.topics]
    )


def reassign(version: int, names: Names) -> Message:
    partitions = [k45_alter_partition_reassignments.ReassignablePartition(partition_index=0)]
    return k45_alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        topics=[
            k45_alter_partition_reassignments.ReassignableTopic(name=topic, partitions=partitions)
            for topic in names.topics
        ]
    )


def offset_delete(version: int, names: Names) -> Message:
    return k47_offset_delete.OffsetDeleteRequest(
        group_id=names.groups[0],
        topics=[
            k47_offset_delete.OffsetDeleteRequestTopic(
                name=topic, partitions=[k47_offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
            )
            for topic in names.topics
        ],
    )


def update_features(version: int, names: Names) -> Message:
    update = k57_update_features.FeatureUpdateKey(feature="transaction.version", max_version_level=2)
    return k57_update_features.UpdateFeaturesRequest(feature_updates=[update])


def describe_producers(version: int, names: Names) -> Message:
    return k61_describe_producers.DescribeProducersRequest(
        topics=[k61_describe_producers.TopicRequest(name=topic, partition_indexes=[0]) for topic in names.topics]
    )


def consumer_heartbeat(version: int, names: Names) -> Message:
    return k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=names.groups[0],
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=list(names.topics),
        topic_partitions=[],
    )


def describe_topic_partitions(version: int, names: Names) -> Message:
    return k75_describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[k75_describe_topic_partitions.TopicRequest(name=topic) for topic in names.topics]
    )


def end_transactions(version: int, names: Names) -> Message:
    return k17784_end_transactions.EndTransactionsRequest(
        transactions=[
            k17784_end_transactions.TransactionToEnd(
                transactional_id=each, producer_id=names.producer(each)[0], producer_epoch=names.producer(each)[1]
            )
            for each in names.transactional_ids
        ]
    )


def acknowledge(version: int, names: Names) -> Message:
    """The broker's first two topics have the first two partitions."""
    ids = {"seen-t": 0, "hidden-t": 1}
    run = k17791_acknowledge_messages.Run()
    partitions = [
        k17791_acknowledge_messages.PartitionToAcknowledge(partition_id=ids.get(topic, 99), runs=[run])
        for topic in names.topics
    ]
    subscription = k17791_acknowledge_messages.SubscriptionToAcknowledge(name="s", partitions=partitions)
    return k17791_acknowledge_messages.AcknowledgeMessagesRequest(transaction_id=1, subscriptions=[subscription])
