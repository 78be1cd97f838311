"""The file `tail`: a note of how far the journal was written, which tells the next opening whether its end was lost.

A write ahead of its sync outlives the process, since the kernel has it, but not the machine. The note is kept in the
same way, up to date without a sync. So the next opening finds one of these:

    the note says                            the journal ends there, or later   it ends before
    all is synced                            nothing is missing                 a write may be missing *
    written, in the machine's present run    nothing is missing **              a write may be missing *
    written, in another run                  a write may be missing             a write may be missing *
    written, in a run that has no name       a write may be missing             a write may be missing *

* One is: the kernel lost it, after a failed sync. ** Only the process died.

Where there is no note that can be read, nothing is missing if the journal is empty, in a new directory; else a write
may be missing.

An opening makes its note when its first group is durable, and before anything is written ahead: that group holds what
was concluded from the old note. The note says that all is synced if nothing will be written ahead, and after a clean
stop.
"""

from struct import Struct

from crc32c import crc32c

from exacta.adapters.local.files import Files, read_file, write_fully
from exacta.adapters.local.writer import write_file

NAME = "tail"
_HEAD = Struct("<8sI")  # magic, checksum of the rest
_REST = Struct("<IQ40s")  # whether all is synced, position, run
_SIZE = _HEAD.size + _REST.size
_MAGIC = b"EXACTA-T"


class Tail:
    """The note; every method may raise OSError."""

    def __init__(self, files: Files, end: int) -> None:
        """Read the note against a journal that ends at `end`, and leave it as it is."""
        self._files = files
        self._handle: int | None = None
        self._boot_id = files.boot_id().encode("ascii")
        self.may_have_lost = _may_have_lost(_read(files), end, self._boot_id)

    @property
    def has_begun(self) -> bool:
        """True if this opening has made its own note."""
        return self._handle is not None

    def begin(self, position: int, *, unsynced_writes: bool) -> None:
        """Begin a new note, durably, of a journal that is durable up to here."""
        content = _pack(self._boot_id, position, synced=not unsynced_writes)
        write_file(self._files, NAME, [content])
        self._handle = self._files.open(NAME, writable=True)

    def wrote(self, position: int) -> None:
        """Note that the journal is written up to here."""
        assert self._handle is not None
        write_fully(self._files, self._handle, [_pack(self._boot_id, position, synced=False)], 0)

    def end(self, position: int) -> None:
        """Note that the journal ends here, and that all of it is synced."""
        if self._handle is not None:
            write_fully(self._files, self._handle, [_pack(self._boot_id, position, synced=True)], 0)
            self._files.sync(self._handle)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            self._files.close(self._handle)
            self._handle = None


def _pack(boot_id: bytes, position: int, *, synced: bool) -> bytes:
    rest = _REST.pack(synced, position, boot_id)
    return _HEAD.pack(_MAGIC, crc32c(rest)) + rest


def _read(files: Files) -> bytes | None:
    try:
        return read_file(files, NAME)
    except FileNotFoundError:
        return None


def _may_have_lost(data: bytes | None, end: int, boot_id: bytes) -> bool:
    if data is None or len(data) != _SIZE:
        return end > 0
    magic, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC or checksum != crc32c(data[_HEAD.size :]):
        return end > 0
    synced, position, noted_boot_id = _REST.unpack_from(data, _HEAD.size)
    if position > end:
        return True
    return not synced and (not boot_id or noted_boot_id.rstrip(b"\0") != boot_id)
