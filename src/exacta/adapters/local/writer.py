"""Writer of groups at the end of the journal: it writes them and makes them durable.

It runs on the journal thread while an append is in flight, else on the event loop's: never on both. It has the active
segment's handle for writing and the chain of checksums, and creates new segments. Others keep the index, and decide
when a new segment begins and what is done after a failure.
"""

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress

from exacta.adapters.local.files import Files, write_fully
from exacta.adapters.local.format import (
    MARK_BYTES,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentHeader,
    file_name,
    pack_segment_header,
)
from exacta.adapters.local.framing import pack_group
from exacta.ports.journal import Buffer

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""A disk or a quota that is full: what was not written can be written once there is room."""


class Writer:
    """Write groups at the end of the segment that starts at `base`; all before `durable_end` is durable."""

    def __init__(self, files: Files, handle: int, header: SegmentHeader, last_checksum: int, durable_end: int) -> None:
        self.handle = handle
        self.base = header.base
        self.last_checksum = last_checksum
        self.mark = header.mark
        self.durable_end = durable_end
        self.give_room: Callable[[int], bool] = lambda size: False
        """Makes this many bytes free for a write that has met a full disk; False: there are none to be had."""
        self._files = files

    def write_group(
        self, position: int, table: bytes, payload: Sequence[Buffer], entry_count: int, *, unsynced: bool
    ) -> int:
        """Write one group at `position`, `unsynced` or about to be synced; return the position after it."""
        buffers, size, checksum = pack_group(
            self.mark,
            self.last_checksum,
            position,
            table,
            payload,
            entry_count,
            self.durable_end,
            unsynced=unsynced,
        )
        offset = position - self.base + SEGMENT_HEADER_BYTES
        try:
            write_fully(self._files, self.handle, buffers, offset)
        except OSError as error:
            if error.errno not in NO_ROOM or not self.give_room(size):
                raise
            # A part may be written, and none of it is synced: the same bytes go to the same place.
            write_fully(self._files, self.handle, buffers, offset)
        self.last_checksum = checksum
        return position + size

    def sync(self, position: int) -> None:
        """Make durable all that is written, which ends at `position`."""
        self._files.sync_data(self.handle)
        self.durable_end = position

    def roll(self, position: int) -> None:
        """Begin a new segment at `position`; the handle of the old one is left to its readers."""
        if self.durable_end < position:
            self.sync(position)
        self.handle, header = create_segment(self._files, position, self.last_checksum)
        self.base = header.base
        self.mark = header.mark


def create_segment(files: Files, base: int, previous_checksum: int) -> tuple[int, SegmentHeader]:
    """Create the segment file, durable with its name before any group is written to it; return handle and header."""
    handle = files.create(file_name(base, SEGMENT_SUFFIX), exclusive=True)
    try:
        files.take(handle)
        return handle, write_segment_header(files, handle, base, previous_checksum)
    except BaseException:
        files.close(handle)
        raise


def write_segment_header(files: Files, handle: int, base: int, previous_checksum: int) -> SegmentHeader:
    """Write a new header into an empty segment file and make file and name durable."""
    header = SegmentHeader(base, files.random_bytes(MARK_BYTES), previous_checksum)
    write_fully(files, handle, [pack_segment_header(header)], 0)
    files.sync(handle)
    files.sync_directory()
    return header


def write_file(files: Files, name: str, buffers: Sequence[Buffer]) -> None:
    """Put a whole file in place: it exists under `name` with all of its content, durable, or not at all."""
    temporary_name = name + TEMPORARY_SUFFIX
    write_temporary(files, temporary_name, buffers)
    put_in_place(files, temporary_name, name)


def put_in_place(files: Files, temporary_name: str, name: str) -> None:
    """Give a written file its name, durably; if that raises OSError, nobody knows which name it has."""
    files.rename(temporary_name, name)
    files.sync_directory()


def write_temporary(files: Files, temporary_name: str, buffers: Sequence[Buffer]) -> None:
    """Write and sync a whole file; the caller syncs the directory. If the write fails, there is no such file."""
    handle = files.create(temporary_name)
    try:
        try:
            write_fully(files, handle, buffers, 0)
            files.sync(handle)
        finally:
            files.close(handle)
    except BaseException:
        with suppress(OSError):  # on a full disk its bytes are somebody else's need
            files.remove(temporary_name)
        raise
