"""FLOW permits a consumer this many messages more."""

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandFlow
from exacta.pulsar.at_follower import NOT_OPEN
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandFlow, request: PulsarRequest) -> None:
    """Pass over what is permitted to a consumer that is closed; nobody waits for an answer."""
    consumer = request.connection.consumers.get(command.consumer_id)
    if consumer is not None:
        request.connection.consumers.permit(consumer, command.message_permits)
    request.end()


HANDLER = Handler(type=BaseCommand.FLOW, needs=NEEDS, at_follower=NOT_OPEN, handle=handle, refused=no_answer)
