"""What can be put right in a damaged journal without giving anything up, and the journal as it would be then.

Owns the view of a journal's files in which some of their bytes, or whole files, are others (`View`), and single bits
that flipped, which the checksums name. Owns no file that is written (see `repair`), nothing of what stands in which
file (see `mending_files`), and no decision about what is lost (see `surveying`, `walk`).

Theory of operation. A CRC is linear: what a flipped bit does to it depends only on how far the bit lies from the end.
So the difference between the checksum that is there and the one that should be names the bit, if it was one. That a
damage of another kind looks like one bit's has a chance of one in 2**32 for each bit of what is checked, so about
0.2 % for a group of a megabyte; who takes the bit to be the right one asks a second witness where there is one.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from crc32c import crc32c

from exacta.adapters.local.files import Files
from exacta.ports.journal import Buffer

T = TypeVar("T")

_POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected
MOST_BYTES = 128 << 20
"""Of what a flipped bit is looked for in: a bound on the time, some 20 seconds."""


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()
_BY_HIGH_BYTE = {entry >> 24: (byte, entry) for byte, entry in enumerate(_TABLE)}
_BITS = frozenset(1 << bit for bit in range(8))


class Patch(NamedTuple):
    """These bytes belong at this offset of a file."""

    offset: int
    content: bytes


def flipped_bit(data: Buffer, checksum: int) -> Patch | None:
    """Return the byte of `data` that has one bit flipped, as it was, if that explains the checksum."""
    if len(data) > MOST_BYTES:
        return None
    difference = crc32c(data) ^ checksum
    for at in range(len(data) - 1, -1, -1):
        byte, entry = _BY_HIGH_BYTE[difference >> 24]
        difference = (difference ^ entry) << 8 | byte  # before this byte was taken in
        if difference in _BITS:
            return Patch(at, bytes((data[at] ^ difference,)))
    return None


def with_one_bit_put_back(data: bytes, unpack: Callable[[bytes], T | None]) -> tuple[Patch, T] | None:
    """Try each bit of a few bytes until they can be unpacked."""
    for at in range(len(data)):
        for bit in _BITS:
            content = bytes((data[at] ^ bit,))
            found = unpack(data[:at] + content + data[at + 1 :])
            if found is not None:
                return Patch(at, content), found
    return None


class View:
    """The files of a directory as they would be: those calls of `Files` that look at them, and none that writes."""

    def __init__(self, files: Files) -> None:
        self.directory: Path = files.directory
        self.files = files
        self.sources: dict[str, str] = {name: name for name in files.names()}
        """What is there, and which file it really is."""
        self.contents: dict[str, bytes] = {}
        """Small files that are there in memory only; they go before `sources`."""
        self.patches: dict[str, list[Patch]] = {}
        self._handles: dict[int, str] = {}
        self._last_handle = -1  # ours count down, to be no one else's

    def patch(self, name: str, patches: Iterable[Patch]) -> None:
        """Let these bytes of the file be others."""
        self.patches.setdefault(name, []).extend(patches)

    def put(self, name: str, content: bytes) -> None:
        """Let the file be this."""
        self.patches.pop(name, None)
        self.contents[name] = content

    def remove(self, name: str) -> None:
        """Let there be no such file."""
        for known in (self.sources, self.contents, self.patches):
            known.pop(name, None)

    def is_changed(self, name: str) -> bool:
        """Whether the file is not as it lies in the directory."""
        return name in self.contents or name in self.patches or self.sources.get(name) != name

    def names(self) -> list[str]:
        """See `Files.names`."""
        return [*self.sources, *(name for name in self.contents if name not in self.sources)]

    def open(self, name: str, *, writable: bool = False) -> int:
        """See `Files.open`."""
        assert not writable
        if name in self.contents:
            handle = self._last_handle = self._last_handle - 1
        elif name in self.sources:
            handle = self.files.open(self.sources[name])
        else:
            raise FileNotFoundError(name)
        self._handles[handle] = name
        return handle

    def close(self, handle: int) -> None:
        """See `Files.close`."""
        del self._handles[handle]
        if handle >= 0:
            self.files.close(handle)

    def size(self, handle: int) -> int:
        """See `Files.size`."""
        return self.files.size(handle) if handle >= 0 else len(self.contents[self._handles[handle]])

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """See `Files.read`."""
        name = self._handles[handle]
        if handle < 0:
            return self.contents[name][offset : offset + size]
        data = self.files.read(handle, size, offset)
        for patch in self.patches.get(name, ()):
            begin = max(patch.offset, offset)
            end = min(patch.offset + len(patch.content), offset + len(data))
            if begin < end:
                part = patch.content[begin - patch.offset : end - patch.offset]
                data = data[: begin - offset] + part + data[end - offset :]
        return data
