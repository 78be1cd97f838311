"""The partitions of topics: their number asked for, topics created with several, more added, all deleted at once.

A topic of one partition is not partitioned (decision 0032), whichever of the paths it was created by.
"""

from collections.abc import Mapping

from exacta.core.commands import CreatePartitions
from exacta.core.rejections import Rejection
from exacta.engine.engine import Answer
from exacta.front.broker import Broker
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.partition_counts import partitions_of_name, partitions_told
from exacta.pulsar.producers import Place
from exacta.pulsar.rest.request import (
    CONFLICT,
    NOT_ACCEPTABLE,
    NOT_FOUND,
    PRECONDITION_FAILED,
    UNPROCESSABLE,
    RestRequest,
)
from exacta.pulsar.rest.topics import create_topic, delete, refuse_so_many
from exacta.pulsar.topic_names import kafka_name
from exacta.pulsar.topics import find_topic, ordinary_name, parsed_name


def get(broker: Broker, request: RestRequest) -> None:
    """Answer once the topic is there; it is created if the client asks for that."""
    name = parsed_name(request, request.topic)
    if name is None:
        return
    count = partitions_of_name(name)
    if count is not None:
        _reply(request, count)
        return

    def found(topic: TopicName, place: Place) -> None:
        _reply(request, partitions_told(broker, place[0]))

    find_topic(broker, request, request.topic, found, creates=request.is_set("checkAllowAutoCreation"))


def _reply(request: RestRequest, partitions: int) -> None:
    request.reply_json({"partitions": partitions, "deleted": False})


def create(broker: Broker, request: RestRequest) -> None:
    """Create a topic with this many partitions."""
    asked = _asked(request)
    if asked is None:
        return
    name, count, properties = asked
    if count < 1:
        request.refuse_with(NOT_ACCEPTABLE, "Number of partitions should be more than 0")
        return
    create_topic(broker, request, name, count, properties)


def extend(broker: Broker, request: RestRequest) -> None:
    """Let a topic have more partitions."""
    asked = _asked(request)
    if asked is None:
        return
    name, count, _ = asked
    topic = kafka_name(name)
    present = broker.engine.present.partition_count(topic)

    def done(answer: Answer) -> None:
        if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
            request.refuse_with(CONFLICT, f"Topic {name} is not the partitioned topic.")
        elif answer is Rejection.INVALID_PARTITIONS and count < present:
            reason = f"Desired partitions {count} can't be less than the current partitions {present}."
            request.refuse_with(UNPROCESSABLE, reason)
        elif answer is Rejection.INVALID_PARTITIONS and count > present:
            refuse_so_many(broker, request)
        elif isinstance(answer, Rejection) and count != present:
            request.reject(answer)
        else:
            request.reply_nothing()

    broker.ask(request, CreatePartitions(topic=topic, total_count=count), done)


def delete_all(broker: Broker, request: RestRequest) -> None:
    """Delete a topic with all its partitions."""
    name = _whole_topic(request)
    if name is not None:
        delete(broker, request, name, not_found=(NOT_FOUND, f"Topic {name} not found."))


def _asked(request: RestRequest) -> tuple[TopicName, int, Mapping[str, str]] | None:
    """Read the topic, the number of its partitions to be, and its properties; None: the request is answered."""
    asked = request.partitioned_topic()
    name = None if asked is None else _whole_topic(request)
    return None if asked is None or name is None else (name, asked.partitions, asked.properties or {})


def _whole_topic(request: RestRequest) -> TopicName | None:
    """Read the topic's name; answer the request and return None for a partition's name, or no valid name."""
    name = ordinary_name(request, request.topic)
    if name is not None and name.partition is not None:
        request.refuse_with(PRECONDITION_FAILED, "Partitioned Topic Name should not contain '-partition-'")
        return None
    return name
