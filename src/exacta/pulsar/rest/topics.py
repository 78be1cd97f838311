"""Topics: created with one partition, and deleted."""

from collections.abc import Mapping

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.core.rejections import Rejection
from exacta.engine.engine import Answer
from exacta.front.broker import Broker
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.producers import Producers
from exacta.pulsar.rest.properties import as_configs, in_body
from exacta.pulsar.rest.request import CONFLICT, NOT_ACCEPTABLE, NOT_FOUND, PRECONDITION_FAILED, RestRequest
from exacta.pulsar.topic_names import kafka_name
from exacta.pulsar.topics import ordinary_name


def create(broker: Broker, request: RestRequest) -> None:
    """Create a topic that is not partitioned."""
    name = ordinary_name(request, request.topic)
    if name is None:
        return
    if name.partition is not None:
        request.refuse_with(PRECONDITION_FAILED, "the partition of a topic is created with the topic")
        return
    given = in_body(request)
    if given is not None:
        create_topic(broker, request, name, 1, given)


def create_topic(
    broker: Broker, request: RestRequest, name: TopicName, partition_count: int, properties: Mapping[str, str]
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
    create = CreateTopic(topic=kafka_name(name), topic_id=topic_id, partition_count=partition_count, configs=configs)
    broker.ask(request, create, done)


def refuse_so_many(broker: Broker, request: RestRequest) -> None:
    """Answer that there would be too many partitions."""
    limits = broker.configuration.limits()
    most, in_all = limits.max_partitions_per_topic, limits.max_partitions
    request.refuse_with(NOT_ACCEPTABLE, f"partitions: at most {most} in a topic, {in_all} in all")


def delete_one(broker: Broker, request: RestRequest) -> None:
    """Delete a topic of one partition."""
    name = ordinary_name(request, request.topic)
    if name is None:
        return
    if name.partition is None and broker.engine.present.partition_count(kafka_name(name)) > 1:
        reason = (
            f"{name} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic."
        )
        broker.when_durable(request, lambda: request.refuse_with(CONFLICT, reason))
        return
    if name.partition is not None:
        request.refuse_with(NOT_FOUND, f"Topic {name} not found")
        return
    delete(broker, request, name, not_found=(NOT_FOUND, f"Topic {name} not found"))


def delete(broker: Broker, request: RestRequest, name: TopicName, *, not_found: tuple[int, str]) -> None:
    """Delete a topic, unless somebody uses it and the client does not insist (`force`)."""
    topic = kafka_name(name)
    if not request.is_set("force") and _is_in_use(broker, request.shared.producers, topic):
        request.refuse_with(PRECONDITION_FAILED, "Topic has active producers/subscriptions")
        return

    def done(answer: Answer) -> None:
        if answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
            request.refuse_with(*not_found)
        elif isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.reply_nothing()

    broker.ask(request, DeleteTopic(topic=topic), done)


def _is_in_use(broker: Broker, producers: Producers, topic: str) -> bool:
    """Return whether a Pulsar producer or consumer is connected to a topic, given by its name in the log."""
    indexes = range(broker.engine.present.partition_count(topic))
    return any(producers.has((topic, index)) for index in indexes) or broker.engine.present.has_consumers(topic)
