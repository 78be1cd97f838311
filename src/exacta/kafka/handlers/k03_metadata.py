"""Metadata describes brokers and topics, and creates topics because a client asks for them."""

from functools import partial

from exacta.core.queries.topic_lists import topic_names
from exacta.core.queries.topics import TopicShape, topic_shape, topic_shapes
from exacta.core.rejections import Rejection
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.front.topics import create_missing
from exacta.kafka.access import allows
from exacta.kafka.at_follower import by_request
from exacta.kafka.authorized_operations import NOT_ASKED_FOR, on_cluster, on_topic
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.internal_topics import MADE
from exacta.kafka.listing import describe_all
from exacta.kafka.mutations import Mutations
from exacta.kafka.needs import Inside, or_on_cluster
from exacta.kafka.nodes import ToldCluster, told_cluster
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
from exacta.protocol.kafka.schema import NO_UUID, Message

FIRST_VERSION_WITH_NULL_NAMES = 12
FIRST_VERSION_WITH_LISTENERS = 6
"""Older clients do not know LISTENER_NOT_FOUND."""


def handle(broker: Broker, request: MetadataRequest, context: RequestContext, reply: Reply) -> None:
    """Create what is missing and may be created first, so that the first answer names it already; a leader does."""
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
    mutations = Mutations(context)

    def created(rejections: dict[str, Rejection]) -> None:
        for topic, rejection in rejections.items():
            refused[topic] = context.error_code(rejection)
        mutations.end()
        _answer(broker, request, context, wanted, refused, unseen, reply)

    for topic in to_create:
        if not is_legal_name(topic):
            refused[topic] = context.error_code(Rejection.INVALID_TOPIC)
        elif not allows(broker, context, Operation.CREATE, ResourceKind.TOPIC, topic, or_on_cluster(Operation.CREATE)):
            refused[topic] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    legal = [topic for topic in to_create if topic not in refused]
    if context.charge is not None and broker.cluster.leads:
        missing = [topic for topic in legal if broker.engine.visible(topic, 0) is None]
        mutations.take(len(missing) * broker.configuration.num_partitions)
    if broker.cluster.leads:
        create_missing(broker, context, legal, created, MADE)
        return
    absent = [topic for topic in legal if broker.engine.visible(topic, 0) is None]
    refused |= dict.fromkeys(absent, ErrorCode.LEADER_NOT_AVAILABLE)
    _answer(broker, request, context, wanted, refused, unseen, partial(_send_elsewhere, context, reply, bool(absent)))


def _send_elsewhere(context: RequestContext, reply: Reply, is_elsewhere: bool, answer: Message | None) -> None:
    """Reply, and end the connection where only the leader creates what the client asks for.

    Clients ask for metadata where they have a connection already, which would be this broker again and again.
    """
    reply(answer)
    if is_elsewhere:
        context.connection.close()


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
    nobody, cluster = _nobody(context), told_cluster(broker, context)
    if cluster.error and context.version < FIRST_VERSION_WITH_LISTENERS:
        cluster = cluster._replace(error=ErrorCode.LEADER_NOT_AVAILABLE)

    def with_operations(told: MetadataResponseTopic) -> MetadataResponseTopic:
        wanted_of = request.include_topic_authorized_operations and told.name
        if wanted_of and told.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            told.topic_authorized_operations = on_topic(broker, context, wanted_of)
        return told

    def described(topic: TopicShape) -> MetadataResponseTopic:
        return with_operations(_describe(topic, cluster))

    def described_if_seen(name: str, topic: TopicShape) -> MetadataResponseTopic | None:
        is_seen = allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, name)
        return described(topic) if is_seen else None

    def done(topics: list[MetadataResponseTopic]) -> None:
        operations = request.include_cluster_authorized_operations
        reply(
            MetadataResponse(
                brokers=[MetadataResponseBroker(**each._asdict()) for each in cluster.nodes],
                cluster_id=broker.cluster_id,
                controller_id=cluster.leader_id,
                topics=topics + unseen,
                cluster_authorized_operations=on_cluster(broker, context) if operations else NOT_ASKED_FOR,
            )
        )

    if wanted is None:
        known = broker.engine.advice.look(topic_names)
        describe_all(broker, context, known, topic_shape, described_if_seen, done)
    else:
        pairs = [(each.name or "", None if each.topic_id == NO_UUID else each.topic_id) for each in wanted]
        found = zip(wanted, broker.engine.view(partial(topic_shapes, wanted=pairs)), strict=True)
        topics = [
            with_operations(_missing(each, refused, nobody)) if topic is None else described(topic)
            for each, topic in found
        ]
        broker.when_durable(context, lambda: done(topics))


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


def _missing(asked: MetadataRequestTopic, refused: dict[str, ErrorCode], nobody: str | None) -> MetadataResponseTopic:
    """Describe a topic that is not there; `nobody` is the name of one whose id is not known."""
    if asked.topic_id != NO_UUID:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=nobody, topic_id=asked.topic_id)
    name = asked.name or ""
    code = refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(topic: TopicShape, cluster: ToldCluster) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                error_code=cluster.error,
                partition_index=index,
                leader_id=cluster.leader_id,
                leader_epoch=cluster.leader_epoch,
                replica_nodes=cluster.replicas,
                isr_nodes=cluster.replicas,
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
    at_follower=by_request(
        "It answers once it has caught up with the leader, and creates nothing. For a topic that the leader would "
        "create it says LEADER_NOT_AVAILABLE and ends the connection, so that the client asks another broker.",
        catches_up=True,
    ),
    handle=handle,
    parts=(Parts("topics", "topics", most=100, repeats=Repeats.LEFT_OUT),),
)
