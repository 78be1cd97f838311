"""DeleteTopics deletes topics by name, or from version 6 on by topic id."""

from exacta.core.commands import Command, DeleteTopic
from exacta.core.rejections import Rejection
from exacta.core.replies import TopicDeletedReply
from exacta.front.broker import Broker
from exacta.front.words import words_of
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.mutations import EXCEEDED, Mutations
from exacta.kafka.needs import Each, or_on_cluster
from exacta.kafka.parts import Repeats, divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from exacta.protocol.kafka.schema import NO_UUID

BY_ID_SINCE = 6
STRICT_SINCE = 5
"""The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

NEEDS = (
    Each(
        Operation.DELETE,
        ResourceKind.TOPIC,
        "topic_names",
        "responses",
        name="",
        instead=or_on_cluster(Operation.DELETE),
        tells=Operation.DESCRIBE,
    ),
    Each(
        Operation.DELETE,
        ResourceKind.TOPIC,
        "topics",
        "responses",
        instead=or_on_cluster(Operation.DELETE),
        tells=Operation.DESCRIBE,
    ),
)


def handle(broker: Broker, request: DeleteTopicsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete each topic for itself; the core decides in one step which topic an id names, and deletes it."""
    if context.version < BY_ID_SINCE:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    else:
        wanted = request.topics
    mutations = Mutations(context, STRICT_SINCE)
    results = [DeletableTopicResult(name=topic.name, topic_id=topic.topic_id) for topic in wanted]
    asked: list[tuple[DeletableTopicResult, int]] = []
    commands: list[Command] = []
    for topic, result in zip(wanted, results, strict=True):
        result.error_message = _fault(topic)
        if result.error_message is not None:
            result.error_code = ErrorCode.INVALID_REQUEST
            continue
        partitions = _partition_count(broker, topic)
        if partitions and not mutations.take(partitions):
            result.error_code, result.error_message = ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED
            continue
        by_name = topic.topic_id == NO_UUID
        commands.append(DeleteTopic(topic=topic.name or "") if by_name else DeleteTopic(topic_id=bytes(topic.topic_id)))
        asked.append((result, partitions))

    def done(answers: list[Answer]) -> None:
        for (result, partitions), answer in zip(asked, answers, strict=True):
            result.error_code = context.error_code(answer)
            if isinstance(answer, TopicDeletedReply):
                result.name, result.topic_id = answer.topic, answer.topic_id
            elif isinstance(answer, Rejection):
                result.error_message = words_of(answer)
                mutations.give_back(partitions)
        mutations.end()
        reply(DeleteTopicsResponse(responses=results))

    broker.submit(context, commands, done)


def _partition_count(broker: Broker, topic: DeleteTopicState) -> int:
    """Return how many partitions would go; 0: there is no such topic."""
    advice = broker.engine.advice
    name = topic.name if topic.topic_id == NO_UUID else advice.topic_name(bytes(topic.topic_id))
    return 0 if name is None else advice.partition_count(name)


def _fault(topic: DeleteTopicState) -> str | None:
    """Return what is wrong with the way in which a topic is named, or None."""
    by_id = topic.topic_id != NO_UUID
    if topic.name is not None and by_id:
        return "a topic must not be named by its name and by its id"
    return "a topic must be named by its name or by its id" if topic.name is None and not by_id else None


HANDLER = Handler(
    ApiKey.DELETE_TOPICS,
    versions=(1, 6),
    needs=NEEDS,
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(
        divided_by(NEEDS[1], most=50, repeats=Repeats.REFUSED),
        divided_by(NEEDS[0], most=50, repeats=Repeats.REFUSED),
    ),
)
