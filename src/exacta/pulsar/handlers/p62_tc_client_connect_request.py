"""TC_CLIENT_CONNECT_REQUEST asks whether the coordinator of transactions is here."""

from google.protobuf.message import Message

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandTcClientConnectRequest,
    CommandTcClientConnectResponse,
    ServerError,
)
from exacta.pulsar.at_follower import NO_COORDINATOR
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.transactions import COORDINATOR_NUMBER

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandTcClientConnectRequest, request: PulsarRequest) -> None:
    """Answer with success for the one coordinator that there is."""
    if command.tc_id == COORDINATOR_NUMBER:
        request.reply(CommandTcClientConnectResponse(request_id=command.request_id))
    else:
        request.refuse(ServerError.TransactionCoordinatorNotFound, f"there is no coordinator {command.tc_id}")


def refused(command: CommandTcClientConnectRequest, error: ServerError, text: str) -> Message:
    """Say that it is not here."""
    return CommandTcClientConnectResponse(request_id=command.request_id, error=error, message=text)


HANDLER = Handler(
    type=BaseCommand.TC_CLIENT_CONNECT_REQUEST, needs=NEEDS, at_follower=NO_COORDINATOR, handle=handle, refused=refused
)
