"""CLOSE_PRODUCER closes a producer; what it has sent before is answered first."""

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandCloseProducer, CommandSuccess
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandCloseProducer, request: PulsarRequest) -> None:
    """Answer with success also if there is no such producer: it may have been closed from this side."""
    producer = request.connection.producers.pop(command.producer_id, None)
    request.connection.closed_producers.discard(command.producer_id)
    if producer is not None:
        request.shared.producers.close(producer)
    broker.when_durable(request, lambda: request.reply(CommandSuccess(request_id=command.request_id)))


HANDLER = Handler(
    type=BaseCommand.CLOSE_PRODUCER, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error
)
