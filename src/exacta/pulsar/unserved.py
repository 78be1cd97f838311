"""The commands that are not served yet: each gets an error that its client understands, and no command is a hang.

A command that only brokers send, or that this broker has offered to no client, ends the connection.
"""

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message

from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandConsumerStatsResponse,
    ServerError,
)
from exacta.pulsar.context import PulsarRequest

NO_STATS: Final = "this broker does not tell consumers' statistics: ask `exacta subscriptions`"


def _stats(command: Any) -> Message:
    return CommandConsumerStatsResponse(
        request_id=command.request_id, error_code=ServerError.NotAllowedError, error_message=NO_STATS
    )


UNSERVED: Final[dict[int, Callable[[Any], Message]]] = {
    BaseCommand.CONSUMER_STATS: _stats,
}
"""The answer to each command."""


def refuse_unserved(request: PulsarRequest) -> None:
    """Answer a command that no handler serves."""
    refuse = UNSERVED.get(request.type)
    if refuse is None:
        request.hang_up(f"{type(request.command).__name__} is not for a broker")
    else:
        request.reply(refuse(request.command))
