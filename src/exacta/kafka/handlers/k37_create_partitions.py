"""CreatePartitions lets topics grow; a partition is on every broker, whichever it is assigned to (KIP-195)."""

from collections import Counter

from exacta.core.commands import Command, CreatePartitions
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.words import words_of
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.mutations import EXCEEDED, Mutations
from exacta.kafka.needs import Each
from exacta.kafka.nodes import can_be_on, node_ids
from exacta.kafka.parts import Repeats, divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_SINCE = 3
"""The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

NEEDS = (Each(Operation.ALTER, ResourceKind.TOPIC, "topics", "results"),)


def handle(broker: Broker, request: CreatePartitionsRequest, context: RequestContext, reply: Reply) -> None:
    """Let each topic grow for itself; one that is refused does not stop the others."""
    named = Counter(topic.name for topic in request.topics)
    response = CreatePartitionsResponse()
    commands: list[Command] = []
    mutations = Mutations(context, STRICT_SINCE)
    asked: list[tuple[CreatePartitionsTopicResult, CreatePartitionsTopic, int, str | None]] = []
    for topic in request.topics:
        result = CreatePartitionsTopicResult(name=topic.name)
        response.results.append(result)
        if named[topic.name] > 1:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "the request names this topic more than once"
            continue
        wrong = _wrong_assignment(broker, topic)
        present = broker.engine.advice.partition_count(topic.name)
        if present and not mutations.take(max(topic.count - present, 0)):
            result.error_code, result.error_message = ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED
            continue
        asked.append((result, topic, present, wrong))
        # Where it was refused anyway for its number, that is the answer.
        commands.append(_command(topic, validate_only=request.validate_only or wrong is not None))

    def done(answers: list[Answer]) -> None:
        for (result, wanted, present, wrong), answer in zip(asked, answers, strict=True):
            result.error_code = context.error_code(answer)
            if isinstance(answer, Rejection):
                result.error_message = _why(broker, wanted, present, answer)
            elif wrong is not None:
                result.error_code, result.error_message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong
            if present and result.error_code != ErrorCode.NONE:
                mutations.give_back(max(wanted.count - present, 0))
        mutations.end()
        reply(response)

    if commands:
        broker.submit(context, commands, done)
    else:
        reply(response)


def _command(topic: CreatePartitionsTopic, *, validate_only: bool) -> CreatePartitions:
    return CreatePartitions(
        topic=topic.name,
        total_count=topic.count,
        assigned_count=None if topic.assignments is None else len(topic.assignments),
        validate_only=validate_only,
    )


def _wrong_assignment(broker: Broker, topic: CreatePartitionsTopic) -> str | None:
    if all(can_be_on(broker, assignment.broker_ids) for assignment in topic.assignments or ()):
        return None
    return f"every new partition must be assigned to {node_ids(broker)}"


def _why(broker: Broker, wanted: CreatePartitionsTopic, present: int, rejection: Rejection) -> str:
    if rejection is Rejection.INVALID_PARTITIONS and wanted.count <= present:
        return f"{wanted.name} has {present} partition(s) already: {wanted.count} would not be more"
    if rejection is Rejection.INVALID_PARTITIONS:
        limits = broker.configuration.limits()
        most, in_all = limits.max_partitions_per_topic, limits.max_partitions
        return f"partitions: at most {most} in a topic, {in_all} in all"
    if rejection is Rejection.INVALID_REPLICA_ASSIGNMENT:
        return "the assignments must be as many as the partitions that are added"
    return words_of(rejection)


HANDLER = Handler(
    ApiKey.CREATE_PARTITIONS,
    versions=(0, 3),
    needs=NEEDS,
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(divided_by(NEEDS[0], size="count", most=50, repeats=Repeats.REFUSED),),
)
