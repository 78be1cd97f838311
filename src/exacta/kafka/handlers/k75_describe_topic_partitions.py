"""DescribeTopicPartitions describes topics page by page, in the order of their names (KIP-966).

A page has at most this many partitions; topics that are not there take no room in it. A cursor says where it ends.
"""

from collections.abc import Iterable

from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.kafka.access import describable_topics
from exacta.kafka.authorized_operations import on_topic
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside
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

    def view(state: State, now_ms: int) -> DescribeTopicPartitionsResponse:
        names = describable_topics(broker, context, named or sorted(state.topics))
        page = _page(state, names, cursor or Cursor(), limit, broker.node_id)
        for topic in page.topics:
            topic.topic_authorized_operations = on_topic(broker, context, topic.name or "")
        page.topics += [_refused(name) for name in sorted(set(named) - set(names))]
        return page

    broker.read(context, view, reply)


def _page(
    state: State, names: Iterable[str], cursor: Cursor, limit: int, node_id: int
) -> DescribeTopicPartitionsResponse:
    page = DescribeTopicPartitionsResponse()
    room = limit
    for name in names:
        if name < cursor.topic_name:
            continue
        if room == 0:
            page.next_cursor = Cursor(topic_name=name)
            break
        topic = state.topics.get(name)
        if topic is None:
            page.topics.append(_missing(name))
            continue
        first = cursor.partition_index if name == cursor.topic_name else 0
        end = min(first + room, topic.partition_count)
        page.topics.append(_described(topic, range(first, end), node_id, state.leader_epoch))
        if end < topic.partition_count:
            page.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        room -= max(end - first, 0)
    return page


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _described(topic: Topic, indexes: range, node_id: int, leader_epoch: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.topic,
        topic_id=topic.topic_id,
        is_internal=topic.topic in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=node_id,
                leader_epoch=leader_epoch,
                replica_nodes=[node_id],
                isr_nodes=[node_id],
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for index in indexes
        ],
    )


HANDLER = Handler(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    needs=(Inside(Operation.DESCRIBE, ResourceKind.TOPIC),),
    handle=handle,
)
