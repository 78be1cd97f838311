"""DeleteTopics: by name, or from version 6 on by topic id."""

from exacta.core.commands import Command, DeleteTopic
from exacta.core.rejections import Rejection
from exacta.core.replies import TopicDeletedReply
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from exacta.protocol.kafka.schema import NO_UUID

KEY = ApiKey.DELETE_TOPICS
MIN_VERSION = 1
MAX_VERSION = 6
BY_ID_SINCE = 6


def handle(broker: BrokerContext, request: DeleteTopicsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete each topic for itself; which one an id names is decided with the deletion, in one step."""
    if context.version < BY_ID_SINCE:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    else:
        wanted = request.topics
    commands: list[Command] = [
        DeleteTopic(topic=topic.name or "")
        if topic.topic_id == NO_UUID
        else DeleteTopic(topic_id=bytes(topic.topic_id))
        for topic in wanted
    ]

    def done(answers: list[Answer]) -> None:
        results = []
        for topic, answer in zip(wanted, answers, strict=True):
            result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
            result.error_code = error_code(answer, KEY, context.version)
            if isinstance(answer, TopicDeletedReply):
                result.name, result.topic_id = answer.topic, answer.topic_id
            elif isinstance(answer, Rejection):
                result.error_message = answer.name.lower().replace("_", " ")
            results.append(result)
        reply(DeleteTopicsResponse(responses=results))

    broker.submit(context, commands, done)
