"""Topics and their offsets: create, look at, list the first, last and last stable offsets.

This module owns the shapes of CreateTopics and ListOffsets and their spreading over leaders.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from exacta.client.deadline import Backoff, Deadline, for_one_request
from exacta.client.errors import ConnectionLost, ErrorClass, KafkaError
from exacta.client.routing import Anyone, Client, Controller, Leader
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

EARLIEST = -2
LATEST = -1

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

READ = 3
"""Operations on a topic, by the numbers of Kafka's `AclOperation`."""
WRITE = 4
_OPERATIONS_UNTOLD = -(2**31)


def new_topic(name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> CreatableTopic:
    """Return a topic as CreateTopics names it."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def create_topic(
    client: Client,
    topic: str,
    *,
    partitions: int,
    replication_factor: int = 1,
    configs: Mapping[str, str] | None = None,
    deadline: Deadline | None = None,
) -> bool:
    """Create a topic; return False where it exists already."""
    request = CreateTopicsRequest(topics=[new_topic(topic, partitions, replication_factor, configs or {})])
    response = client.call(
        Controller(),
        request,
        what=f"creating topic '{topic}'",
        codes=lambda reply: (
            entry.error_code for entry in reply.topics if entry.error_code != ErrorCode.TOPIC_ALREADY_EXISTS
        ),
        deadline=deadline,
    )
    return all(entry.error_code == ErrorCode.NONE for entry in response.topics)


class TopicAccess(NamedTuple):
    """The answer of a cluster about a topic, and about what this user may do with it."""

    partitions: int
    operations: frozenset[int] | None  # by Kafka's numbers (KIP-430); None: it does not say


def look_at_topic(client: Client, topic: str, deadline: Deadline | None = None) -> TopicAccess | None:
    """Return what the cluster says of a topic, None where there is none; creates nothing.

    Raises `KafkaError`, TOPIC_AUTHORIZATION_FAILED where the user may not even see it.
    """
    response = client.call(
        Anyone(),
        MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        what=f"looking up topic '{topic}'",
        codes=lambda reply: (
            entry.error_code for entry in reply.topics if entry.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
        deadline=deadline,
    )
    (found,) = response.topics
    if found.error_code != ErrorCode.NONE:
        return None
    bits = found.topic_authorized_operations
    told = bits != _OPERATIONS_UNTOLD
    operations = frozenset(number for number in range(32) if bits >> number & 1) if told else None
    return TopicAccess(len(found.partitions), operations)


def list_offsets(
    client: Client,
    partitions: Iterable[TopicPartition],
    at: int | Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_COMMITTED,
    deadline: Deadline | None = None,
) -> dict[TopicPartition, int]:
    """Return an offset of each partition: `at` is EARLIEST, LATEST or a timestamp in ms (first offset not older).

    It is one for all partitions, or one for each. With READ_COMMITTED the latest offset is the last stable one. A
    timestamp after all records yields -1. The offsets come in the order in which they are asked for, not in the
    order of the answers.
    """
    deadline = deadline or client.deadline()
    wanted = list(dict.fromkeys(partitions))
    missing = wanted
    found: dict[TopicPartition, int] = {}
    backoff = Backoff()
    while missing:
        failure: Exception | None = None
        try:
            by_node = _by_leader(client, missing, deadline)
            for node_id, group in by_node.items():
                reply = client.broker(node_id, deadline).call(
                    _request(group, at, isolation_level), for_one_request(deadline)
                )
                failure = _collect(client, reply, found) or failure
        except ConnectionLost as lost:
            for partition in missing:
                client.forget(Leader(*partition))
            failure = lost
        missing = [each for each in wanted if each not in found]
        if missing:
            backoff.wait(deadline, failure or ConnectionLost(f"no offsets of {len(missing)} partitions"))
    return {each: found[each] for each in wanted}


def _by_leader(
    client: Client, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[int, list[TopicPartition]]:
    by_node: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = client.resolve(Leader(*partition), deadline)
        assert leader is not None
        by_node.setdefault(leader, []).append(partition)
    return by_node


def _request(
    partitions: Iterable[TopicPartition], at: int | Mapping[TopicPartition, int], isolation_level: int
) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for partition in partitions:
        wanted = at if isinstance(at, int) else at[partition]
        entry = ListOffsetsPartition(partition_index=partition.partition, timestamp=wanted)
        topics.setdefault(partition.topic, []).append(entry)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=entries) for topic, entries in topics.items()],
    )


def _collect(client: Client, reply: Any, found: dict[TopicPartition, int]) -> KafkaError | None:
    """Add what was answered to `found`; return a failure worth repeating, raise any other."""
    failure: KafkaError | None = None
    for topic in reply.topics:
        for entry in topic.partitions:
            partition = TopicPartition(topic.name, entry.partition_index)
            if entry.error_code == ErrorCode.NONE:
                found[partition] = entry.offset
                continue
            what = f"reading the offsets of {topic.name}-{entry.partition_index}"
            part = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic.name)])
            error = client.refused(part, entry.error_code, what)
            if error.error_class is not ErrorClass.RETRIABLE:
                raise error
            client.forget(Leader(*partition))
            failure = error
    return failure
