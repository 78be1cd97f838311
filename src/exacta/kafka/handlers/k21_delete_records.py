"""DeleteRecords deletes from the beginning of partitions (KIP-107). The cleaner frees their space later."""

from exacta.config.topic import only_compacts
from exacta.core.commands import Command, DeleteRecords
from exacta.core.replies import RecordsDeleted
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_LEADER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NO_LOW_WATERMARK = -1

NEEDS = (Each(Operation.DELETE, ResourceKind.TOPIC, "topics", "topics"),)


def handle(broker: Broker, request: DeleteRecordsRequest, context: RequestContext, reply: Reply) -> None:
    """Delete the records of each partition for itself."""
    response = DeleteRecordsResponse()
    commands: list[Command] = []
    asked: list[DeleteRecordsPartitionResult] = []
    for topic in request.topics:
        is_internal = topic.name in INTERNAL_TOPICS
        allowed = not is_internal and not only_compacts(broker.topic_configs(topic.name) or {})
        result = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(result)
        for partition in topic.partitions:
            index = partition.partition_index
            asked.append(DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_LOW_WATERMARK))
            result.partitions.append(asked[-1])
            commands.append(
                DeleteRecords(topic=topic.name, partition=index, before_offset=partition.offset, allowed=allowed)
            )

    def done(answers: list[Answer]) -> None:
        for result, answer in zip(asked, answers, strict=True):
            result.error_code = context.error_code(answer)
            if isinstance(answer, RecordsDeleted):
                result.low_watermark = answer.log_start_offset
        reply(response)

    if commands:
        broker.submit(context, commands, done)
    else:
        reply(response)


HANDLER = Handler(
    ApiKey.DELETE_RECORDS,
    versions=(0, 2),
    needs=NEEDS,
    at_follower=NOT_LEADER,
    handle=handle,
    refusal={"low_watermark": NO_LOW_WATERMARK},
    parts=(divided_by(NEEDS[0], inner="partitions", inner_answers="partitions"),),
)
