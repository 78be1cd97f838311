"""Reads that show what `pipelined_writes` writes, and what of each answer they show."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, json

from exacta.protocol.kafka.messages import (
    k01_fetch,
    k09_offset_fetch,
    k23_offset_for_leader_epoch,
    k32_describe_configs,
    k35_describe_log_dirs,
    k61_describe_producers,
    k75_describe_topic_partitions,
)
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from exacta.protocol.kafka.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.protocol.kafka.schema import Message
from exacta.readmodel.groups import AskLag, GroupLag
from tests.kafka.pipelined_writes import NEW, TOPIC_RESOURCE, Scene
from tests.kafka.wire import values_in


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
        if answer.error_code:
            return answer.error_code
        return [
            (each.committed_offset, each.visible_end_offset, each.unread, each.held_back, len(each.held_by))
            for each in json.decode(answer.answer, type=GroupLag).partitions
        ]

    return ReadRequest(AskRequest(question=json.encode(AskLag(group=scene.group))), 0, shown)


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
    "Ask, lag": _lag,
}
