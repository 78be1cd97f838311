"""The commands that are not served yet: each gets an error that its client understands, and no command is a hang.

Commands whose clients wait for nothing are passed over, as Apache Pulsar does it for consumers that it does not know.
What only brokers send ends the connection.
"""

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message

from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandAckResponse,
    CommandConsumerStatsResponse,
    CommandError,
    CommandGetOrCreateSchemaResponse,
    CommandGetSchemaResponse,
    ServerError,
)
from exacta.pulsar.context import PulsarRequest

NO_CONSUMERS: Final = "this broker does not serve Pulsar's consumers yet, only producers"
NO_SCHEMAS: Final = "this broker does not keep schemas yet: send bytes"
NO_LISTS: Final = "this broker does not list topics for Pulsar's clients yet"


def _error(text: str) -> Callable[[Any], Message]:
    return lambda command: CommandError(request_id=command.request_id, error=ServerError.NotAllowedError, message=text)


def _ack(command: Any) -> Message | None:
    if not command.HasField("request_id"):
        return None
    return CommandAckResponse(
        consumer_id=command.consumer_id,
        request_id=command.request_id,
        txnid_most_bits=command.txnid_most_bits,
        txnid_least_bits=command.txnid_least_bits,
        error=ServerError.NotAllowedError,
        message=NO_CONSUMERS,
    )


def _stats(command: Any) -> Message:
    return CommandConsumerStatsResponse(
        request_id=command.request_id, error_code=ServerError.NotAllowedError, error_message=NO_CONSUMERS
    )


def _schema(command: Any) -> Message:
    return CommandGetSchemaResponse(
        request_id=command.request_id, error_code=ServerError.NotAllowedError, error_message=NO_SCHEMAS
    )


def _new_schema(command: Any) -> Message:
    return CommandGetOrCreateSchemaResponse(
        request_id=command.request_id, error_code=ServerError.NotAllowedError, error_message=NO_SCHEMAS
    )


def _nothing(command: Any) -> None:
    return None


UNSERVED: Final[dict[int, Callable[[Any], Message | None]]] = {
    BaseCommand.SUBSCRIBE: _error(NO_CONSUMERS),
    BaseCommand.ACK: _ack,
    BaseCommand.FLOW: _nothing,
    BaseCommand.UNSUBSCRIBE: _error(NO_CONSUMERS),
    BaseCommand.CLOSE_CONSUMER: _error(NO_CONSUMERS),
    BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES: _nothing,
    BaseCommand.CONSUMER_STATS: _stats,
    BaseCommand.SEEK: _error(NO_CONSUMERS),
    BaseCommand.GET_LAST_MESSAGE_ID: _error(NO_CONSUMERS),
    BaseCommand.GET_TOPICS_OF_NAMESPACE: _error(NO_LISTS),
    BaseCommand.GET_SCHEMA: _schema,
    BaseCommand.GET_OR_CREATE_SCHEMA: _new_schema,
}
"""The answer to each command; None: its client waits for none."""


def refuse_unserved(request: PulsarRequest) -> None:
    """Answer a command that no handler serves."""
    refuse = UNSERVED.get(request.type)
    if refuse is None:
        request.hang_up(f"{type(request.command).__name__} is not for a broker")
        return
    answer = refuse(request.command)
    if answer is None:
        request.end()
    else:
        request.reply(answer)
