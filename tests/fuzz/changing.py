"""Frames that are changed as an attacker changes them: cut, with other sizes, with bytes that differ, twice, nested."""

import struct

from tests.fuzz.choices import Choices

NUMBERS = (
    *(b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"),
    *(b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\0" * 8),
)
"""Lengths and numbers at their bounds, fixed ones and varints; one varint does not end."""
SIZES = (0, 1, 3, 7, 8, 1 << 16, (1 << 16) + 1, 100 << 20, (100 << 20) + 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
"""The sizes that a frame says instead of its own."""


def changed(choices: Choices, frame: bytes) -> bytes:
    """Return a frame, given with its size of four bytes, changed in up to three ways or not at all."""
    body, size = bytearray(frame[4:]), None
    for _ in range(choices.below(4)):
        position = choices.below(min(len(body), 0xFFFF) + 1)
        match choices.below(8):
            case 0:
                body[position : position + 1] = choices.bytes(1)
            case 1:
                number = choices.pick(NUMBERS)
                body[position : position + len(number)] = number
            case 2:
                body[position:position] = choices.pick(NUMBERS)
            case 3:
                del body[position:]
            case 4:
                del body[position : position + 1 + choices.below(8)]
            case 5:
                body[position:position] = body[choices.below(min(len(body), 0xFFFF) + 1) :]
            case 6:
                body[position:position] = choices.bytes(1 + choices.below(16)) * (1 + choices.below(1000))
            case _:
                size = choices.pick(SIZES)
    return struct.pack(">I", len(body) if size is None else size) + bytes(body)
