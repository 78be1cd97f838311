"""A damaged journal with single flipped bits put right, as it would be then.

`View` shows a journal's files with some of their bytes, or whole files, replaced; nothing is written (see `repair`).
Flipped bits are found from checksums. `mended_files` knows what is in which file, and `surveyor` and `segment_walk`
decide what is lost.

Theory of operation. A CRC is linear: the effect of a flipped bit on it depends only on how far the bit lies from the
end. So the difference between the checksum that is there and the one that should be there names the bit, if one bit was
flipped. Another kind of damage looks like one flipped bit with a chance of one in 2**32 for each bit of what is
checked: about 0.2 % for a group of a megabyte. So a caller asks a second witness where there is one.
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
"""A flipped bit is looked for in at most this many bytes, which takes some 20 seconds."""


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
    """The bytes that belong at an offset of a file."""

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
    """Show the files of a directory as they would be, by the calls of `Files` that read; there are none that write."""

    def __init__(self, files: Files) -> None:
        self.directory: Path = files.directory
        self.files = files
        self.sources: dict[str, str] = {name: name for name in files.names()}
        """The file in the directory that stands for each name of the view."""
        self.contents: dict[str, bytes] = {}
        """The small files whose content is in memory only; they hide those in `sources`."""
        self.patches: dict[str, list[Patch]] = {}
        self._handles: dict[int, str] = {}
        self._last_handle = -1  # ours count down, to be no one else's

    def patch(self, name: str, patches: Iterable[Patch]) -> None:
        """Replace these bytes of the file."""
        self.patches.setdefault(name, []).extend(patches)

    def put(self, name: str, content: bytes) -> None:
        """Replace the file, or add it."""
        self.patches.pop(name, None)
        self.contents[name] = content

    def remove(self, name: str) -> None:
        """Remove the file from the view."""
        for known in (self.sources, self.contents, self.patches):
            known.pop(name, None)

    def is_changed(self, name: str) -> bool:
        """Say whether the view shows another content than the directory has under this name."""
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
