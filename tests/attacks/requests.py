"""The builders of the largest requests: each names as much as its limits allow, or as a test wants."""

from collections.abc import Iterator
from typing import Any

from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.messages import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k19_create_topics,
    k21_delete_records,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k29_describe_acls,
    k30_create_acls,
    k31_delete_acls,
    k32_describe_configs,
    k33_alter_configs,
    k44_incremental_alter_configs,
    k47_offset_delete,
    k49_alter_client_quotas,
    k51_alter_user_scram_credentials,
    k61_describe_producers,
    k68_consumer_group_heartbeat,
    k17784_end_transactions,
    k17788_reset_subscription,
    k17791_acknowledge_messages,
)
from exacta.protocol.kafka.record_writing import record
from exacta.protocol.kafka.schema import Message

TOPIC, ZSTD, COMPACTED = "topic-0", "zstd-22", "compacted"
MB = 1 << 20
ID = "large-transaction"


def names(count: int, stem: str = "topic") -> list[str]:
    """Return this many names."""
    return [f"{stem}-{number}" for number in range(count)]


def create(name: str, partitions: int = 1, **configs: str) -> k19_create_topics.CreatableTopic:
    """Return a topic to be created; `_` stands for `.` in the names of its configurations."""
    config = k19_create_topics.CreatableTopicConfig
    return k19_create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[config(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def setting_up() -> Message:
    """Return the request for topics that compress and compact."""
    largest = str(64 * MB)
    return k19_create_topics.CreateTopicsRequest(
        topics=[
            create(ZSTD, compression_type="zstd", compression_zstd_level="22", max_message_bytes=largest),
            create(COMPACTED, cleanup_policy="compact", max_message_bytes=largest),
        ]
    )


def produce(topic: str, batch: bytes) -> Message:
    data = k00_produce.PartitionProduceData(index=0, records=batch)
    return k00_produce.ProduceRequest(
        acks=-1, timeout_ms=1_000, topic_data=[k00_produce.TopicProduceData(name=topic, partition_data=[data])]
    )


def text(size: int) -> bytes:
    """Return bytes that compress like text, by a rule."""
    words = [f"{number * 2_654_435_761 % 2**32:08x} ".encode() for number in range(2_000)]
    return b"".join(words[number * number % 1_999] for number in range(size // 9))


def long_record(size: int) -> bytes:
    """Return a record whose value compresses like text."""
    return record(0, 0, None, text(size))


def records(written: list[bytes]) -> bytes:
    return data_batch(
        written,
        len(written),
        compression=0,
        transactional=False,
        first_timestamp_ms=1,
        last_timestamp_ms=1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )


def keyed(count: int) -> bytes:
    return records([record(index, 0, b"%d" % index, b"v") for index in range(count)])


def metadata(asked: list[str] | None, *, create: bool = False) -> Message:
    topic = k03_metadata.MetadataRequestTopic
    topics = None if asked is None else [topic(name=each) for each in asked]
    return k03_metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def describe_configs(count: int) -> Message:
    resource = k32_describe_configs.DescribeConfigsResource
    return k32_describe_configs.DescribeConfigsRequest(
        resources=[resource(resource_type=2, resource_name=each) for each in names(count)]
    )


def fetch(count: int, session_epoch: int = -1) -> Message:
    partition = k01_fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topics = [k01_fetch.FetchTopic(topic=each, partitions=[partition]) for each in names(count)]
    return k01_fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=MB, topics=topics, session_epoch=session_epoch)


def list_offsets(count: int, timestamp: int = -1) -> Message:
    m = k02_list_offsets
    partition = m.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [m.ListOffsetsTopic(name=each, partitions=[partition]) for each in names(count)]
    return m.ListOffsetsRequest(topics=topics, isolation_level=1)


def commit(count: int, group: str = "large") -> Message:
    m = k08_offset_commit
    partition = m.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [m.OffsetCommitRequestTopic(name=each, partitions=[partition]) for each in names(count)]
    return m.OffsetCommitRequest(group_id=group, topics=topics)


def fetch_offsets(group_ids: list[str], count: int | None) -> Message:
    m = k09_offset_fetch
    topic = m.OffsetFetchRequestTopics
    topics = None if count is None else [topic(name=each, partition_indexes=[0]) for each in names(count)]
    return m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id=each, topics=topics) for each in group_ids])


def alter(count: int) -> Message:
    m = k44_incremental_alter_configs
    config = m.AlterableConfig(name="retention.ms", config_operation=0, value="1000000")
    resource = m.AlterConfigsResource
    return m.IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=2, resource_name=each, configs=[config]) for each in names(count)]
    )


def delete_records(count: int) -> Message:
    m = k21_delete_records
    partitions = [m.DeleteRecordsPartition(partition_index=index, offset=0) for index in range(count)]
    return m.DeleteRecordsRequest(topics=[m.DeleteRecordsTopic(name=TOPIC, partitions=partitions)], timeout_ms=1_000)


def describe_producers(count: int) -> Message:
    m = k61_describe_producers
    return m.DescribeProducersRequest(topics=[m.TopicRequest(name=TOPIC, partition_indexes=list(range(count)))])


def join_by_pattern() -> Message:
    return k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="patterns",
        member_id="a-member-of-the-group-x",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=".*",
        subscribed_topic_names=[],
        topic_partitions=[],
    )


def topics_to_create(count: int, partitions: int) -> Message:
    return k19_create_topics.CreateTopicsRequest(topics=[create(each, partitions) for each in names(count, "new")])


def produce_to(count: int) -> Message:
    """Return a request that writes one record to each of many topics."""
    batch = records([record(0, 0, None, b"v")])
    data = [k00_produce.PartitionProduceData(index=0, records=batch)]
    topics = [k00_produce.TopicProduceData(name=each, partition_data=data) for each in names(count)]
    return k00_produce.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics)


def commit_in_transaction(count: int) -> Message:
    m = k28_txn_offset_commit
    partition = m.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [m.TxnOffsetCommitRequestTopic(name=each, partitions=[partition]) for each in names(count)]
    return m.TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id="in-transactions",
        producer_id=0,
        producer_epoch=0,
        generation_id=-1,
        topics=topics,
    )


def add_partitions(count: int) -> Message:
    m = k24_add_partitions_to_txn
    topics = [m.AddPartitionsToTxnTopic(name=each, partitions=[0]) for each in names(count)]
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=0,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )


def write_markers(count: int) -> Message:
    m = k27_write_txn_markers
    topic = m.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    return m.WriteTxnMarkersRequest(
        markers=[m.WritableTxnMarker(producer_id=each, producer_epoch=0, topics=[topic]) for each in range(count)]
    )


def epochs(count: int) -> Message:
    m = k23_offset_for_leader_epoch
    partitions = [m.OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in range(count)]
    return m.OffsetForLeaderEpochRequest(topics=[m.OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)])


def alter_in_full(count: int) -> Message:
    m = k33_alter_configs
    configs = [m.AlterableConfig(name="retention.ms", value="1000000")]
    return m.AlterConfigsRequest(
        resources=[
            m.AlterConfigsResource(resource_type=2, resource_name=each, configs=configs) for each in names(count)
        ]
    )


def delete_offsets(count: int) -> Message:
    m = k47_offset_delete
    partition = m.OffsetDeleteRequestPartition(partition_index=0)
    topics = [m.OffsetDeleteRequestTopic(name=each, partitions=[partition]) for each in names(count)]
    return m.OffsetDeleteRequest(group_id="large", topics=topics)


def end_transactions(count: int) -> Message:
    m = k17784_end_transactions
    return m.EndTransactionsRequest(
        committed=True, transactions=[m.TransactionToEnd(transactional_id=each) for each in names(count, "id")]
    )


def reset(count: int) -> Message:
    m = k17788_reset_subscription
    topics = [m.TopicReset(name=each, partitions=[m.PartitionReset()]) for each in names(count)]
    return m.ResetSubscriptionRequest(subscription="s", topics=topics)


def acknowledge(count: int) -> Message:
    m = k17791_acknowledge_messages
    runs = [m.Run(first_offset=0, last_offset=0)]
    partitions = [m.PartitionToAcknowledge(partition_id=each, runs=runs) for each in range(count)]
    return m.AcknowledgeMessagesRequest(
        transaction_id=0, subscriptions=[m.SubscriptionToAcknowledge(name="s", partitions=partitions)]
    )


def codes(answer: Any) -> Iterator[int]:
    """Yield the error codes that lie anywhere in an answer."""
    for field in answer.__struct_fields__:
        value = getattr(answer, field)
        if field == "error_code":
            yield value
        elif isinstance(value, list):
            for each in value:
                if hasattr(each, "__struct_fields__"):
                    yield from codes(each)


def create_acls(count: int) -> Message:
    """Make so many access rules."""
    return k30_create_acls.CreateAclsRequest(
        creations=[
            k30_create_acls.AclCreation(
                resource_type=2, resource_name=each, principal="User:alice", host="*", operation=3, permission_type=3
            )
            for each in names(count)
        ]
    )


ALL_RULES: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def describe_acls() -> Message:
    """List all access rules."""
    return k29_describe_acls.DescribeAclsRequest(**ALL_RULES)


def delete_acls(count: int) -> Message:
    """Delete by so many filters, each of which looks at every rule and matches none."""
    filters = [k31_delete_acls.DeleteAclsFilter(**ALL_RULES | {"host_filter": each}) for each in names(count)]
    return k31_delete_acls.DeleteAclsRequest(filters=filters)


def set_keys(count: int) -> Message:
    """Set the keys of so many users."""
    return k51_alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        upsertions=[
            k51_alter_user_scram_credentials.ScramCredentialUpsertion(
                name=each, mechanism=2, iterations=4_096, salt=b"salt", salted_password=bytes(64)
            )
            for each in names(count, "user")
        ]
    )


def set_quotas(count: int) -> Message:
    """Set the quotas of so many users."""
    return k49_alter_client_quotas.AlterClientQuotasRequest(
        entries=[
            k49_alter_client_quotas.EntryData(
                entity=[k49_alter_client_quotas.EntityData(entity_type="user", entity_name=each)],
                ops=[k49_alter_client_quotas.OpData(key="producer_byte_rate", value=1e6)],
            )
            for each in names(count, "user")
        ]
    )
