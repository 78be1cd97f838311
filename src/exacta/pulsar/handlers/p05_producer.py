"""PRODUCER opens a producer: its name, the sequence id that its messages go on from, and who may join it."""

from exacta.core.ids import PartitionId
from exacta.core.state.state import State
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandProducer,
    CommandProducerSuccess,
    ProducerAccessMode,
    ServerError,
)
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.errors import server_error, text_of
from exacta.pulsar.handler import Handler
from exacta.pulsar.needs import Need, the_topic
from exacta.pulsar.producers import LONGEST_NAME_BYTES, MOST_PRODUCERS, Busy, Place, Producer
from exacta.pulsar.schemas import refusal_of, version_of
from exacta.pulsar.sending import close_producer
from exacta.pulsar.topics import find_topic

NEEDS = (Need(Operation.WRITE, the_topic),)

SERVED_MODES = (ProducerAccessMode.Shared, ProducerAccessMode.Exclusive)


def handle(broker: PulsarBroker, command: CommandProducer, request: PulsarRequest) -> None:
    """Open the producer, once its topic is there.

    A producer that its user has named is told the highest sequence id under its name, so that it can go on after it.
    """
    connection = request.connection
    if command.producer_access_mode not in SERVED_MODES:
        request.refuse(ServerError.NotAllowedError, "of the access modes only Shared and Exclusive are served")
    elif (incompatible := refusal_of(command.schema)) is not None:
        request.refuse(ServerError.IncompatibleSchema, incompatible)
    elif command.encrypted or command.initial_subscription_name:
        what = "only encrypted messages" if command.encrypted else "an initial subscription"
        request.refuse(ServerError.NotAllowedError, f"producers that want {what} are not served yet")
    elif len(command.producer_name.encode()) > LONGEST_NAME_BYTES:
        request.refuse(ServerError.NotAllowedError, f"a name may have {LONGEST_NAME_BYTES} bytes")
    elif len(connection.producers) >= MOST_PRODUCERS:
        request.refuse(ServerError.TooManyRequests, f"one connection may have {MOST_PRODUCERS} producers")
    else:
        find_topic(broker, request, command.topic, lambda topic, place: _open(broker, command, request, topic, place))


def _open(
    broker: PulsarBroker, command: CommandProducer, request: PulsarRequest, topic: TopicName, place: Place
) -> None:
    connection = request.connection
    if connection.has_ended:  # while its topic was created: nobody would close the producer
        request.end()
        return
    partition_id = broker.partition_id(place)
    if partition_id is None:
        request.refuse(ServerError.TopicNotFound, f"{topic} is not there")
        return
    refusal = broker.refusal(partition_id)
    if refusal is not None:
        request.refuse(server_error(refusal), f"{topic} takes no messages: {text_of(refusal)}")
        return
    name = command.producer_name or f"exacta-{broker.entropy.new_uuid().hex}"
    producer = Producer(
        owner=connection,
        number=command.producer_id,
        name=name,
        is_named=bool(command.producer_name) and command.user_provided_producer_name,
        epoch=command.epoch,
        is_exclusive=command.producer_access_mode == ProducerAccessMode.Exclusive,
        topic=topic,
        place=place,
        partition_id=PartitionId(partition_id),
    )
    same = connection.producers.get(command.producer_id)
    if same is not None and (same.name, same.place) != (producer.name, producer.place):
        request.refuse(
            ServerError.NotAllowedError, f"producer {command.producer_id} of this connection is open already"
        )
        return
    older = broker.producers.open(producer, command.producer_access_mode)
    if isinstance(older, Busy):
        request.refuse(older.error, older.text)
        return
    if older is not None and older.owner is not connection:
        close_producer(broker, older.owner, older)
    connection.producers[producer.number] = producer
    connection.closed_producers.discard(producer.number)
    _answer(broker, command, request, producer)


def _answer(broker: PulsarBroker, command: CommandProducer, request: PulsarRequest, producer: Producer) -> None:
    def last_sequence(state: State, now_ms: int) -> int:
        return broker.engine.lookups.named_sequence(producer.name, *producer.place) if producer.is_named else -1

    def done(sequence: int) -> None:
        request.reply(
            CommandProducerSuccess(
                request_id=command.request_id,
                producer_name=producer.name,
                last_sequence_id=sequence,
                schema_version=version_of(command.schema),
            )
        )

    broker.read(request, last_sequence, done)


HANDLER = Handler(type=BaseCommand.PRODUCER, needs=NEEDS, handle=handle)
