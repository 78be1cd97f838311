"""The objects of a shared journal under the names that files of a local one have.

What reads and writes a local journal (its index, replay, snapshots, cleaning, compaction) does so through
`exacta.adapters.local.files.Files`. `ObjectFiles` is one over a catalog: a segment, a segment index or a snapshot has
the name that it would have in a directory, and its bytes come from the object store. The segments of the tail have
names, too; their bytes are where `TailBytes` has them. All other names are files of the *cache directory*. There jobs
write what they make, before it is put as an object, and there the indexes lie that were fetched.

An object is never changed, so nothing here is ever out of date. What is gone was removed from the catalog (`Gone`).
"""

import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

from crc32c import crc32c

from exacta.adapters.local.files import Files, read_file, write_fully
from exacta.adapters.local.format import (
    INDEX_SUFFIX,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentId,
    file_name,
    is_temporary,
    positions_of,
    temporary_name,
)
from exacta.adapters.shared.blocks import Blocks, Gone, store_error
from exacta.ports.journal import Buffer, JournalDamaged
from exacta.ports.shared import CatalogEntry, Kind, ObjectStore, StoreFailed

CACHED_SUFFIX = ".cached"
"""The files of indexes that were fetched end so."""
MAKING_SUFFIX = ".making"
"""The files of segments of the tail that become objects end so."""


class TailBytes(Protocol):
    """The bytes of the segments that are in the tail, as segment files; `base` says of which one. Any thread calls."""

    def size(self, base: int) -> int | None:
        """Return how many bytes the segment has so far, its header included; None: it is not in the tail."""

    def read(self, base: int, size: int, offset: int) -> bytes:
        """Return these bytes of the segment; raise OSError where they have left the tail."""

    def read_nowait(self, base: int, size: int, offset: int) -> bytes | None:
        """Return these bytes if that takes no waiting; else None."""


class NoTail:
    """A tail that has no segments: what a job of its own process sees."""

    def size(self, base: int) -> int | None:
        """See `TailBytes.size`."""
        return None

    def read(self, base: int, size: int, offset: int) -> bytes:
        """See `TailBytes.read`."""
        raise Gone(errno.ENOENT, f"position {base} is not in the tail")

    def read_nowait(self, base: int, size: int, offset: int) -> bytes | None:
        """See `TailBytes.read_nowait`."""
        return None


def segment_id(entry: CatalogEntry) -> SegmentId:
    """Return the id of the segment that an entry of the catalog is."""
    return SegmentId(entry.base, entry.generation, entry.kind is Kind.COMPACTED)


def name_of(entry: CatalogEntry) -> str:
    """Return the name that an entry's object has among the files."""
    if entry.kind is Kind.SNAPSHOT:
        return file_name(entry.end, SNAPSHOT_SUFFIX)
    return segment_id(entry).name(SEGMENT_SUFFIX)


def index_key(entry: CatalogEntry) -> str:
    """Return the key of the index of an entry's object."""
    return entry.key + INDEX_SUFFIX


class _OpenObject(NamedTuple):
    entry: CatalogEntry


class _OpenTail(NamedTuple):
    base: int


class ObjectFiles:
    """Implement `Files` over the objects of a catalog and a cache directory; handles of the former are negative."""

    def __init__(self, scratch: Files, store: ObjectStore, blocks: Blocks) -> None:
        self.scratch = scratch
        self.store = store
        self.blocks = blocks
        self.tail: TailBytes = NoTail()
        self._entries: dict[str, CatalogEntry] = {}
        self._indexes: dict[str, CatalogEntry] = {}
        self._open: dict[int, _OpenObject | _OpenTail] = {}
        self._handles = count(-1, -1)
        self._checked: set[str] = set()

    @property
    def directory(self) -> Path:
        """See `Files.directory`."""
        return self.scratch.directory

    def tell_damage(self, name: str, offset: int, reason: str) -> str:
        """See `Files.tell_damage`."""
        entry = self._entries.get(name) or self._indexes.get(name)
        place = f"{name} of the tail" if entry is None else f"object {entry.key}"
        return (
            f"{place}, byte {offset}: {reason}. The store has lost or altered it; restore it from a copy of the store."
        )

    # --- the catalog --------------------------------------------------------------------------------------------------

    def show(self, entries: Iterable[CatalogEntry]) -> None:
        """Let these, and no others, be the objects that have names."""
        shown = {name_of(entry): entry for entry in entries}
        self._indexes = {segment_id(each).name(INDEX_SUFFIX): each for each in shown.values() if each.index_bytes}
        self._entries = shown

    @property
    def shown(self) -> Sequence[CatalogEntry]:
        """The objects that have names."""
        return list(self._entries.values())

    def entry(self, wanted: SegmentId) -> CatalogEntry:
        """Return the entry that is this segment; raise Gone."""
        name = wanted.name(SEGMENT_SUFFIX)
        entry = self._entries.get(name)
        if entry is None:
            raise Gone(errno.ENOENT, f"{name} is not in the catalog")
        return entry

    def map_index(self, entry: CatalogEntry) -> memoryview:
        """Return the index of an object, which is fetched whole and checked; raise OSError, JournalDamaged."""
        name = self._cached_name(entry)
        if entry.key in self._checked or self._is_cached(entry, name):
            self._checked.add(entry.key)
            try:
                return self.scratch.map(name)
            except OSError:
                self._checked.discard(entry.key)  # somebody cleared the cache
        data = self._fetch_index(entry)
        try:
            self._write_cached(name, data)
            self._checked.add(entry.key)
            return self.scratch.map(name)
        except OSError:
            return memoryview(data)  # the cache has no room

    def keep_index(self, entry: CatalogEntry, data: bytes) -> None:
        """Put the index of an object into the cache, as it was made again; raise OSError."""
        self._write_cached(self._cached_name(entry), data)
        self._checked.add(entry.key)

    def forget(self, entries: Iterable[CatalogEntry]) -> None:
        """Give back the room that objects take here which are no longer in the catalog."""
        for entry in entries:
            self.blocks.forget(entry.key)
            self._checked.discard(entry.key)
            if entry.index_bytes:
                self._discard(self._cached_name(entry))

    def clear_leavings(self) -> None:
        """Remove from the cache directory what earlier processes have left that is not an index of this catalog."""
        kept = {self._cached_name(entry) for entry in self._indexes.values()}
        for name in self.scratch.names():
            ours = name.endswith((CACHED_SUFFIX, MAKING_SUFFIX, TEMPORARY_SUFFIX))
            ours = ours or bool(positions_of([name], SEGMENT_SUFFIX))
            if ours and name not in kept:
                self._discard(name)

    def clear_temporary(self) -> None:
        """Remove what a job has left in the cache directory that failed: its bytes are the next one's need."""
        for name in filter(is_temporary, self.scratch.names()):
            self._discard(name)

    def _discard(self, name: str) -> None:
        with suppress(OSError):  # the next opening clears it away
            self.scratch.remove(name)

    def _cached_name(self, entry: CatalogEntry) -> str:
        return entry.key.rpartition("/")[2] + INDEX_SUFFIX + CACHED_SUFFIX

    def _is_cached(self, entry: CatalogEntry, name: str) -> bool:
        try:
            data = read_file(self.scratch, name)
        except OSError:
            return False
        return len(data) == entry.index_bytes and crc32c(data) == entry.index_checksum

    def _fetch_index(self, entry: CatalogEntry) -> bytes:
        try:
            data = self.store.get(index_key(entry))
        except StoreFailed as error:
            raise store_error(error) from error
        if len(data) != entry.index_bytes or crc32c(data) != entry.index_checksum:
            raise JournalDamaged(f"object {index_key(entry)} is not what was written")
        return data

    def _write_cached(self, name: str, data: bytes) -> None:
        """Write a file of the cache; nothing is synced, since it is checked whenever a process first uses it."""
        making = temporary_name(name, self.scratch.random_bytes(4))
        handle = self.scratch.create(making)
        try:
            write_fully(self.scratch, handle, [data], 0)
        finally:
            self.scratch.close(handle)
        self.scratch.rename(making, name)

    # --- reading ------------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """See `Files.names`: objects of the catalog only."""
        return [*self._entries, *self._indexes]

    def open(self, name: str, *, writable: bool = False) -> int:
        """See `Files.open`."""
        entry = self._entries.get(name)
        if entry is not None:
            return self.open_entry(entry)
        if (index := self._indexes.get(name)) is not None:
            self.map_index(index)  # which fetches it
            return self.scratch.open(self._cached_name(index))
        bases = positions_of([name], SEGMENT_SUFFIX)
        if not bases or self.tail.size(bases[0]) is None:
            return self.scratch.open(name, writable=writable)
        return self._take_handle(_OpenTail(bases[0]))

    def open_entry(self, entry: CatalogEntry) -> int:
        """Open an object that need not have a name yet."""
        return self._take_handle(_OpenObject(entry))

    def _take_handle(self, opened: "_OpenObject | _OpenTail") -> int:
        handle = next(self._handles)
        self._open[handle] = opened
        return handle

    def close(self, handle: int) -> None:
        """See `Files.close`."""
        if handle < 0:
            del self._open[handle]
        else:
            self.scratch.close(handle)

    def size(self, handle: int) -> int:
        """See `Files.size`."""
        if handle >= 0:
            return self.scratch.size(handle)
        opened = self._open[handle]
        if isinstance(opened, _OpenObject):
            return opened.entry.size
        size = self.tail.size(opened.base)
        if size is not None:
            return size
        entry = self._became(opened)
        if entry is None:
            raise Gone(errno.ENOENT, f"position {opened.base} is no longer in the tail")
        return entry.size

    def _became(self, opened: _OpenTail) -> CatalogEntry | None:
        """Return the object that a segment of the tail has become; None: there is none, or it was cleaned since."""
        return self._entries.get(file_name(opened.base, SEGMENT_SUFFIX))

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """See `Files.read`."""
        if handle >= 0:
            return self.scratch.read(handle, size, offset)
        opened = self._open[handle]
        if isinstance(opened, _OpenTail):
            try:
                return self.tail.read(opened.base, size, offset)
            except OSError:
                entry = self._became(opened)
                if entry is None:
                    raise
        else:
            entry = opened.entry
        if entry.kind is Kind.SNAPSHOT:  # it is read once, and whole
            try:
                return self.store.get(entry.key, offset, size)
            except StoreFailed as error:
                raise store_error(error) from error
        return self.blocks.read(entry.key, entry.size, size, offset)

    def read_nowait(self, handle: int, buffer: bytearray, offset: int) -> bool | None:
        """See `Files.read_nowait`."""
        opened = self._open[handle]
        if isinstance(opened, _OpenTail):
            data = self.tail.read_nowait(opened.base, len(buffer), offset)
            entry = self._became(opened)
        else:
            data, entry = None, opened.entry
        if data is None and entry is not None:
            data = self.blocks.read_cached(entry.key, entry.size, len(buffer), offset)
        if data is None or len(data) != len(buffer):
            return False
        buffer[:] = data
        return True

    def map(self, name: str) -> memoryview:
        """See `Files.map`."""
        index = self._indexes.get(name)
        return self.scratch.map(name) if index is None else self.map_index(index)

    def release_mapped(self, view: memoryview) -> None:
        """See `Files.release_mapped`."""
        self.scratch.release_mapped(view)

    # --- the cache directory ------------------------------------------------------------------------------------------

    def lock(self) -> None:
        """See `Files.lock`."""
        self.scratch.lock()

    def unlock(self) -> None:
        """See `Files.unlock`."""
        self.scratch.unlock()

    def take(self, handle: int) -> None:
        """See `Files.take`."""
        self.scratch.take(handle)

    def create(self, name: str, *, exclusive: bool = False) -> int:
        """See `Files.create`."""
        return self.scratch.create(name, exclusive=exclusive)

    def write(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        """See `Files.write`."""
        return self.scratch.write(handle, buffers, offset)

    def truncate(self, handle: int, size: int) -> None:
        """See `Files.truncate`."""
        self.scratch.truncate(handle, size)

    def sync_data(self, handle: int) -> None:
        """See `Files.sync_data`: nothing here must outlive the process."""

    def sync(self, handle: int) -> None:
        """See `Files.sync`: nothing here must outlive the process."""

    def sync_directory(self) -> None:
        """See `Files.sync_directory`: nothing here must outlive the process."""

    def rename(self, name: str, new_name: str) -> None:
        """See `Files.rename`."""
        self.scratch.rename(name, new_name)

    def remove(self, name: str) -> None:
        """See `Files.remove`."""
        self.scratch.remove(name)

    def remove_gradually(self, name: str, is_stopped: Callable[[], bool]) -> None:
        """See `Files.remove_gradually`."""
        self.scratch.remove_gradually(name, is_stopped)

    def available_bytes(self) -> int:
        """See `Files.available_bytes`."""
        return self.scratch.available_bytes()

    def total_bytes(self) -> int:
        """See `Files.total_bytes`."""
        return self.scratch.total_bytes()

    def allocate(self, handle: int, size: int) -> None:
        """See `Files.allocate`."""
        self.scratch.allocate(handle, size)

    def random_bytes(self, size: int) -> bytes:
        """See `Files.random_bytes`."""
        return self.scratch.random_bytes(size)

    def boot_id(self) -> str:
        """See `Files.boot_id`."""
        return self.scratch.boot_id()
