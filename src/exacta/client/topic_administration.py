"""Create, look at, enlarge and delete topics, as an administrator does (KIP-4, KIP-195).

This module owns the shapes of these requests. Each names one topic, so that a request which is repeated repeats nothing
that was done already. What a cluster refuses is raised in its own words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.errors import ErrorClass, KafkaError, classify
from exacta.client.routing import Anyone, Client, Controller, Leader, Route
from exacta.client.topics import new_topic
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k19_create_topics import CreateTopicsRequest
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest
from exacta.protocol.kafka.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from exacta.protocol.kafka.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from exacta.protocol.kafka.schema import NO_UUID, Message

CLUSTER_DEFAULT = -1
"""The number of partitions, or of replicas, that stands for the cluster's own default (KIP-464)."""

_TIMEOUT_MS = 30_000
"""A controller waits so long until all brokers know what was done."""


class PartitionDescription(NamedTuple):
    """A partition and its replicas, by the ids of brokers. `leader` is None where it has none now."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class TopicDescription(NamedTuple):
    """A topic as Metadata shows it; its partitions are in their order."""

    name: str
    topic_id: bytes | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """Return how many replicas each partition has, at most."""
        return max((len(each.replicas) for each in self.partitions), default=0)


def add_topic(
    client: Client,
    topic: str,
    *,
    partitions: int = CLUSTER_DEFAULT,
    replication_factor: int = CLUSTER_DEFAULT,
    configs: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> tuple[int, int]:
    """Create a topic; return its partitions and its replication factor, as far as the cluster tells them (else -1).

    Raises `KafkaError`: TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_PARTITIONS and so on.
    """
    request = CreateTopicsRequest(
        topics=[new_topic(topic, partitions, replication_factor, configs or {})],
        timeout_ms=_TIMEOUT_MS,
        validate_only=dry_run,
    )
    reply = ask(client, Controller(), request, what=f"creating topic '{topic}'", entries=lambda reply: reply.topics)
    (created,) = reply.topics
    return created.num_partitions, created.replication_factor


def delete_topic(client: Client, topic: str) -> None:
    """Delete a topic; raises `KafkaError`, UNKNOWN_TOPIC_OR_PARTITION where there is none."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=_TIMEOUT_MS)
    ask(client, Controller(), request, what=f"deleting topic '{topic}'", entries=lambda reply: reply.responses)


def add_partitions_to_topic(client: Client, topic: str, count: int, *, dry_run: bool = False) -> None:
    """Enlarge a topic to `count` partitions; raises `KafkaError`, INVALID_PARTITIONS where it has as many."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count)], timeout_ms=_TIMEOUT_MS, validate_only=dry_run
    )
    what = f"adding partitions to topic '{topic}'"
    ask(client, Controller(), request, what=what, entries=lambda reply: reply.results)


def delete_records(client: Client, partition: TopicPartition, before: int) -> int:
    """Delete the records below an offset (KIP-107); return the first offset that there is now.

    Raises `KafkaError`: OFFSET_OUT_OF_RANGE beyond the end, POLICY_VIOLATION where the topic is only compacted.
    """
    asked = DeleteRecordsPartition(partition_index=partition.partition, offset=before)
    topic = DeleteRecordsTopic(name=partition.topic, partitions=[asked])
    reply = ask(
        client,
        Leader(*partition),
        DeleteRecordsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS),
        what=f"deleting the records of {partition} below {before}",
        entries=lambda reply: [each for topic in reply.topics for each in topic.partitions],
    )
    ((result,),) = (topic.partitions for topic in reply.topics)
    low_watermark: int = result.low_watermark
    return low_watermark


def describe_topics(client: Client, topics: Sequence[str] | None = None) -> list[TopicDescription]:
    """Return the topics of these names that there are, or all that this client may see, by name.

    Raises `KafkaError`, TOPIC_AUTHORIZATION_FAILED for a name that this client may not see.
    """
    named = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
    reply = client.call(
        Anyone(),
        MetadataRequest(topics=named, allow_auto_topic_creation=False),
        what="looking up topics",
        # A partition without a leader is shown, and a topic that is not there is left out.
        codes=lambda reply: [
            each.error_code
            for each in reply.topics
            if each.error_code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
        ],
    )
    found = [_described(each) for each in reply.topics if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    return sorted(found, key=lambda each: each.name)


def _described(topic: Any) -> TopicDescription:
    partitions = [
        PartitionDescription(
            each.partition_index,
            each.leader_id if each.leader_id >= 0 else None,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
        )
        for each in topic.partitions
    ]
    topic_id = None if topic.topic_id == NO_UUID else topic.topic_id
    return TopicDescription(topic.name, topic_id, topic.is_internal, tuple(sorted(partitions)))


def ask(
    client: Client,
    route: Route,
    request: Message,
    *,
    what: str,
    entries: Callable[[Any], Iterable[Any]],
    deadline: Deadline | None = None,
) -> Any:
    """Send a request whose reply has an error code and the broker's own words in each entry; return the reply.

    Raises `KafkaError` for the first code that may not be retried, and for a topic that is not there at once.
    """
    reply = client.call(
        route,
        request,
        what=what,
        codes=lambda reply: [each.error_code for each in entries(reply) if _passes(each.error_code)],
        deadline=deadline,
    )
    for each in entries(reply):
        if each.error_code != ErrorCode.NONE:
            error = client.refused(request, each.error_code, what)
            raise error if error.detail else KafkaError(each.error_code, what, getattr(each, "error_message", None))
    return reply


def _passes(code: int) -> bool:
    return code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and classify(code) is ErrorClass.RETRIABLE
