"""SEEK moves a subscription to a message, or to a time."""

from exacta.core.commands import Seek
from exacta.core.commands.subscriptions import LATEST
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.offset_for_time import position_of_time
from exacta.ports.log import Answer
from exacta.protocol.pulsar.message_ids import offset_of
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandSeek, CommandSuccess, ServerError
from exacta.pulsar.acknowledging import end_beyond, first_left
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.provisional_ids import is_provisional, resolve

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandSeek, request: PulsarRequest) -> None:
    """Move the subscription, and close all of its consumers, which connect again."""
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return
    if not command.HasField("message_id") and not command.HasField("message_publish_time"):
        request.refuse(ServerError.MetadataError, "neither a message id nor a time to go to is named")
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.connection.consumers.close(consumer)  # first, as Apache Pulsar does it
            request.reply(CommandSuccess(request_id=command.request_id))

    is_staged = is_provisional(command.message_id)
    unclear = resolve(broker.engine.advice, consumer.partition_id, [command.message_id])
    if unclear is not None:
        broker.when_durable(request, lambda: request.refuse(ServerError.NotAllowedError, unclear))
        return

    def seek(to: Offset | Rejection) -> None:
        if isinstance(to, Rejection):
            request.reject(to)
        else:
            broker.ask(request, Seek(**consumer.where, to=to), done)

    if command.HasField("message_id"):
        seek(_target(broker, consumer, command, is_staged=is_staged))
        return

    def look() -> None:
        position_of_time(broker, request, consumer.place, command.message_publish_time, seek)

    broker.when_shown(request, (consumer.place,), look)  # a message that is not seen yet would be passed over


def _target(broker: Broker, consumer: Consumer, command: CommandSeek, *, is_staged: bool) -> Offset:
    """Return where the subscription goes on: at a message itself, and the client drops it if it does not want it.

    Beyond an end it goes on at that end. A client that was told a provisional id cannot drop what is before its message
    in a batch, so that this is left out here.
    """
    message = command.message_id
    end = end_beyond(consumer.partition_id, message)
    if end is not None:
        return end
    found = first_left(broker.engine.lookups, consumer.partition_id, message)
    if found is None:
        return LATEST
    return Offset(max(found, offset_of(message))) if is_staged else found


HANDLER = Handler(type=BaseCommand.SEEK, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error)
