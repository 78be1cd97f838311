"""The facts about a command that the connection needs: the `HANDLER` at the end of each handler module."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message
from msgspec import Struct

from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import CommandError, ServerError
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.needs import Needs

C = TypeVar("C", bound=Message)
Handle: TypeAlias = Callable[[Broker, C, PulsarRequest], None]
Refused: TypeAlias = Callable[[C, ServerError, str], Message | None]


class Asking(Protocol):
    """A command whose client waits for the answer to this request."""

    request_id: int


def plain_error(command: Asking, error: ServerError, text: str) -> Message:
    """Refuse a request that has no answer of its own for that."""
    return CommandError(request_id=command.request_id, error=error, message=text)


def no_answer(command: Message, error: ServerError, text: str) -> None:
    """Leave a command without an answer: it has no request id by which its client would know that it is refused."""


class Handler(Struct, Generic[C], frozen=True, kw_only=True):
    """One command as it is served here; `C` is its class."""

    type: int
    """The command's number in BaseCommand."""
    needs: Needs[C]
    """The operations on resources that the command needs of its client."""
    handle: Handle[C]
    refused: Refused[C]
    """A function that makes the answer which refuses the command with an error and a text."""
