"""Steps about topics: both brokers describe them, the cluster's own among them, and refuse writes into these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages import k00_produce, k03_metadata, k75_describe_topic_partitions
from tests.differential.calls import Answer, Call, name_of, sends
from tests.differential.members import versions
from tests.differential.side import Side
from tests.differential.steps import CLIENTS, Step
from tests.kafka.wire import batch

OWN = "own"
"""The sequence's topic, whose name is each broker's own affair."""
NOWHERE = "nowhere"
_NAMES = (OWN, NOWHERE, *sorted(INTERNAL_TOPICS))


@dataclass(frozen=True, kw_only=True, repr=False)
class AskMetadata(Step):
    """Metadata of these topics, or of all (of which those that every sequence finds are compared)."""

    names: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True, repr=False)
class DescribeTopics(Step):
    """DescribeTopicPartitions."""

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class ProduceInternal(Step):
    """Produce of one record into one of the cluster's own topics."""

    topic: str
    partition: int


def _told(side: Side, topics: list[Any]) -> Answer:
    """Return what is told of the topics; which replicas and epochs there are is each cluster's own affair."""
    called = {side.topic: OWN} | {name: name for name in _NAMES[1:]}
    return tuple(
        sorted(
            (called[topic.name], name_of(topic.error_code), topic.is_internal, len(topic.partitions))
            for topic in topics
            if topic.name in called
        )
    )


@sends(AskMetadata)
def ask_metadata(side: Side, step: AskMetadata) -> Call:
    """Make a Metadata that creates nothing."""
    names = None if step.names is None else [side.topic if name == OWN else name for name in step.names]
    request = k03_metadata.MetadataRequest(
        topics=None if names is None else [k03_metadata.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
    )
    return Call(
        request=request,
        version=step.version,
        code=lambda reply: 0,
        describe=lambda reply: ("NONE", *_told(side, reply.topics)),
    )


@sends(DescribeTopics)
def describe_topics(side: Side, step: DescribeTopics) -> Call:
    """Make a DescribeTopicPartitions."""
    names = [side.topic if name == OWN else name for name in step.names]
    request = k75_describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[k75_describe_topic_partitions.TopicRequest(name=name) for name in names]
    )
    return Call(
        request=request,
        version=step.version,
        code=lambda reply: 0,
        describe=lambda reply: ("NONE", *_told(side, reply.topics)),
    )


@sends(ProduceInternal)
def produce_internal(side: Side, step: ProduceInternal) -> Call:
    """Make a Produce of nobody's transaction."""
    data = k00_produce.PartitionProduceData(index=step.partition, records=batch(b"v"))
    topic = k00_produce.TopicProduceData(name=step.topic, partition_data=[data])
    request = k00_produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])

    def code(reply: Any) -> int:
        [found] = reply.responses[0].partition_responses
        return int(found.error_code)

    return Call(request=request, version=step.version, code=code, describe=lambda reply: (name_of(code(reply)),))


_client = st.sampled_from(CLIENTS)
_names = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4, unique=True).map(tuple)

telling = st.one_of(
    st.builds(
        AskMetadata, client=_client, version=versions(ApiKey.METADATA, 4, 12), names=st.one_of(st.none(), _names)
    ),
    st.builds(DescribeTopics, client=_client, version=st.just(0), names=_names),
    st.builds(
        ProduceInternal,
        client=_client,
        version=versions(ApiKey.PRODUCE, 3, 12),
        topic=st.sampled_from(sorted(INTERNAL_TOPICS)),
        partition=st.sampled_from([0, 49, 50]),
    ),
)
"""Questions about topics."""
