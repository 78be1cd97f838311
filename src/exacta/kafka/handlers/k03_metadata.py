"""Metadata describes brokers and topics, and creates topics because a client asks for them."""

from collections.abc import Collection

from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.state.topic import Topic
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.front.topics import create_missing
from exacta.kafka.access import allows, describable_topics
from exacta.kafka.authorized_operations import NOT_ASKED_FOR, on_cluster, on_topic
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.internal_topics import MADE
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Inside, or_on_cluster
from exacta.kafka.parts import Parts, Repeats
from exacta.kafka.request_size import first_time
from exacta.kafka.topic_names import is_legal_name
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from exacta.protocol.kafka.schema import NO_UUID

FIRST_VERSION_WITH_NULL_NAMES = 12


def handle(broker: Broker, request: MetadataRequest, context: RequestContext, reply: Reply) -> None:
    """Create what is missing and may be created first, so that the first answer names it already."""
    refused: dict[str, ErrorCode] = {}
    wanted = request.topics
    if wanted is None or (context.version == 0 and not wanted):
        wanted = None
    elif len(wanted) > 1:  # as Kafka does: each topic once
        is_first = first_time()
        wanted = [topic for topic in wanted if is_first((topic.topic_id, topic.name))]
    nobody = _nobody(context)
    unseen: list[MetadataResponseTopic] = []
    if wanted is not None and not broker.authorizer.allows_all:
        wanted, unseen = _take_out_unseen(broker, context, wanted, nobody)
    to_create = _to_create(broker, request, wanted)

    def created(rejections: dict[str, Rejection]) -> None:
        for topic, rejection in rejections.items():
            refused[topic] = context.error_code(rejection)
        _answer(broker, request, context, wanted, refused, unseen, reply)

    for topic in to_create:
        if not is_legal_name(topic):
            refused[topic] = context.error_code(Rejection.INVALID_TOPIC)
        elif not allows(broker, context, Operation.CREATE, ResourceKind.TOPIC, topic, or_on_cluster(Operation.CREATE)):
            refused[topic] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create_missing(broker, context, [topic for topic in to_create if topic not in refused], created, MADE)


def _answer(
    broker: Broker,
    request: MetadataRequest,
    context: RequestContext,
    wanted: list[MetadataRequestTopic] | None,
    refused: dict[str, ErrorCode],
    unseen: list[MetadataResponseTopic],
    reply: Reply,
) -> None:
    """Describe the topics that are wanted, or all; `unseen` are the answers to those that are not looked at."""
    nobody = _nobody(context)

    def described(topic: MetadataResponseTopic) -> MetadataResponseTopic:
        if request.include_topic_authorized_operations:
            topic.topic_authorized_operations = on_topic(broker, context, topic.name or "")
        return topic

    def done(topics: list[MetadataResponseTopic]) -> None:
        host, port = context.endpoint
        operations = request.include_cluster_authorized_operations
        reply(
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=broker.node_id, host=host, port=port)],
                cluster_id=broker.cluster_id,
                controller_id=broker.node_id,
                topics=topics + unseen,
                cluster_authorized_operations=on_cluster(broker, context) if operations else NOT_ASKED_FOR,
            )
        )

    def names(state: State) -> Collection[str]:
        return list(describable_topics(broker, context, state.topics))

    def one_of_all(state: State, now_ms: int, name: str) -> MetadataResponseTopic | None:
        topic = state.topics.get(name)
        return None if topic is None else described(_describe(topic, broker.node_id, state.leader_epoch))

    def view(state: State, now_ms: int) -> list[MetadataResponseTopic]:
        assert wanted is not None
        return list(map(described, _topics(state, wanted, refused, broker.node_id, nobody)))

    if wanted is None:
        describe_all(broker, context, names, one_of_all, done)
    else:
        broker.read(context, view, done)


def _nobody(context: RequestContext) -> str | None:
    """Return the name of a topic whose id is not known."""
    return None if context.version >= FIRST_VERSION_WITH_NULL_NAMES else ""


def _take_out_unseen(
    broker: Broker, context: RequestContext, wanted: list[MetadataRequestTopic], nobody: str | None
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """Return the topics that the client may describe, and the answers to the others, which are not looked at."""
    seen, unseen = [], []
    for topic in wanted:
        by_id = topic.topic_id != NO_UUID
        name = broker.engine.advice.topic_name(bytes(topic.topic_id)) if by_id else topic.name or ""
        if name is None or allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, name):
            seen.append(topic)
        else:
            code, shown = ErrorCode.TOPIC_AUTHORIZATION_FAILED, nobody if by_id else name
            unseen.append(MetadataResponseTopic(error_code=code, name=shown, topic_id=topic.topic_id))
    return seen, unseen


def _to_create(broker: Broker, request: MetadataRequest, wanted: list[MetadataRequestTopic] | None) -> list[str]:
    """Return the names that are created where there is no topic."""
    if not (wanted and request.allow_auto_topic_creation and broker.configuration.auto_create_topics_enable):
        return []
    return sorted({topic.name for topic in wanted if topic.name and topic.topic_id == NO_UUID})


def _topics(
    state: State,
    wanted: list[MetadataRequestTopic],
    refused: dict[str, ErrorCode],
    node_id: int,
    nobody: str | None,
) -> list[MetadataResponseTopic]:
    """Describe the topics; `nobody` is the name of one whose id is not known."""
    names = state.volatile.topic_names
    answers: list[MetadataResponseTopic] = []
    for asked in wanted:
        if asked.topic_id != NO_UUID:
            topic = state.topics.get(names.get(asked.topic_id, ""))
            code, name = ErrorCode.UNKNOWN_TOPIC_ID, nobody
        else:
            name = asked.name or ""
            topic = state.topics.get(name)
            code = refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic is not None:
            answers.append(_describe(topic, node_id, state.leader_epoch))
        else:
            is_internal = name in INTERNAL_TOPICS
            answers.append(
                MetadataResponseTopic(error_code=code, name=name, topic_id=asked.topic_id, is_internal=is_internal)
            )
    return answers


def _describe(topic: Topic, node_id: int, leader_epoch: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.topic,
        topic_id=topic.topic_id,
        is_internal=topic.topic in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=node_id,
                leader_epoch=leader_epoch,
                replica_nodes=[node_id],
                isr_nodes=[node_id],
            )
            for index in range(topic.partition_count)
        ],
    )


HANDLER = Handler(
    ApiKey.METADATA,
    versions=(0, 13),
    needs=(
        Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
        Inside(Operation.CREATE, ResourceKind.TOPIC),
        Inside(Operation.DESCRIBE, ResourceKind.CLUSTER),
    ),
    handle=handle,
    parts=(Parts("topics", "topics", most=100, repeats=Repeats.LEFT_OUT),),
)
