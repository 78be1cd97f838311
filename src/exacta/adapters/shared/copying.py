"""Copies of a log that nobody writes to: from a directory into objects, and from objects and a tail into a directory.

The bytes are the same in both places. A segment with its index is a file with its index; snapshots are equal, too. What
a broker alone writes besides (the files `format`, `start`, `compacted` and `tail`) follows from the catalog. Everything
here blocks. What is copied is read back or opened, and its checksums are compared, before anybody relies on it.

The caller owns the order of the steps, and sees to it that nobody writes to either place (`server.cluster.moving`).
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from crc32c import crc32c

from exacta.adapters.local import format_file
from exacta.adapters.local.directory_lock import LOCK_NAME
from exacta.adapters.local.files import Files, read_file, write_fully
from exacta.adapters.local.format import (
    FORMAT_NAME,
    INDEX_SUFFIX,
    MARK_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    GroupHeader,
    SegmentHeader,
    file_name,
    pack_segment_header,
    unpack_group_header,
    unpack_snapshot,
)
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.opening import first_position, recovery, unsynced_end
from exacta.adapters.local.opening.recovery import OpenedDirectory
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.local.space import compacted_segments
from exacta.adapters.local.writer import create_segment, write_file
from exacta.adapters.shared.blocks import BLOCK_BYTES
from exacta.adapters.shared.files import index_key, name_of, segment_id
from exacta.adapters.shared.publishing import put, snapshot_entry
from exacta.ports.journal import Buffer, JournalDamaged, Schema
from exacta.ports.shared import CatalogEntry, CatalogSeen, Kind, ObjectStore, TailGroup

KEY_BYTES = 8


class NotClean(Exception):
    """The last writes of a directory may be lost: a broker that starts on it says so in the log."""


class Upload(NamedTuple):
    """An object that is to be put, with its key, so that it can be intended before."""

    key: str
    put: Callable[[], CatalogEntry]


class OpenLog(NamedTuple):
    """A log in a directory, opened for nobody but this copy."""

    files: Files
    opened: OpenedDirectory

    @property
    def end(self) -> int:
        """The position at which the log ends."""
        return self.opened.position

    def uploads(self, store: ObjectStore) -> list[Upload]:
        """Return what puts the log into objects; each may raise OSError or JournalDamaged."""
        opened, files = self.opened, self.files
        *sealed, last = opened.segments
        made: list[Upload] = []
        for segment in (*sealed, *opened.compacted):
            room = "compacted" if segment.is_compacted else "segments"
            key = _new_key(files, room, segment.name)
            made.append(Upload(key, partial(_put_sealed, files, store, segment, key)))
        if opened.position > last.base:
            key = _new_key(files, "segments", last.name)
            made.append(Upload(key, partial(_put_last, self, store, key)))
        for position in snapshot_files.positions(files):
            name = file_name(position, SNAPSHOT_SUFFIX)
            if unpack_snapshot(read_file(files, name), position) is not None:  # else a start passes it over, too
                key = _new_key(files, "snapshots", name)
                made.append(Upload(key, partial(_put_snapshot, files, store, position, key)))
        return made


@contextmanager
def open_log(files: Files, schema: Schema) -> Iterator[OpenLog]:
    """Open the log of a directory whose lock is held. Raises NotClean, JournalError and OSError."""
    opened = recovery.recover(files, schema)
    try:
        if unsynced_end.Tail(files, opened.position).may_have_lost:
            raise NotClean
        yield OpenLog(files, opened)
    finally:
        files.close(opened.writer.handle)
        for segment in (*opened.segments, *opened.compacted):
            segment.release(files)


def _new_key(files: Files, room: str, name: str) -> str:
    return f"{room}/{name.removesuffix(SEGMENT_SUFFIX)}-copied-{files.random_bytes(KEY_BYTES).hex()}"


def _put_sealed(files: Files, store: ObjectStore, segment: Segment, key: str) -> CatalogEntry:
    assert segment.index is not None
    kind = Kind.COMPACTED if segment.is_compacted else Kind.CLEANED if segment.generation else Kind.WRITTEN
    index: list[Buffer] = [files.map(segment.index_name)]
    return _put_segment(files, store, segment, kind, (segment.index.end, segment.index.last_checksum), index, key)


def _put_last(log: OpenLog, store: ObjectStore, key: str) -> CatalogEntry:
    last, writer, end = log.opened.segments[-1], log.opened.writer, log.end
    index = pack_segment_index(last.growing, writer.mark, end, writer.last_checksum)
    return _put_segment(log.files, store, last, Kind.WRITTEN, (end, writer.last_checksum), index, key)


def _put_segment(
    files: Files,
    store: ObjectStore,
    segment: Segment,
    kind: Kind,
    ends: tuple[int, int],
    index: Sequence[Buffer],
    key: str,
) -> CatalogEntry:
    size, checksum = put(store, key, [files.map(segment.name)])
    index_bytes, index_checksum = put(store, key + INDEX_SUFFIX, index)
    generation = segment.generation
    return CatalogEntry(
        key, kind, segment.base, *(ends[0], generation, ends[1]), size, checksum, index_bytes, index_checksum
    )


def _put_snapshot(files: Files, store: ObjectStore, position: int, key: str) -> CatalogEntry:
    return snapshot_entry(key, position, *put(store, key, [read_file(files, file_name(position, SNAPSHOT_SUFFIX))]))


# --- into a directory -------------------------------------------------------------------------------------------------


class Download:
    """Write a log into a directory whose lock is held: the objects, then the groups of the tail, then `finish`."""

    def __init__(self, files: Files, seen: CatalogSeen, schema: Schema) -> None:
        """Remove what an earlier copy has left in the directory. Raises OSError."""
        self._files = files
        self._seen = seen
        self._schema = schema
        self._handle: int | None = None
        self._mark = b""
        self._base = 0
        self.end = seen.tail_from
        """The position up to which the log is written."""
        for name in files.names():
            if name != LOCK_NAME:
                files.remove(name)

    def fetch(self, store: ObjectStore) -> None:
        """Write all objects. Raises StoreFailed, JournalDamaged and OSError."""
        files, entries = self._files, self._seen.entries
        write_file(files, FORMAT_NAME, [format_file.pack(format_file.present(self._schema))])
        for entry in entries:
            _fetch(files, store, entry.key, name_of(entry), entry.size, entry.checksum)
            if entry.index_bytes:
                name = segment_id(entry).name(INDEX_SUFFIX)
                _fetch(files, store, index_key(entry), name, entry.index_bytes, entry.index_checksum)
        begin = min((each.base for each in entries if each.kind <= Kind.CLEANED), default=self._seen.tail_from)
        if begin:
            first_position.write(files, begin)
            first_position.put_in_place(files)
        if numbers := sorted(each.base for each in entries if each.kind is Kind.COMPACTED):
            compacted_segments.save(files, compacted_segments.Named(numbers, numbers[-1] + 1))

    def add(self, group: TailGroup) -> None:
        """Write the next group of the tail. Raises JournalDamaged and OSError."""
        mark = bytes(group.body[:MARK_BYTES])
        header: GroupHeader | None = unpack_group_header(group.body, mark)
        if header is None or (header.position, header.size) != (self.end, len(group.body)):
            raise JournalDamaged(f"the tail has no sound group at position {self.end}")
        if mark != self._mark:
            self._close()
            self._mark, self._base = mark, self.end
            self._handle = self._files.create(file_name(self.end, SEGMENT_SUFFIX), exclusive=True)
            begins = pack_segment_header(SegmentHeader(self.end, mark, header.previous_checksum))
            write_fully(self._files, self._handle, [begins], 0)
            self._size = len(begins)
        assert self._handle is not None
        write_fully(self._files, self._handle, [group.body], self._size)
        self._size += len(group.body)
        self.end = group.end

    def finish(self) -> None:
        """Open the log that is written, which looks at all of the tail, and let it end cleanly.

        Raises JournalError and OSError.
        """
        files, seen = self._files, self._seen
        if self._handle is None:
            log = [each for each in seen.entries if each.kind <= Kind.CLEANED and each.end == self.end]
            self._handle, _ = create_segment(files, self.end, log[0].last_checksum if log else 0)
        self._close()
        files.sync_directory()
        opened = recovery.recover(files, self._schema)
        files.close(opened.writer.handle)
        for segment in (*opened.segments, *opened.compacted):
            segment.release(files)
        if opened.position != self.end:
            raise JournalDamaged(f"the log was copied up to position {self.end}, and ends at {opened.position}")
        note = unsynced_end.Tail(files, self.end)
        note.begin(self.end, unsynced_writes=False)
        note.close()

    def _close(self) -> None:
        if self._handle is not None:
            self._files.sync(self._handle)
            self._files.close(self._handle)
            self._handle = None


def _fetch(files: Files, store: ObjectStore, key: str, name: str, size: int, checksum: int) -> None:
    """Write an object into a file."""
    handle = files.create(name, exclusive=True)
    try:
        found, at = 0, 0
        while part := store.get(key, at, BLOCK_BYTES):
            write_fully(files, handle, [part], at)
            found, at = crc32c(part, found), at + len(part)
        if (at, found) != (size, checksum):
            raise OSError(errno.EIO, f"object {key} is not what was put")
        files.sync(handle)
    finally:
        files.close(handle)
