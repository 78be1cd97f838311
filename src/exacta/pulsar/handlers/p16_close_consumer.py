"""CLOSE_CONSUMER closes a consumer; what it has and has not acknowledged is delivered to others."""

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandCloseConsumer, CommandSuccess
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandCloseConsumer, request: PulsarRequest) -> None:
    """Answer with success also if there is no such consumer: it may have been closed from this side."""
    consumers = request.connection.consumers
    consumers.give_up_opening(command.consumer_id)
    consumer = consumers.get(command.consumer_id)
    if consumer is not None:
        consumers.disconnect([consumer])
    broker.when_durable(request, lambda: request.reply(CommandSuccess(request_id=command.request_id)))


HANDLER = Handler(
    type=BaseCommand.CLOSE_CONSUMER, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error
)
