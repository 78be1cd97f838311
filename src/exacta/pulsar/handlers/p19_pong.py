"""PONG answers our PING; that it has come is all that counts."""

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandPong
from exacta.pulsar.at_follower import SERVES
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandPong, request: PulsarRequest) -> None:
    """Take it; nobody waits for an answer."""
    request.end()


HANDLER = Handler(type=BaseCommand.PONG, needs=NEEDS, at_follower=SERVES, handle=handle, refused=no_answer)
