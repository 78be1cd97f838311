"""Commands and the envelope that each of them travels in.

Owns the way from a command to its BaseCommand and back. In `messages.proto` the field of a command has the name and the
number of its type, so the descriptor is the only table.

It reads bytes before a login.
"""

from typing import Final

from google.protobuf.message import DecodeError, Message

from exacta.protocol.pulsar.decoding import Buffer, decoded
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.messages_pb2 import BaseCommand

PROTOCOL_VERSION: Final = 20
"""The newest version whose commands stand in `messages.proto`. A client of 19 or above that uses transactions connects
to their coordinator first."""

NO_REQUEST: Final = 2**64 - 1
"""The request id of a CLOSE_PRODUCER or CLOSE_CONSUMER that a broker sends without being asked."""

_NAMES: Final[dict[int, str]] = {
    field.number: field.name for field in BaseCommand.DESCRIPTOR.fields if field.message_type is not None
}
"""The name of the field that holds a command, by its number."""

_LOW_BITS: Final = 0x7F
_MORE: Final = 0x80
_LARGEST_OF_ONE_BYTE: Final = 0x80
_TYPE_TAG: Final = 1 << 3
"""The tag of the field `type`, which is a number."""
_OF_BYTES: Final = 2
"""The lowest bits of the tag of a field that has a size."""


def enveloped(command: Message) -> bytes:
    """Return the bytes of a command (`CommandPing()`) in its envelope. Raises KeyError for what is no command.

    An envelope is the type, and the command in the field of that number. It is written by hand, because a BaseCommand
    would copy the command first: that took three quarters of the time for the frame of an answer.
    """
    data = command.SerializeToString()
    size = len(data)
    if size < _LARGEST_OF_ONE_BYTE:
        return b"%b%c%b" % (_HEADS[type(command)], size, data)
    return b"".join((_HEADS[type(command)], _varint(size), data))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > _LOW_BITS:
        found.append(number & _LOW_BITS | _MORE)
        number >>= 7
    found.append(number)
    return bytes(found)


_HEADS: Final = {
    type(getattr(BaseCommand(), name)): bytes((_TYPE_TAG,)) + _varint(number) + _varint(number << 3 | _OF_BYTES)
    for number, name in _NAMES.items()
}
"""The bytes of an envelope before the size of the command, by the command's class."""


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
