"""Topics as Pulsar's clients name them: read, found in the log, and created where they may be.

A topic of one partition is not partitioned for Pulsar's clients, and one of several is (decision 0032).
"""

from collections.abc import Callable

from exacta.core.ids import PartitionId
from exacta.core.rejections import Rejection
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.front.topics import create_missing
from exacta.front.words import words_of
from exacta.ports.authorizer import CLUSTER, Operation
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.protocol.pulsar.topic_names import InvalidTopicName, TopicName, parse_topic_name
from exacta.pulsar.answering import AnsweringRequest
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.errors import server_error
from exacta.pulsar.needs import allows
from exacta.pulsar.producers import Place
from exacta.pulsar.topic_names import coordinator_partition, kafka_name


def parsed_name(request: AnsweringRequest, topic: str) -> TopicName | None:
    """Read a topic's name; answer the request and return None if no topic here can have it."""
    try:
        name = parse_topic_name(topic)
        kafka_name(name)
    except InvalidTopicName as invalid:
        request.refuse(ServerError.InvalidTopicName, str(invalid))
        return None
    return name


def ordinary_name(request: AnsweringRequest, topic: str) -> TopicName | None:
    """Read the name of a topic that is not the cluster's own. None: it is another one, and the request is answered."""
    name = parsed_name(request, topic)
    if name is not None and (coordinator_partition(name) or kafka_name(name) in INTERNAL_TOPICS):
        request.refuse(ServerError.NotAllowedError, f"{name} is the cluster's own")
        return None
    return name


def _not_found(name: TopicName) -> ServerError:
    return ServerError.TopicNotFound


def find_topic(
    broker: Broker,
    request: AnsweringRequest,
    topic: str,
    found: Callable[[TopicName, Place], None],
    *,
    creates: bool = True,
    error_of: Callable[[TopicName], ServerError] = _not_found,
) -> None:
    """Call back with the name and the place of a topic, once it is there; refuse the request where it is not to be.

    `error_of` returns the error of that answer.

    The name of a partition creates nothing. A topic of several partitions that is named as a whole is its first one:
    a client that took it for one that is not partitioned goes on after partitions were added.
    """
    name = ordinary_name(request, topic)
    if name is None:
        return
    log_name = kafka_name(name)
    place = (log_name, name.partition or 0)
    count = broker.engine.advice.partition_count(log_name)
    if place[1] < count:
        broker.when_durable(request, lambda: found(name, place))
        return
    may_create = (
        creates
        and name.partition is None
        and broker.configuration.auto_create_topics_enable
        and _may_create(broker, request, log_name)
    )
    if not may_create:
        text = f"{name} is not there"
        broker.when_durable(request, lambda: request.refuse(error_of(name), text))
        return

    def created(refusals: dict[str, Rejection]) -> None:
        rejection = refusals.get(log_name)
        if rejection is None:
            found(name, place)
        else:
            request.refuse(server_error(rejection), f"{name} cannot be created: {words_of(rejection)}")

    create_missing(broker, request, [log_name], created)


def partition_to_open(
    broker: Broker,
    request: PulsarRequest,
    topic: TopicName,
    place: Place,
    error_of: Callable[[TopicName], ServerError] = _not_found,
) -> PartitionId | None:
    """Return the id of a partition on which something is to be opened. None: it cannot be, and the request is answered.

    While the topic was looked for, or created, it may have been deleted, and the client may have gone.
    """
    if request.connection.has_ended:  # nobody would close what is opened
        request.end()
        return None
    partition_id = broker.engine.advice.partition_id(*place)
    if partition_id is None:
        broker.when_durable(request, lambda: request.refuse(error_of(topic), f"{topic} is not there"))
    return partition_id


def _may_create(broker: Broker, request: AnsweringRequest, log_name: str) -> bool:
    authorizer = broker.authorizer
    return allows(broker, request, Operation.CREATE, log_name) or authorizer.allows(
        request.principal, request.connection.peer_host, Operation.CREATE, CLUSTER
    )
