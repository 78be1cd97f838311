"""Commands and the envelope that each of them travels in.

Owns the way from a command to its BaseCommand and back. In `messages.proto` the field of a command has the name and the
number of its type, so the descriptor is the only table.
"""

from typing import Final

from google.protobuf.message import DecodeError, Message

from exacta.protocol.pulsar.decoding import Buffer, decoded
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.messages_pb2 import BaseCommand

PROTOCOL_VERSION: Final = 20
"""The newest version whose commands stand in `messages.proto`. A client of 19 or above that uses transactions connects
to their coordinator first."""

_FIELDS: Final[dict[str, tuple[int, str]]] = {
    field.message_type.full_name: (field.number, field.name)
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}
"""The number and the name of the field that holds a command, by the command's full name."""

_NAMES: Final = dict(_FIELDS.values())


def wrapped(command: Message) -> BaseCommand:
    """Put a command (`CommandPing()`) into its envelope. Raises KeyError for a message that is no command."""
    number, name = _FIELDS[command.DESCRIPTOR.full_name]
    return BaseCommand(**{"type": number, name: command})  # type: ignore[arg-type]  # the stubs want each name written


def unwrapped(base: BaseCommand) -> Message:
    """Return the command of an envelope. Raises `BrokenFrame` if the envelope holds none of its type."""
    name = _NAMES[base.type]
    if not base.HasField(name):
        raise BrokenFrame(f"the command says that it is {name.upper()}, and holds no such thing")
    command: Message = getattr(base, name)
    return command


def parse_command(data: Buffer) -> BaseCommand:
    """Read an envelope, whose command is there and whole. Raises `BrokenFrame`."""
    try:
        base = decoded(BaseCommand, data)
    except DecodeError as error:
        raise BrokenFrame(f"not a command that is known: {error}") from error
    unwrapped(base)
    return base
