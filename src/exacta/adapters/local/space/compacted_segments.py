"""The file `compacted`: it names the compacted segments of a journal, and the number of the next one.

It is written before old segments are removed, so that a missing segment is noticed, and one that is left over, too. A
segment with a later number than the file knows counts: a crash came before it could be named.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from exacta.adapters.local import writer
from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import COMPACTED_NAME

_HEADER = Struct("<8sIQ")  # magic, checksum of what follows it, number of the next one; then the numbers, 8 bytes each
_MAGIC = b"EXACTA-C"
_CHECKED_FROM = 12
_NUMBER_BYTES = 8


class Named(NamedTuple):
    """The numbers of those that must be there, and the first that was not given out."""

    numbers: Sequence[int]
    next_number: int


def pack_named(named: Named) -> bytes:
    """Return the file's content."""
    numbers = b"".join(number.to_bytes(_NUMBER_BYTES, "little") for number in named.numbers)
    checked = _HEADER.pack(_MAGIC, 0, named.next_number)[_CHECKED_FROM:] + numbers
    return _HEADER.pack(_MAGIC, crc32c(checked), named.next_number) + numbers


def unpack_named(content: bytes) -> Named | None:
    """Return what the file says; None: these are not the bytes of one."""
    if len(content) < _HEADER.size:
        return None
    starts = range(_HEADER.size, len(content), _NUMBER_BYTES)
    numbers = [int.from_bytes(content[at : at + _NUMBER_BYTES], "little") for at in starts]
    named = Named(numbers, _HEADER.unpack_from(content)[2])
    return named if pack_named(named) == content else None


def load(files: Files, names: Sequence[str]) -> Named | None:
    """Return what the file says; None: it is unreadable."""
    return unpack_named(read_file(files, COMPACTED_NAME)) if COMPACTED_NAME in names else Named((), 0)


def save(files: Files, named: Named) -> None:
    """Name these, durably; if it raises OSError, nobody knows which ones are named."""
    writer.write_file(files, COMPACTED_NAME, [pack_named(named)])
