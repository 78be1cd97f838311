"""PRODUCER opens a producer: its name, the sequence id that its messages go on from, and who may join it.

A producer that waits for the partition is told so at once, and gets a second PRODUCER_SUCCESS when it may send. The
claim that all messages are encrypted is taken as it is: the broker cannot read encrypted ones, and does not look.
"""

from collections.abc import Iterable

from google.protobuf.message import Message

from exacta.core.commands import Subscribe, TakePartition
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.rejections import Rejection
from exacta.core.replies import PartitionTaken
from exacta.core.values.subscriptions import SubscriptionType
from exacta.front.broker import Broker
from exacta.front.words import words_of
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.pulsar.frames import build_frame
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandError,
    CommandProducer,
    CommandProducerSuccess,
    ServerError,
)
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.errors import server_error
from exacta.pulsar.needs import Need, Needs, lacking, the_topic
from exacta.pulsar.producers import (
    LONGEST_NAME_BYTES,
    MOST_PRODUCERS,
    MOST_PRODUCERS_IN_ALL,
    Busy,
    Producer,
    nameless_number,
)
from exacta.pulsar.schemas import refusal_of, version_of
from exacta.pulsar.sending import close_producer
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import find_topic, partition_to_open

MOST_TOPIC_EPOCH = 2**62
"""No topic comes to this epoch by itself, and one that a client makes up must leave room for the next ones."""


def _initially_subscribed(command: CommandProducer) -> Iterable[str]:
    return (command.topic,) if command.initial_subscription_name else ()


def _initial_subscription(command: CommandProducer) -> Iterable[str]:
    return (command.initial_subscription_name,) if command.initial_subscription_name else ()


NEEDS: Needs[CommandProducer] = (
    Need(Operation.WRITE, the_topic),
    Need(Operation.READ, _initially_subscribed),
    Need(Operation.READ, _initial_subscription, ResourceKind.GROUP),
)


def handle(broker: Broker, command: CommandProducer, request: PulsarRequest) -> None:
    """Open the producer, once its topic is there.

    A producer that its user has named is told the highest sequence id under its name, so that it can go on after it.
    """
    connection = request.connection
    if (incompatible := refusal_of(command.schema)) is not None:
        request.refuse(ServerError.IncompatibleSchema, incompatible)
    elif len(command.producer_name.encode()) > LONGEST_NAME_BYTES:
        request.refuse(ServerError.NotAllowedError, f"a name may have {LONGEST_NAME_BYTES} bytes")
    elif command.topic_epoch > MOST_TOPIC_EPOCH:
        request.refuse(ServerError.NotAllowedError, f"a topic epoch is at most {MOST_TOPIC_EPOCH}")
    elif len(connection.producers) >= MOST_PRODUCERS:
        request.refuse(ServerError.TooManyRequests, f"one connection may have {MOST_PRODUCERS} producers")
    elif not request.shared.producers.has_room(connection.peer_host):
        text = f"all connections may have {MOST_PRODUCERS_IN_ALL} producers, and each host its share of them"
        request.refuse(ServerError.TooManyRequests, text)
    else:
        find_topic(broker, request, command.topic, lambda topic: _subscribe(broker, command, request, topic))


def _subscribe(broker: Broker, command: CommandProducer, request: PulsarRequest, topic: NamedTopic) -> None:
    """Make the subscription first that is to get all messages, where the producer wants one that is not there."""
    name = command.initial_subscription_name
    if not name or broker.engine.advice.has_subscription(*topic.place, name):
        _open(broker, command, request, topic)
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, Rejection):
            request.reject(answer)
        else:
            _open(broker, command, request, topic)

    subscribe = Subscribe(
        topic=topic.log_name,
        partition=topic.index,
        subscription=name,
        subscription_type=SubscriptionType.SHARED,
        begin=EARLIEST,
        principal=request.principal.durable_name,
    )
    broker.ask(request, subscribe, done)


def _open(broker: Broker, command: CommandProducer, request: PulsarRequest, topic: NamedTopic) -> None:
    connection = request.connection
    lack = lacking(broker, request, NEEDS, command)
    if lack is not None:  # it had the right when its command came, and nobody would close the producer
        request.refuse(ServerError.AuthorizationError, lack)
        return
    partition_id = partition_to_open(broker, request, topic)
    if partition_id is None:
        return
    refusal = broker.engine.advice.refusal(partition_id)
    if refusal is not None:
        text = f"{topic} takes no messages: {words_of(refusal)}"
        broker.when_durable(request, lambda: request.refuse(server_error(refusal), text))
        return
    name = command.producer_name or f"exacta-{broker.entropy.new_uuid().hex}"
    producer = Producer(
        owner=connection,
        number=command.producer_id,
        name=name,
        is_named=bool(command.producer_name) and command.user_provided_producer_name,
        is_back=bool(command.producer_name) and not command.user_provided_producer_name,
        writer_id=nameless_number(name),
        epoch=command.epoch,
        mode=command.producer_access_mode,
        topic_epoch=command.topic_epoch if command.HasField("topic_epoch") else None,
        topic=topic.name,
        place=topic.place,
        partition_id=partition_id,
        closings=broker.engine.advice.closings(partition_id),
        take_turn=lambda waiting: _take(broker, command, request, waiting),
        refuse=lambda error, text: _send(
            request, CommandError(request_id=command.request_id, error=error, message=text)
        ),
    )
    same = connection.producers.get(command.producer_id)
    if same is not None:
        if (same.name, same.place, same.mode) != (producer.name, producer.place, producer.mode):
            text = f"producer {command.producer_id} of this connection is open already"
            request.refuse(ServerError.NotAllowedError, text)
            return
        if same.is_waiting:
            request.shared.producers.close(same)
    found = request.shared.producers.open(producer, broker.engine.advice.topic_epoch(*topic.place))
    if isinstance(found, Busy):
        broker.when_durable(request, lambda: request.refuse(found.error, found.text))
        return
    for older in found.replaced if found is not None else ():
        if older is not same:
            close_producer(request.shared.producers, older.owner, older)
    for waiting in found.refused if found is not None else ():
        text = f"the producer {producer.name!r} has {topic} for itself"
        _turn_away(request, waiting, ServerError.ProducerFenced, text)
    connection.producers[producer.number] = producer
    connection.closed_producers.discard(producer.number)
    if producer.is_exclusive and not producer.is_waiting:
        _take(broker, command, request, producer)
    else:
        _answer(broker, command, request, producer)


def _take(broker: Broker, command: CommandProducer, request: PulsarRequest, producer: Producer) -> None:
    """Give the producer the epoch under which it has the partition for itself, and let it send."""
    if request.connection.has_ended or broker.engine.dispatcher.has_stopped:
        return  # with its connection, which forgets it
    if broker.engine.advice.partition_id(*producer.place) != producer.partition_id:
        _turn_away(request, producer, ServerError.TopicNotFound, f"{producer.topic} is not there any more")
        return
    producer.closings = broker.engine.advice.closings(producer.partition_id)  # it may have waited for long

    def done(answer: Answer) -> None:
        if isinstance(answer, Rejection):
            _turn_away(request, producer, server_error(answer), words_of(answer))
        else:
            assert isinstance(answer, PartitionTaken)
            producer.topic_epoch = answer.topic_epoch
            _answer(broker, command, request, producer)

    topic, partition = producer.place
    broker.ask(request, TakePartition(topic=topic, partition=partition, topic_epoch=producer.topic_epoch), done)


def _turn_away(request: PulsarRequest, producer: Producer, error: ServerError, text: str) -> None:
    """Close a producer whose client has asked for it and may not send yet, and say why."""
    if _is_open(producer):
        del producer.owner.producers[producer.number]
    request.shared.producers.close(producer)
    producer.refuse(error, text)


def _is_open(producer: Producer) -> bool:
    return producer.owner.producers.get(producer.number) is producer


def _answer(broker: Broker, command: CommandProducer, request: PulsarRequest, producer: Producer) -> None:
    is_ready = not producer.is_waiting
    sequence = broker.engine.advice.named_sequence(producer.name, *producer.place) if producer.is_named else -1

    def done() -> None:
        if not _is_open(producer):
            if not request.is_answered:  # it was closed from either side while this answer was made
                request.refuse(ServerError.ProducerFenced, f"the producer {producer.name!r} was closed meanwhile")
            return
        success = CommandProducerSuccess(
            request_id=command.request_id,
            producer_name=producer.name,
            last_sequence_id=sequence,
            schema_version=version_of(command.schema),
            producer_ready=is_ready,
        )
        if is_ready and producer.topic_epoch is not None:
            success.topic_epoch = producer.topic_epoch
        _send(request, success)

    broker.when_durable(request, done)


def _send(request: PulsarRequest, message: Message) -> None:
    """Answer the command, for the first or the second time."""
    if request.is_answered:
        request.connection.push([build_frame(message)])
    else:
        request.reply(message)


HANDLER = Handler(type=BaseCommand.PRODUCER, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error)
