"""DescribeTopicPartitions describes topics page by page, in the order of their names (KIP-966).

A page has at most this many partitions; topics that are not there take no room in it. A cursor says where it ends.
"""

from functools import partial

from exacta.core.queries.topics import PagedTopic, sorted_topic_names, topic_page
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.access import allows
from exacta.kafka.at_follower import CATCHES_UP
from exacta.kafka.authorized_operations import on_topic
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside
from exacta.kafka.nodes import ToldCluster, told_cluster
from exacta.kafka.topic_names import is_legal_name
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

MOST_PARTITIONS = 2000
"""The bound on partitions of one answer, whatever a client asks for."""


def handle(broker: Broker, request: DescribeTopicPartitionsRequest, context: RequestContext, reply: Reply) -> None:
    """Describe the topics that are named, or all, from the cursor on."""
    named = sorted({topic.name for topic in request.topics})
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        refused = [
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=name) for name in named
        ]
        reply(DescribeTopicPartitionsResponse(topics=refused))
        return
    limit = max(1, min(request.response_partition_limit, MOST_PARTITIONS))

    begin = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    everything = named or broker.engine.view(sorted_topic_names)

    def steps() -> Steps:
        names = everything
        if not broker.authorizer.allows_all:
            seen = []
            for name in everything:
                if (named or name >= begin[0]) and allows(
                    broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, name
                ):
                    seen.append(name)
                yield None
            there = set(named or broker.engine.view(sorted_topic_names))  # some may have gone since the first step
            names = [name for name in seen if name in there]
        page = broker.engine.view(partial(topic_page, names=names, begin=begin, limit=limit))
        cluster = told_cluster(broker, context)
        topics = [_told(each, cluster) for each in page.topics]
        for topic in topics:
            topic.topic_authorized_operations = on_topic(broker, context, topic.name or "")
            yield None
        topics += [_refused(name) for name in sorted(set(named) - set(names))]
        following = page.following
        next_cursor = None if following is None else Cursor(topic_name=following[0], partition_index=following[1])
        answer = DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
        broker.when_durable(context, lambda: reply(answer))

    context.in_steps(steps())


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _told(found: PagedTopic, cluster: ToldCluster) -> DescribeTopicPartitionsResponseTopic:
    if found.shape is None:
        return _missing(found.name)
    return DescribeTopicPartitionsResponseTopic(
        name=found.name,
        topic_id=found.shape.topic_id,
        is_internal=found.name in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=cluster.error,
                partition_index=index,
                leader_id=cluster.leader_id,
                leader_epoch=cluster.leader_epoch,
                replica_nodes=cluster.replicas,
                isr_nodes=cluster.replicas,
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for index in range(found.first, found.end)
        ],
    )


HANDLER = Handler(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    needs=(Inside(Operation.DESCRIBE, ResourceKind.TOPIC),),
    at_follower=CATCHES_UP,
    handle=handle,
)
