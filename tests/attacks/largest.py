"""The largest requests that the limits allow, by API: each holds up as much of the broker as one request can."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.messages import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k15_describe_groups,
    k16_list_groups,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k32_describe_configs,
    k35_describe_log_dirs,
    k42_delete_groups,
    k44_incremental_alter_configs,
    k61_describe_producers,
    k65_describe_transactions,
    k66_list_transactions,
    k68_consumer_group_heartbeat,
    k74_list_config_resources,
    k75_describe_topic_partitions,
)
from exacta.protocol.kafka.record_writing import record
from exacta.protocol.kafka.schema import Message
from exacta.readmodel.groups import AskLag
from tests.kafka.asking import question

TOPICS = 40_000
MANY = 100_000
TOPIC, ZSTD, COMPACTED = "topic-0", "zstd-22", "compacted"
MB = 1 << 20


class Attack(NamedTuple):
    """One request; `asks` says what it asks for, and `is_one_step` that its answer owes all to one state of the log."""

    asks: str
    request: Callable[[], Message]
    version: int
    is_one_step: bool = False


def names(count: int, stem: str = "topic") -> list[str]:
    """Return names of topics; the first `TOPICS` of this stem are there."""
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


def _produce(topic: str, records: bytes) -> Message:
    data = k00_produce.PartitionProduceData(index=0, records=records)
    return k00_produce.ProduceRequest(
        acks=-1, timeout_ms=1_000, topic_data=[k00_produce.TopicProduceData(name=topic, partition_data=[data])]
    )


def _text(size: int) -> bytes:
    """Return bytes that compress like text, by a rule."""
    words = [f"{number * 2_654_435_761 % 2**32:08x} ".encode() for number in range(2_000)]
    return b"".join(words[number * number % 1_999] for number in range(size // 9))


def _records(records: list[bytes]) -> bytes:
    now_ms = int(time.time() * 1000)
    return data_batch(
        records,
        len(records),
        compression=0,
        transactional=False,
        first_timestamp_ms=now_ms,
        last_timestamp_ms=now_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )


def _keyed(count: int) -> bytes:
    return _records([record(index, 0, b"%d" % index, b"v") for index in range(count)])


def _metadata(asked: list[str] | None, *, create: bool = False) -> Message:
    topic = k03_metadata.MetadataRequestTopic
    topics = None if asked is None else [topic(name=each) for each in asked]
    return k03_metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def _describe_configs(count: int) -> Message:
    resource = k32_describe_configs.DescribeConfigsResource
    return k32_describe_configs.DescribeConfigsRequest(
        resources=[resource(resource_type=2, resource_name=each) for each in names(count)]
    )


def _fetch() -> Message:
    partition = k01_fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topics = [k01_fetch.FetchTopic(topic=each, partitions=[partition]) for each in names(TOPICS)]
    return k01_fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=MB, topics=topics, session_epoch=-1)


def _list_offsets() -> Message:
    m = k02_list_offsets
    partition = m.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [m.ListOffsetsTopic(name=each, partitions=[partition]) for each in names(TOPICS)]
    return m.ListOffsetsRequest(topics=topics, isolation_level=1)


def _commit() -> Message:
    m = k08_offset_commit
    partition = m.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [m.OffsetCommitRequestTopic(name=each, partitions=[partition]) for each in names(TOPICS)]
    return m.OffsetCommitRequest(group_id="large", topics=topics)


def _fetch_offsets(group_ids: list[str], count: int | None) -> Message:
    m = k09_offset_fetch
    topic = m.OffsetFetchRequestTopics
    topics = None if count is None else [topic(name=each, partition_indexes=[0]) for each in names(count)]
    return m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id=each, topics=topics) for each in group_ids])


def _alter() -> Message:
    m = k44_incremental_alter_configs
    config = m.AlterableConfig(name="retention.ms", config_operation=0, value="1000000")
    resource = m.AlterConfigsResource
    return m.IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=2, resource_name=each, configs=[config]) for each in names(10_000)]
    )


def _delete_records() -> Message:
    m = k21_delete_records
    partitions = [m.DeleteRecordsPartition(partition_index=index, offset=0) for index in range(MANY)]
    return m.DeleteRecordsRequest(topics=[m.DeleteRecordsTopic(name=TOPIC, partitions=partitions)], timeout_ms=1_000)


def _describe_producers() -> Message:
    m = k61_describe_producers
    return m.DescribeProducersRequest(topics=[m.TopicRequest(name=TOPIC, partition_indexes=list(range(MANY)))])


def _join_by_pattern() -> Message:
    return k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="patterns",
        member_id="a-member-of-the-group-x",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=".*",
        subscribed_topic_names=[],
        topic_partitions=[],
    )


def _topics_to_create(count: int, partitions: int) -> Message:
    return k19_create_topics.CreateTopicsRequest(topics=[create(each, partitions) for each in names(count, "new")])


ATTACKS = [
    Attack(f"Metadata that creates {TOPICS:,} topics", lambda: _metadata(names(TOPICS), create=True), 12),
    Attack("Metadata of all topics", lambda: _metadata(None), 12),
    Attack(f"Metadata of {MANY:,} unknown names", lambda: _metadata(names(MANY, "unknown")), 12),
    Attack("Produce of 40 MB for zstd 22", lambda: _produce(ZSTD, _records([record(0, 0, None, _text(40 * MB))])), 9),
    Attack("Produce of 490,000 keyed records", lambda: _produce(COMPACTED, _keyed(490_000)), 9),
    Attack("DescribeConfigs of 5,000 topics", lambda: _describe_configs(5_000), 4),
    Attack(
        f"DescribeGroups of {MANY:,} invented groups",
        lambda: k15_describe_groups.DescribeGroupsRequest(groups=names(MANY, "group")),
        5,
    ),
    Attack(f"Fetch of {TOPICS:,} partitions", _fetch, 11, is_one_step=True),
    Attack(f"ListOffsets of {TOPICS:,} partitions", _list_offsets, 7, is_one_step=True),
    Attack(f"OffsetCommit of {TOPICS:,} partitions", _commit, 8, is_one_step=True),
    Attack("OffsetFetch of all of a large group", lambda: _fetch_offsets(["large"], None), 8, is_one_step=True),
    Attack(f"OffsetFetch of {MANY:,} names", lambda: _fetch_offsets(["large"], MANY), 8, is_one_step=True),
    Attack(f"OffsetFetch of {MANY:,} groups", lambda: _fetch_offsets(names(MANY, "g"), None), 8, is_one_step=True),
    Attack(
        f"FindCoordinator of {MANY:,} groups",
        lambda: k10_find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=names(MANY, "group")),
        4,
    ),
    Attack("ListGroups", k16_list_groups.ListGroupsRequest, 4),
    Attack("ListTransactions", k66_list_transactions.ListTransactionsRequest, 1),
    Attack("ListConfigResources", k74_list_config_resources.ListConfigResourcesRequest, 1),
    Attack("DescribeLogDirs of all", lambda: k35_describe_log_dirs.DescribeLogDirsRequest(topics=None), 4),
    Attack(
        "DescribeTopicPartitions",
        lambda: k75_describe_topic_partitions.DescribeTopicPartitionsRequest(response_partition_limit=2_000),
        0,
    ),
    Attack(f"DescribeProducers of {MANY:,} partitions", _describe_producers, 0),
    Attack(
        f"DescribeTransactions of {MANY:,} ids",
        lambda: k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=names(MANY, "id")),
        0,
    ),
    Attack("Ask for the lag of a large group", lambda: question(AskLag(group="large")), 0),
    Attack("ConsumerGroupHeartbeat with the pattern .*", _join_by_pattern, 1, is_one_step=True),
    Attack("CreateTopics of 10,000 topics", lambda: _topics_to_create(10_000, 1), 7),
    Attack(
        "DeleteTopics of 10,000 topics",
        lambda: k20_delete_topics.DeleteTopicsRequest(
            topics=[k20_delete_topics.DeleteTopicState(name=each) for each in names(10_000, "new")]
        ),
        6,
    ),
    Attack("CreateTopics of 10 times 5,000 partitions", lambda: _topics_to_create(10, 5_000), 7),
    Attack("IncrementalAlterConfigs of 10,000 topics", _alter, 1),
    Attack(
        f"DeleteGroups of {MANY:,} groups",
        lambda: k42_delete_groups.DeleteGroupsRequest(groups_names=names(MANY, "group")),
        2,
    ),
    Attack(f"DeleteRecords of {MANY:,} partitions", _delete_records, 2),
]
"""In this order, since some make what others ask for."""


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
