"""DeleteTopics: by name, or from version 6 on by topic id."""

from exacta.core.commands import Command, DeleteTopic
from exacta.core.rejections import Rejection
from exacta.core.state import State
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from exacta.protocol.schema import NO_UUID

KEY = ApiKey.DELETE_TOPICS
MIN_VERSION = 1
MAX_VERSION = 6
BY_ID_SINCE = 6


def handle(broker: BrokerContext, request: DeleteTopicsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete each topic for itself."""
    if context.version < BY_ID_SINCE:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    else:
        wanted = request.topics
    broker.read(
        context,
        lambda state, now_ms: _resolve(state, wanted),
        lambda results: _delete(broker, results, context, reply),
    )


def _resolve(state: State, wanted: list[DeleteTopicState]) -> list[DeletableTopicResult]:
    by_id = {topic.topic_id: topic.topic for topic in state.topics.values()}
    results = []
    for topic in wanted:
        if topic.topic_id == NO_UUID:
            known = state.topics.get(topic.name or "")
            topic_id = known.topic_id if known is not None else NO_UUID
            results.append(DeletableTopicResult(name=topic.name or "", topic_id=topic_id))
        elif topic.topic_id in by_id:
            results.append(DeletableTopicResult(name=by_id[topic.topic_id], topic_id=topic.topic_id))
        else:
            results.append(
                DeletableTopicResult(name=None, topic_id=topic.topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
            )
    return results


def _delete(broker: BrokerContext, results: list[DeletableTopicResult], context: RequestContext, reply: Reply) -> None:
    asked = [result for result in results if result.name is not None]

    def done(answers: list[Answer]) -> None:
        for result, answer in zip(asked, answers, strict=True):
            result.error_code = error_code(answer, KEY, context.version)
            if isinstance(answer, Rejection):
                result.error_message = answer.name.lower().replace("_", " ")
        reply(DeleteTopicsResponse(responses=results))

    commands: list[Command] = [DeleteTopic(topic=result.name) for result in asked if result.name is not None]
    if commands:
        broker.submit(context, commands, done)
    else:
        reply(DeleteTopicsResponse(responses=results))
