"""PING asks whether this side is there."""

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandPing, CommandPong
from exacta.pulsar.at_follower import SERVES
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandPing, request: PulsarRequest) -> None:
    """Answer at once."""
    request.reply(CommandPong())


HANDLER = Handler(type=BaseCommand.PING, needs=NEEDS, at_follower=SERVES, handle=handle, refused=no_answer)
