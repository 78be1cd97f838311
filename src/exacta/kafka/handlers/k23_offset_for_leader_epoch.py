"""OffsetForLeaderEpoch tells where a leader's records end (KIP-101, KIP-320): the last one's at the high watermark."""

from exacta.core.values.leader_epochs import end_of, last_epoch
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_LEADER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.leader_epoch import leader_epoch_error
from exacta.kafka.needs import Each, or_on_cluster
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

NEEDS = (
    Each(
        Operation.DESCRIBE,
        ResourceKind.TOPIC,
        "topics",
        "topics",
        name="topic",
        instead=or_on_cluster(Operation.CLUSTER_ACTION),
    ),
)


def handle(broker: Broker, request: OffsetForLeaderEpochRequest, context: RequestContext, reply: Reply) -> None:
    """Answer from what readers of uncommitted records may see."""

    def answer() -> None:
        response = OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_answer(broker, topic.topic, partition) for partition in topic.partitions],
                )
                for topic in request.topics
            ]
        )
        codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
        if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes:  # it may be one whose deletion is not durable yet
            broker.when_durable(context, lambda: reply(response))
        else:
            reply(response)

    named = ((topic.topic, each.partition) for topic in request.topics for each in topic.partitions)
    broker.when_shown(context, named, answer)


def _answer(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    visible = broker.engine.visible(topic, asked.partition)
    if visible is None:
        return EpochEndOffset(partition=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = leader_epoch_error(asked.current_leader_epoch, last_epoch(visible.leader_epochs))
    end = end_of(visible.leader_epochs, asked.leader_epoch, visible.high_watermark)
    if code != ErrorCode.NONE or end is None:
        return EpochEndOffset(partition=asked.partition, error_code=code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=end[0], end_offset=end[1])


HANDLER = Handler(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=(2, 4),
    needs=NEEDS,
    at_follower=NOT_LEADER,
    handle=handle,
    parts=(divided_by(NEEDS[0], inner="partitions", inner_answers="partitions"),),
)
