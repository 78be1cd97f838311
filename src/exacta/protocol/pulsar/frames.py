"""Frames: what stands between two sizes on a connection.

Owns cutting, reading and building them. It does not look into an entry (`entries.py`), and does not know what a command
means. All numbers are big-endian:

    total size u32 | command size u32 | BaseCommand
      | 0x0e02 u16 | size u32 | BrokerEntryMetadata
      | 0x0e01 u16 | CRC-32C u32 | metadata size u32 | MessageMetadata | payload

The second line may stand in a MESSAGE. The third one stands in SEND and MESSAGE.

The total size does not count itself. The entry begins at 0x0e01; clients of before protocol version 6 leave that and
the checksum out, so that the entry begins with the metadata's size. Which of these it is can always be told, because no
metadata has a size of 0x0e010000 bytes.

It reads bytes before a login.
"""

import struct
from typing import Final

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from exacta.protocol.pulsar.commands import enveloped, parse_command
from exacta.protocol.pulsar.decoding import Buffer, decoded
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, BrokerEntryMetadata

LARGEST_MESSAGE: Final = 5 << 20
"""The most bytes that an entry may have, unless CONNECTED says another number: Pulsar's own default."""

FRAME_MARGIN: Final = 10 << 10
"""The most bytes that a frame may have beside its entry; Pulsar's clients reckon with the same number."""

LARGEST_COMMAND: Final = 1 << 20
"""The most bytes of a command, and of metadata. They are made into objects at once, and two bytes are enough for an
object of a hundred: five megabytes of empty message ids would take a quarter of a gigabyte. The largest that clients
send are schemas and acknowledgements of some thousand ids."""

SIZE_BYTES: Final = 4
"""The bytes of the total size, which `parse_frame` does not want to see."""

BROKER_ENTRY_MAGIC: Final = 0x0E02

_SIZE: Final = struct.Struct(">I")
_SIZES: Final = struct.Struct(">II")
_MAGIC_AND_SIZE: Final = struct.Struct(">HI")
_WITH_ENTRY: Final = frozenset({BaseCommand.SEND, BaseCommand.MESSAGE})


class Frame(Struct, frozen=True, gc=False):
    """One frame. `entry` is a view of the frame's bytes; None for a command that brings none."""

    command: BaseCommand
    broker_entry: BrokerEntryMetadata | None = None
    entry: memoryview | None = None


def frame_at(buffer: Buffer, start: int = 0, *, largest: int = LARGEST_MESSAGE + FRAME_MARGIN) -> memoryview | None:
    """Return the frame that begins there, without its size; None if not all of it is there.

    The next one begins `SIZE_BYTES` and the length of this one later. Raises `BrokenFrame` for a size that no frame
    has.
    """
    there = len(buffer) - start - SIZE_BYTES
    if there < 0:
        return None
    (size,) = _SIZE.unpack_from(buffer, start)
    if not SIZE_BYTES <= size <= largest:
        raise BrokenFrame(f"a frame of {size} bytes; from {SIZE_BYTES} to {largest} are allowed")
    return memoryview(buffer)[start + SIZE_BYTES : start + SIZE_BYTES + size] if size <= there else None


def parse_frame(frame: Buffer) -> Frame:
    """Read a frame, given without its total size. Raises `BrokenFrame`, and nothing else, whatever the bytes are."""
    view = memoryview(frame)
    command_bytes, behind = _sized(view, "command")
    command = parse_command(command_bytes)
    if command.type not in _WITH_ENTRY:
        if behind:
            raise BrokenFrame(f"{len(behind)} bytes behind a command that brings no entry")
        return Frame(command)
    broker_entry = None
    if len(behind) >= 2 and behind[0] << 8 | behind[1] == BROKER_ENTRY_MAGIC:
        broker_bytes, behind = _sized(behind[2:], "broker's metadata")
        try:
            broker_entry = decoded(BrokerEntryMetadata, broker_bytes)
        except DecodeError as error:
            raise BrokenFrame(f"not a broker's metadata: {error}") from error
    if not behind:
        raise BrokenFrame("an entry of no bytes")
    return Frame(command, broker_entry, behind)


def _sized(view: memoryview, what: str) -> tuple[memoryview, memoryview]:
    """Return what has its size before it, and what follows."""
    if len(view) < SIZE_BYTES:
        raise BrokenFrame(f"the frame ends within the size of its {what}")
    (size,) = _SIZE.unpack_from(view)
    if size > len(view) - SIZE_BYTES:
        raise BrokenFrame(f"a {what} of {size} bytes, of which {len(view) - SIZE_BYTES} are there")
    if size > LARGEST_COMMAND:
        raise BrokenFrame(f"a {what} of {size} bytes; at most {LARGEST_COMMAND} are allowed")
    return view[SIZE_BYTES : SIZE_BYTES + size], view[SIZE_BYTES + size :]


def build_frame(command: Message) -> bytes:
    """Build the frame of a command that brings no entry (`CommandPong()`)."""
    data = enveloped(command)
    return _SIZES.pack(SIZE_BYTES + len(data), len(data)) + data


def build_entry_frame(
    command: Message, *entry: Buffer, broker_entry: BrokerEntryMetadata | None = None
) -> list[Buffer]:
    """Build the frame of a SEND or MESSAGE as a scatter list, in which the parts of the entry are as they were given.

    `broker_entry` is only for clients whose CONNECT says that they support it.
    """
    data = enveloped(command)
    parts = [_SIZE.pack(len(data)), data]
    if broker_entry is not None:
        broker_bytes = broker_entry.SerializeToString()
        parts += [_MAGIC_AND_SIZE.pack(BROKER_ENTRY_MAGIC, len(broker_bytes)), broker_bytes]
    size = sum(map(len, parts)) + sum(map(len, entry))
    return [b"".join((_SIZE.pack(size), *parts)), *entry]
