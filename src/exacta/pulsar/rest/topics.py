"""Topics: created with one partition, and deleted."""

from collections.abc import Mapping

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.ports.log import Answer
from exacta.pulsar.producers import Producers
from exacta.pulsar.rest.properties import as_configs, in_body
from exacta.pulsar.rest.request import CONFLICT, NOT_ACCEPTABLE, NOT_FOUND, PRECONDITION_FAILED, RestRequest
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import read_ordinary_topic


def create(broker: Broker, request: RestRequest) -> None:
    """Create a topic that is not partitioned."""
    topic = read_ordinary_topic(request, request.topic)
    if topic is None:
        return
    if topic.name.partition is not None:
        request.refuse_with(PRECONDITION_FAILED, "the partition of a topic is created with the topic")
        return
    given = in_body(request)
    if given is not None:
        create_topic(broker, request, topic, 1, given)


def create_topic(
    broker: Broker, request: RestRequest, topic: NamedTopic, partition_count: int, properties: Mapping[str, str]
) -> None:
    """Create a topic, and answer."""
    configs = as_configs(request, properties, {})
    if configs is None:
        return

    def done(answer: Answer) -> None:
        if answer is Rejection.TOPIC_ALREADY_EXISTS:
            request.refuse_with(CONFLICT, "This topic already exists")
        elif answer is Rejection.INVALID_PARTITIONS:
            refuse_so_many(broker, request)
        elif isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.reply_nothing()

    topic_id = broker.entropy.new_uuid().bytes
    create = CreateTopic(topic=topic.log_name, topic_id=topic_id, partition_count=partition_count, configs=configs)
    broker.ask(request, create, done)


def refuse_so_many(broker: Broker, request: RestRequest) -> None:
    """Answer that there would be too many partitions."""
    limits = broker.configuration.limits()
    most, in_all = limits.max_partitions_per_topic, limits.max_partitions
    request.refuse_with(NOT_ACCEPTABLE, f"partitions: at most {most} in a topic, {in_all} in all")


def delete_one(broker: Broker, request: RestRequest) -> None:
    """Delete a topic of one partition."""
    topic = read_ordinary_topic(request, request.topic)
    if topic is None:
        return
    if topic.name.partition is None and broker.engine.advice.partition_count(topic.log_name) > 1:
        reason = (
            f"{topic} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic."
        )
        broker.when_durable(request, lambda: request.refuse_with(CONFLICT, reason))
        return
    if topic.name.partition is not None:
        request.refuse_with(NOT_FOUND, f"Topic {topic} not found")
        return
    delete(broker, request, topic, not_found=(NOT_FOUND, f"Topic {topic} not found"))


def delete(broker: Broker, request: RestRequest, topic: NamedTopic, *, not_found: tuple[int, str]) -> None:
    """Delete a topic, unless somebody uses it and the client does not insist (`force`)."""
    if not request.is_set("force") and _is_in_use(broker, request.shared.producers, topic.log_name):
        text = "Topic has active producers/subscriptions"
        broker.when_durable(request, lambda: request.refuse_with(PRECONDITION_FAILED, text))
        return

    def done(answer: Answer) -> None:
        if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
            request.refuse_with(*not_found)
        elif isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.reply_nothing()

    broker.ask(request, DeleteTopic(topic=topic.log_name), done)


def _is_in_use(broker: Broker, producers: Producers, topic: str) -> bool:
    """Return whether a Pulsar producer or consumer is connected to a topic, given by its name in the log."""
    indexes = range(broker.engine.advice.partition_count(topic))
    return any(producers.has((topic, index)) for index in indexes) or broker.engine.advice.has_consumers(topic)
