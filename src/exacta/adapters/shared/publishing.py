"""Jobs over objects, which run in a process of their own: putting what was made, and making it.

A job gets `ObjectFiles` over the catalog as it was when the job was asked for. What it makes it writes into the cache
directory, and what is put is read back. An object counts once the catalog has it; so a job changes nothing by itself.
"""

import errno
from collections.abc import Callable, Sequence
from typing import TypeVar

from crc32c import crc32c

from exacta.adapters.local.child_process import JobRunner
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import (
    INDEX_SUFFIX,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SegmentId,
    file_name,
    pack_snapshot,
    unpack_segment_header,
)
from exacta.adapters.local.index.sealed_segment import NewSegment
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.opening.segment_scan import SegmentScan
from exacta.adapters.local.writer import write_temporary
from exacta.adapters.shared.blocks import BLOCK_BYTES, Blocks, store_error
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.files import MAKING_SUFFIX, ObjectFiles
from exacta.ports.journal import Buffer, JournalDamaged
from exacta.ports.shared import CatalogEntry, Kind, ObjectStore, StoreFailed

T = TypeVar("T")

_JOB_BLOCKS_BYTES = 32 << 20


class ObjectJobs:
    """Run jobs over the objects of the present catalog."""

    def __init__(self, runner: JobRunner, store: ObjectStore, catalog: Catalog) -> None:
        self._runner = runner
        self._store = store
        self._catalog = catalog

    def prepare(self, job: Callable[..., T], *args: object) -> Callable[[], T]:
        """Return what runs `job(files, *args)` over the catalog as it is now, on a worker.

        That returns what the job returns, and raises what it raises, Interrupted, or OSError where it cannot be run.
        """
        entries = list(self._catalog.entries.values())
        return lambda: self._runner.run(over_objects, self._store, entries, job, *args)

    def stop(self) -> None:
        """Give up the job that is running, and run no other."""
        self._runner.stop()


def over_objects(
    scratch: Files, store: ObjectStore, entries: Sequence[CatalogEntry], job: Callable[..., T], *args: object
) -> T:
    """Return `job(files, *args)` over these objects."""
    files = ObjectFiles(scratch, store, Blocks(store, _JOB_BLOCKS_BYTES))
    files.show(entries)
    return job(files, *args)


def names_of_tail(base: int) -> tuple[str, str]:
    """Return the names of the files that become the object of a segment of the tail, and its index."""
    return file_name(base, SEGMENT_SUFFIX + MAKING_SUFFIX), file_name(base, INDEX_SUFFIX + MAKING_SUFFIX)


def publish_tail(files: ObjectFiles, base: int, key: str) -> CatalogEntry:
    """Put the file that is the segment of the tail from `base` on, with its index; raise OSError, JournalDamaged.

    All of it is checked: what is altered must not become an object that the tail makes room for.
    """
    segment = Segment(base)
    name, index_name = names_of_tail(base)
    handle = files.open(name)
    try:
        scan = SegmentScan(files, handle)
        if scan.header is None or scan.header.base != base:
            raise JournalDamaged(f"the tail from position {base} on does not begin as a segment")
        for group in scan.groups():
            for entry in group.entries:
                for row in entry.rows:
                    segment.add(group.payload_position + entry.payload_start, row)
        if scan.fault is not None:
            raise JournalDamaged(f"the tail from position {base} on, byte {scan.fault.offset}: {scan.fault.reason}")
    finally:
        files.close(handle)
    mark = scan.header.mark
    write_temporary(files, index_name, pack_segment_index(segment.growing, mark, scan.end, scan.last_checksum))
    new = NewSegment(SegmentId(base), mark, scan.size, name, index_name)
    return _put_segment(files, new, key, Kind.WRITTEN, scan.end, scan.last_checksum)


def publish_segment(files: ObjectFiles, new: NewSegment, key: str) -> CatalogEntry:
    """Put a segment that was cleaned or compacted; raise OSError, JournalDamaged."""
    handle = files.open(new.temporary_name)
    try:
        header = unpack_segment_header(files.read(handle, SEGMENT_HEADER_BYTES, 0))
    finally:
        files.close(handle)
    if header is None or header.mark != new.mark:
        raise JournalDamaged(f"{new.temporary_name} is not what was written")
    kind = Kind.COMPACTED if new.id.is_compacted else Kind.CLEANED
    return _put_segment(files, new, key, kind, header.end, header.last_checksum)


def publish_snapshots(files: ObjectFiles, made: Sequence[tuple[str, int, str]]) -> list[CatalogEntry]:
    """Put snapshots: the name of each, its position and its key; raise OSError."""
    entries = []
    for name, position, key in made:
        size, checksum = _put_file(files, name, key)
        entries.append(snapshot_entry(key, position, size, checksum))
    return entries


def publish_snapshot(store: ObjectStore, blob: bytes, position: int, key: str) -> CatalogEntry:
    """Put a snapshot; raise OSError."""
    return snapshot_entry(key, position, *put(store, key, pack_snapshot(position, blob)))


def snapshot_entry(key: str, position: int, size: int, checksum: int) -> CatalogEntry:
    """Return the entry of a snapshot."""
    return CatalogEntry(key, Kind.SNAPSHOT, position, position, 0, 0, size, checksum)


def _put_segment(
    files: ObjectFiles, new: NewSegment, key: str, kind: Kind, end: int, last_checksum: int
) -> CatalogEntry:
    size, checksum = _put_file(files, new.temporary_name, key)
    index_bytes, index_checksum = _put_file(files, new.temporary_index_name, key + INDEX_SUFFIX)
    return CatalogEntry(
        key,
        kind,
        new.id.base,
        end,
        new.id.generation,
        last_checksum,
        size,
        checksum,
        index_bytes,
        index_checksum,
    )


def _put_file(files: ObjectFiles, name: str, key: str) -> tuple[int, int]:
    """Put a file of the cache directory."""
    return put(files.store, key, [files.scratch.map(name)])


def put(store: ObjectStore, key: str, data: Sequence[Buffer]) -> tuple[int, int]:
    """Put an object and read it back; return its size and its checksum; raise OSError."""
    checksum, size = 0, 0
    for buffer in data:
        checksum, size = crc32c(buffer, checksum), size + len(buffer)
    try:
        store.put(key, data)
        read, at = 0, 0
        while part := store.get(key, at, BLOCK_BYTES):
            read, at = crc32c(part, read), at + len(part)
    except StoreFailed as error:
        raise store_error(error) from error
    if (at, read) != (size, checksum):
        raise OSError(errno.EIO, f"object {key} reads differently than it was put")
    return size, checksum
