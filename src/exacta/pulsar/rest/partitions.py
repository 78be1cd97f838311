"""The partitions of topics: their number asked for, topics created with several, more added, all deleted at once.

A topic of one partition is not partitioned (decision 0032), whichever of the paths it was created by.
"""

from collections.abc import Mapping

from exacta.core.commands import CreatePartitions
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.ports.log import Answer
from exacta.pulsar.rest.request import (
    CONFLICT,
    NOT_ACCEPTABLE,
    NOT_FOUND,
    PRECONDITION_FAILED,
    UNPROCESSABLE,
    RestRequest,
)
from exacta.pulsar.rest.topics import create_topic, delete, refuse_so_many
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import read_ordinary_topic, tell_partitions


def get(broker: Broker, request: RestRequest) -> None:
    """Answer once the topic is there; it is created if the client asks for that."""

    def tell(partitions: int) -> None:
        request.reply_json({"partitions": partitions, "deleted": False})

    tell_partitions(broker, request, request.topic, tell, creates=request.is_set("checkAllowAutoCreation"))


def create(broker: Broker, request: RestRequest) -> None:
    """Create a topic with this many partitions."""
    asked = _asked(request)
    if asked is None:
        return
    topic, count, properties = asked
    if count < 1:
        request.refuse_with(NOT_ACCEPTABLE, "Number of partitions should be more than 0")
        return
    create_topic(broker, request, topic, count, properties)


def extend(broker: Broker, request: RestRequest) -> None:
    """Let a topic have more partitions."""
    asked = _asked(request)
    if asked is None:
        return
    topic, count, _ = asked
    present = broker.engine.advice.partition_count(topic.log_name)

    def done(answer: Answer) -> None:
        if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
            request.refuse_with(CONFLICT, f"Topic {topic} is not the partitioned topic.")
        elif answer is Rejection.INVALID_PARTITIONS and count < present:
            reason = f"Desired partitions {count} can't be less than the current partitions {present}."
            request.refuse_with(UNPROCESSABLE, reason)
        elif answer is Rejection.INVALID_PARTITIONS and count > present:
            refuse_so_many(broker, request)
        elif isinstance(answer, Rejection) and count != present:
            request.reject(answer)
        else:
            request.reply_nothing()

    broker.ask(request, CreatePartitions(topic=topic.log_name, total_count=count), done)


def delete_all(broker: Broker, request: RestRequest) -> None:
    """Delete a topic with all its partitions."""
    topic = _whole_topic(request)
    if topic is not None:
        delete(broker, request, topic, not_found=(NOT_FOUND, f"Topic {topic} not found."))


def _asked(request: RestRequest) -> tuple[NamedTopic, int, Mapping[str, str]] | None:
    """Read the topic, the number of its partitions to be, and its properties; None: the request is answered."""
    asked = request.partitioned_topic()
    topic = None if asked is None else _whole_topic(request)
    return None if asked is None or topic is None else (topic, asked.partitions, asked.properties or {})


def _whole_topic(request: RestRequest) -> NamedTopic | None:
    """Read the topic's name; answer the request and return None for a partition's name, or no valid name."""
    topic = read_ordinary_topic(request, request.topic)
    if topic is not None and topic.name.partition is not None:
        request.refuse_with(PRECONDITION_FAILED, "Partitioned Topic Name should not contain '-partition-'")
        return None
    return topic
