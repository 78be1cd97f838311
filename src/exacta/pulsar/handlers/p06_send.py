"""SEND appends one entry: a message, or a batch of them. `pulsar/sending.py` has what becomes of it."""

from google.protobuf.message import Message

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandSend, CommandSendError, ServerError
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL
"""Nothing: the right to write was asked for when the producer was opened."""


def handle(broker: Broker, command: CommandSend, request: PulsarRequest) -> None:
    """Gather the SEND; its receipt comes when it is durable, or written into an open transaction.

    What was on its way to a producer that the broker has closed is not answered: its client sends it again.
    """
    connection = request.connection
    producer = connection.producers.get(command.producer_id)
    if producer is not None and not producer.is_waiting:
        connection.gather(request, producer, command)
    elif command.producer_id in connection.closed_producers:
        request.end()
    else:
        request.hang_up(f"a SEND of producer {command.producer_id}, which is not open")


def refused(command: CommandSend, error: ServerError, text: str) -> Message:
    """Refuse a SEND."""
    return CommandSendError(producer_id=command.producer_id, sequence_id=command.sequence_id, error=error, message=text)


HANDLER = Handler(type=BaseCommand.SEND, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=refused)
