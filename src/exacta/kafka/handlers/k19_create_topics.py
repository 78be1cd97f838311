"""CreateTopics creates topics. Every broker is a replica of each of them, however many are asked for."""

from collections import Counter

from exacta.config.topic import TOPIC_CONFIGS, UnfitValue, checked, require_consistent
from exacta.config.topic_values import values_of
from exacta.core.commands import Command, CreateTopic
from exacta.core.rejections import Rejection
from exacta.core.replies import TopicCreatedReply
from exacta.front.broker import Broker
from exacta.front.words import words_of
from exacta.kafka.access import allows
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.config_source import SOURCE_NUMBERS
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.mutations import EXCEEDED, Mutations
from exacta.kafka.needs import Each, Inside, or_on_cluster
from exacta.kafka.nodes import can_be_on, node_ids
from exacta.kafka.parts import Repeats, divided_by
from exacta.kafka.topic_names import LEGAL_NAMES, is_legal_name
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULT = -1
"""The broker chooses the number of partitions, or of replicas (KIP-464)."""
MOST_AT_ONCE = 10_000
"""One request may name as many topics, since each is answered with its configurations. Kafka bounds partitions."""

NEEDS = (
    Each(Operation.CREATE, ResourceKind.TOPIC, "topics", "topics", instead=or_on_cluster(Operation.CREATE)),
    Inside(Operation.DESCRIBE_CONFIGS, ResourceKind.TOPIC),
)


STRICT_SINCE = 6
"""The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def handle(broker: Broker, request: CreateTopicsRequest, context: RequestContext, reply: Reply) -> None:
    """Create each topic for itself; one that is refused does not stop the others."""
    named = Counter(topic.name for topic in request.topics)
    response = CreateTopicsResponse(topics=[])
    commands: list[Command] = []
    asked: list[CreatableTopicResult] = []
    mutations = Mutations(context, STRICT_SINCE)
    for topic in request.topics:
        result = CreatableTopicResult(name=topic.name)
        response.topics.append(result)
        try:
            if named[topic.name] > 1:
                raise _Refused(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
            command = _command(broker, topic, request.validate_only)
            if not mutations.take(command.partition_count):
                raise _Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED)
        except _Refused as refused:
            result.error_code, result.error_message = refused.code, str(refused)
        else:
            commands.append(command)
            asked.append(result)

    def done(answers: list[Answer]) -> None:
        for result, command, answer in zip(asked, commands, answers, strict=True):
            assert isinstance(command, CreateTopic)
            if isinstance(answer, Rejection):
                mutations.give_back(command.partition_count)
            _fill(broker, context, result, command, answer)
        mutations.end()
        reply(response)

    if commands:
        broker.submit(context, commands, done)
    else:  # refused, maybe by an option that is not durable yet
        broker.when_durable(context, lambda: reply(response))


def _command(broker: Broker, topic: CreatableTopic, validate_only: bool) -> CreateTopic:
    if topic.assignments:
        partition_count = _assigned_partitions(broker, topic)
    else:
        takes_any, brokers = broker.configuration.accept_any_replication_factor, len(node_ids(broker))
        most = topic.replication_factor if takes_any else brokers
        if topic.replication_factor != DEFAULT and not 0 < topic.replication_factor <= most:
            raise _Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"replication factor {topic.replication_factor} is not possible: {_brokers(brokers)}; or "
                "let the broker take any, by accept.any.replication.factor=true",
            )
        partition_count = (
            broker.configuration.num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
        )
    configs = {}
    try:
        for config in topic.configs:
            if config.value is None:
                raise UnfitValue(f"{config.name} needs a value")
            configs[config.name] = checked(config.name, config.value)
        require_consistent(configs)
    except UnfitValue as unfit:
        raise _Refused(ErrorCode.INVALID_CONFIG, str(unfit)) from unfit
    if not is_legal_name(topic.name):
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, LEGAL_NAMES)
    return CreateTopic(
        topic=topic.name,
        topic_id=broker.new_uuid().bytes,
        partition_count=partition_count,
        configs=configs,
        validate_only=validate_only,
    )


def _brokers(count: int) -> str:
    return "there is one broker. Ask for 1" if count == 1 else f"there are {count} brokers. Ask for 1 to {count}"


def _assigned_partitions(broker: Broker, topic: CreatableTopic) -> int:
    if topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT:
        raise _Refused(ErrorCode.INVALID_REQUEST, "with assignments, the numbers of partitions and replicas must be -1")
    indexes = sorted(assignment.partition_index for assignment in topic.assignments)
    assigned = (assignment.broker_ids for assignment in topic.assignments)
    if indexes != list(range(len(indexes))) or not all(can_be_on(broker, each) for each in assigned):
        message = f"every partition, from 0 on, must be assigned to {node_ids(broker)}"
        raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return len(indexes)


def _fill(
    broker: Broker,
    context: RequestContext,
    result: CreatableTopicResult,
    command: CreateTopic,
    answer: Answer,
) -> None:
    if isinstance(answer, Rejection):
        result.error_code = context.error_code(answer)
        result.error_message = words_of(answer)
        if answer is Rejection.INVALID_PARTITIONS:
            limits = broker.configuration.limits()
            most, in_all = limits.max_partitions_per_topic, limits.max_partitions
            result.error_message = f"partitions: 1 to {most} in a topic, {in_all} in all"
        return
    assert isinstance(answer, TopicCreatedReply)
    result.topic_id = answer.topic_id
    if not allows(broker, context, Operation.DESCRIBE_CONFIGS, ResourceKind.TOPIC, command.topic):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return
    result.num_partitions = answer.partition_count
    result.replication_factor = len(node_ids(broker))
    result.configs = []
    for name in TOPIC_CONFIGS:
        [(_, value, source), *_] = values_of(command.configs, name, broker.options)
        result.configs.append(CreatableTopicConfigs(name=name, value=value, config_source=SOURCE_NUMBERS[source]))


HANDLER = Handler(
    ApiKey.CREATE_TOPICS,
    versions=(2, 7),
    needs=NEEDS,
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(divided_by(NEEDS[0], size="num_partitions", most=50, most_in_all=MOST_AT_ONCE, repeats=Repeats.REFUSED),),
)
