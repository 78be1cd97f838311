"""The file `start`: the position at which the journal begins, once its oldest segments are dropped.

It is written before the segments are removed. So it tells a crash that interrupted their removal, which the next
opening finishes, from segments that are missing.
"""

from struct import Struct

from crc32c import crc32c

from exacta.adapters.local import writer
from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import START_NAME, TEMPORARY_SUFFIX

_START = Struct("<8sIQ")  # magic, checksum of the rest, position
_MAGIC = b"EXACTA-B"
_CHECKED_FROM = 12


def pack_start(position: int) -> bytes:
    """Return the file's content."""
    checked = _START.pack(_MAGIC, 0, position)[_CHECKED_FROM:]
    return _START.pack(_MAGIC, crc32c(checked), position)


def unpack_start(data: bytes) -> int | None:
    """Return the position; None: these are not the bytes of one."""
    if len(data) != _START.size:
        return None
    position: int = _START.unpack(data)[2]
    return position if pack_start(position) == data else None


def load(files: Files, names: list[str]) -> int | None:
    """Return where the journal begins: at 0 if nothing was ever dropped; None: the file is unreadable."""
    return unpack_start(read_file(files, START_NAME)) if START_NAME in names else 0


def write(files: Files, position: int) -> None:
    """Write a file that lets the journal begin there, without its name; if it raises OSError, nothing has changed."""
    writer.write_temporary(files, START_NAME + TEMPORARY_SUFFIX, [pack_start(position)])


def put_in_place(files: Files) -> None:
    """Let the journal begin there; if it raises OSError, nobody knows where it begins."""
    writer.put_in_place(files, START_NAME + TEMPORARY_SUFFIX, START_NAME)
