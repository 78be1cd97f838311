"""Topics as Pulsar's clients name them: read, found in the log, created where they may be, and counted.

A topic of one partition is not partitioned for Pulsar's clients, and one of several is (decision 0032).
"""

from collections.abc import Callable
from typing import Final

from exacta.core.ids import PartitionId
from exacta.core.rejections import Rejection
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.front.topics import create_missing
from exacta.front.words import words_of
from exacta.ports.authorizer import CLUSTER, Operation
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.protocol.pulsar.topic_names import InvalidTopicName, TopicName
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.errors import AnsweringRequest, server_error
from exacta.pulsar.needs import allows
from exacta.pulsar.topic_names import NamedTopic, coordinator_partition, named_topic

COORDINATORS: Final = 1
"""There is one coordinator of transactions, which stands as a partition of a topic of its own."""


def read_topic(request: AnsweringRequest, written: str) -> NamedTopic | None:
    """Read a topic's name; answer the request and return None if no topic here can have it."""
    try:
        return named_topic(written)
    except InvalidTopicName as invalid:
        request.refuse(ServerError.InvalidTopicName, str(invalid))
        return None


def read_ordinary_topic(request: AnsweringRequest, written: str) -> NamedTopic | None:
    """Read the name of a topic that is not the cluster's own. None: it is another one, and the request is answered."""
    topic = read_topic(request, written)
    return topic if topic is not None and _is_ordinary(request, topic) else None


def _is_ordinary(request: AnsweringRequest, topic: NamedTopic) -> bool:
    if coordinator_partition(topic.name) or topic.log_name in INTERNAL_TOPICS:
        request.refuse(ServerError.NotAllowedError, f"{topic} is the cluster's own")
        return False
    return True


def _not_found(name: TopicName) -> ServerError:
    return ServerError.TopicNotFound


def find_topic(
    broker: Broker,
    request: AnsweringRequest,
    written: str,
    found: Callable[[NamedTopic], None],
    *,
    creates: bool = True,
    error_of: Callable[[TopicName], ServerError] = _not_found,
) -> None:
    """Call back with a topic, once it is there; refuse the request where it is not to be.

    `error_of` returns the error of that answer.

    The name of a partition creates nothing. A topic of several partitions that is named as a whole is its first one:
    a client that took it for one that is not partitioned goes on after partitions were added.
    """
    topic = read_ordinary_topic(request, written)
    if topic is not None:
        _find(broker, request, topic, found, creates=creates, error_of=error_of)


def _find(
    broker: Broker,
    request: AnsweringRequest,
    topic: NamedTopic,
    found: Callable[[NamedTopic], None],
    *,
    creates: bool,
    error_of: Callable[[TopicName], ServerError] = _not_found,
) -> None:
    if topic.index < broker.engine.advice.partition_count(topic.log_name):
        broker.when_durable(request, lambda: found(topic))
        return
    may_create = (
        creates
        and topic.name.partition is None
        and broker.configuration.auto_create_topics_enable
        and _may_create(broker, request, topic.log_name)
    )
    if not may_create:
        text = f"{topic} is not there"
        broker.when_durable(request, lambda: request.refuse(error_of(topic.name), text))
        return

    if not broker.cluster.leads:
        _leave_to_leader(broker, request, topic, found)
        return

    def created(refusals: dict[str, Rejection]) -> None:
        rejection = refusals.get(topic.log_name)
        if rejection is None:
            found(topic)
        else:
            request.refuse(server_error(rejection), f"{topic} cannot be created: {words_of(rejection)}")

    create_missing(broker, request, [topic.log_name], created)


def _leave_to_leader(
    broker: Broker, request: AnsweringRequest, topic: NamedTopic, found: Callable[[NamedTopic], None]
) -> None:
    """Answer for a topic that may be created, at a broker that creates nothing.

    A topic that will not be partitioned is created where its client opens something on it. The partitions of another
    one must be there before a client asks for one of them.
    """
    if broker.configuration.num_partitions == 1:
        found(topic)
    else:
        text = f"{topic} is not there, and only the broker that leads the log creates it"
        request.refuse(ServerError.ServiceNotReady, text)


def partition_to_open(
    broker: Broker,
    request: PulsarRequest,
    topic: NamedTopic,
    error_of: Callable[[TopicName], ServerError] = _not_found,
) -> PartitionId | None:
    """Return the id of a partition on which something is to be opened. None: it cannot be, and the request is answered.

    While the topic was looked for, or created, it may have been deleted, and the client may have gone.
    """
    if request.connection.has_ended:  # nobody would close what is opened
        request.end()
        return None
    partition_id = broker.engine.advice.partition_id(*topic.place)
    if partition_id is None:
        broker.when_durable(request, lambda: request.refuse(error_of(topic.name), f"{topic} is not there"))
    return partition_id


def tell_partitions(
    broker: Broker, request: AnsweringRequest, written: str, tell: Callable[[int], None], *, creates: bool
) -> None:
    """Call back with the number of partitions that clients are told of a topic, once it is there.

    It is 0 for a topic of one partition, and for the name of a partition.
    """
    topic = read_topic(request, written)
    if topic is None:
        return
    if topic.name.partition is not None:
        tell(0)
    elif coordinator_partition(topic.name):
        tell(COORDINATORS)
    elif _is_ordinary(request, topic):
        _find(broker, request, topic, lambda found: _tell(broker, request, found, tell), creates=creates)


def _tell(broker: Broker, request: AnsweringRequest, topic: NamedTopic, tell: Callable[[int], None]) -> None:
    count = broker.engine.advice.partition_count(topic.log_name)
    broker.when_durable(request, lambda: tell(count if count > 1 else 0))


def _may_create(broker: Broker, request: AnsweringRequest, log_name: str) -> bool:
    return allows(broker, request, Operation.CREATE, log_name) or broker.allows(request, Operation.CREATE, CLUSTER)
