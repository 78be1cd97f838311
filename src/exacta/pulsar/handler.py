"""The facts about a command that the connection needs: the `HANDLER` at the end of each handler module."""

from collections.abc import Callable
from typing import Any, TypeAlias

from google.protobuf.message import Message
from msgspec import Struct

from exacta.protocol.pulsar.messages_pb2 import CommandError, ServerError
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.needs import Needs

Handle: TypeAlias = Callable[[PulsarBroker, Any, PulsarRequest], None]
Refused: TypeAlias = Callable[[Any, ServerError, str], Message | None]


def plain_error(command: Any, error: ServerError, text: str) -> Message:
    """Refuse a request that has no answer of its own for that."""
    return CommandError(request_id=command.request_id, error=error, message=text)


class Handler(Struct, frozen=True, kw_only=True):
    """One command as it is served here."""

    type: int
    """The command's number in BaseCommand."""
    needs: Needs
    """The operations on resources that the command needs of its client."""
    handle: Handle
    refused: Refused = plain_error
    """A function that makes the answer which refuses the command with an error and a text."""
