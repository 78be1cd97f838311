"""The bytes of the journal's files; `docs/reference/journal-format.md` is the same in prose.

This module packs, unpacks, and makes the checks that one structure allows by itself. `opening.recovery` decides what a
failed check means.

All integers are little-endian, all checksums CRC-32C. A group carries its segment's mark, eight random bytes: recovery
looks for later groups by it, and no client can have put it into a record batch, since it never leaves the file.
"""

import re
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from exacta.ports.journal import Buffer, IndexEntry, JournalEntry

VERSION = 6
FORMAT_NAME = "format"
START_NAME = "start"
COMPACTED_NAME = "compacted"
REPAIR_NAME = "repair"

SEGMENT_SUFFIX = ".log"
COMPACTED_PREFIX = "compacted-"
INDEX_SUFFIX = ".index"
SNAPSHOT_SUFFIX = ".snapshot"
TEMPORARY_SUFFIX = ".tmp"

MARK_BYTES = 8

# magic, version, checksum, base position, mark, previous group's checksum; if it was cleaned: how often, end position,
# last group's checksum, bytes of the file
_SEGMENT = Struct("<8sIIQ8sIIQIQ4x")
_SEGMENT_MAGIC = b"EXACTA-L"
SEGMENT_HEADER_BYTES = _SEGMENT.size

_GROUP_HEAD = Struct("<8sI")  # mark, checksum of mark and rest
# previous group's checksum, position, bytes of the group, bytes of the table, entries, checksum of table and payloads,
# position up to which all was durable before, flags
_GROUP_REST = Struct("<IQQIIIQI")
GROUP_HEADER_BYTES = _GROUP_HEAD.size + _GROUP_REST.size

_UNSYNCED = 1

_ENTRY = Struct("<III")  # bytes of the event, bytes of the payload, index rows
_ROW = Struct("<IqqqIII")  # as IndexEntry

ROW_BYTES = _ROW.size

_SNAPSHOT = Struct("<8sIIQQ")  # magic, version, checksum of what follows it, position, bytes of the blob
_SNAPSHOT_MAGIC = b"EXACTA-S"
SNAPSHOT_HEADER_BYTES = _SNAPSHOT.size
_SNAPSHOT_CHECKED_FROM = 16


_TEMPORARY = re.compile(r"\.[0-9a-f]{8}" + re.escape(TEMPORARY_SUFFIX) + r"$")
_POSITION = re.compile(r"(\d{20})", re.ASCII)
_POSITION_AND_GENERATION = re.compile(r"(\d{20})(?:\.([1-9]\d{0,8}))?", re.ASCII)


def file_name(position: int, suffix: str) -> str:
    """Name the file of `position`: 20 digits, so that names sort as positions do."""
    return f"{position:020d}{suffix}"


def temporary_name(name: str, token: bytes) -> str:
    """Name a file in the making that another process may be making at the same time, with a token of its own."""
    return f"{name}.{token.hex()}{TEMPORARY_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Say whether `temporary_name` has made this name."""
    return _TEMPORARY.search(name) is not None


def positions_of(names: Sequence[str], suffix: str) -> list[int]:
    """Return the positions in the names of this suffix, ascending."""
    found = (_POSITION.fullmatch(name.removesuffix(suffix)) for name in names if name.endswith(suffix))
    return sorted(int(match[1]) for match in found if match)


class SegmentId(NamedTuple):
    """Identify a segment, as the names of its files do.

    `generation` says how often the segment was cleaned. A compacted one has no place among the others: `base` is its
    number.
    """

    base: int
    generation: int = 0
    is_compacted: bool = False

    def name(self, suffix: str) -> str:
        """Name a file of the segment."""
        name = file_name(self.base, f".{self.generation}{suffix}" if self.generation else suffix)
        return COMPACTED_PREFIX + name if self.is_compacted else name


def segments_of(names: Sequence[str], suffix: str) -> list[SegmentId]:
    """Return the segments that have a file of this suffix: by base, the latest one first; no compacted ones."""
    found = (_POSITION_AND_GENERATION.fullmatch(name.removesuffix(suffix)) for name in names if name.endswith(suffix))
    segments = [SegmentId(int(match[1]), int(match[2] or 0)) for match in found if match]
    return sorted(segments, key=lambda segment: (segment.base, -segment.generation))


def compacted_of(names: Sequence[str], suffix: str) -> list[SegmentId]:
    """Return the compacted segments that have a file of this suffix, the oldest first."""
    numbers = positions_of([n.removeprefix(COMPACTED_PREFIX) for n in names if n.startswith(COMPACTED_PREFIX)], suffix)
    return [SegmentId(number, is_compacted=True) for number in numbers]


class SegmentHeader(NamedTuple):
    """The first bytes of a segment; `previous_checksum` belongs to the last group before it.

    What was cleaned (`generation` above 0) holds what is left of the journal up to `end`; the last group there had
    `last_checksum`. The file has `size` bytes. What was compacted has `size`, too, and its number for a base.
    """

    base: int
    mark: bytes
    previous_checksum: int
    generation: int = 0
    end: int = 0
    last_checksum: int = 0
    size: int = 0

    @property
    def was_written_at_once(self) -> bool:
        """True if the segment was cleaned or compacted, so that the header says all of it."""
        return self.size > 0


def pack_segment_header(header: SegmentHeader) -> bytes:
    """Return the SEGMENT_HEADER_BYTES bytes of the header."""
    blank = _SEGMENT.pack(_SEGMENT_MAGIC, VERSION, 0, *header)
    return _SEGMENT.pack(_SEGMENT_MAGIC, VERSION, crc32c(blank), *header)


def unpack_segment_header(data: bytes) -> SegmentHeader | None:
    """Return the header, or None if these are not the bytes of one."""
    if len(data) < SEGMENT_HEADER_BYTES:
        return None
    header = SegmentHeader(*_SEGMENT.unpack_from(data)[3:])
    return header if pack_segment_header(header) == data[:SEGMENT_HEADER_BYTES] else None


class GroupHeader(NamedTuple):
    """Precede a group's table; `size` counts the whole group, header included.

    `durable_end` is a position: when this group was written, all before it was durable. `flags` says whether the group
    was written ahead of its sync, so that others may have followed before it was durable itself.
    """

    checksum: int
    previous_checksum: int
    position: int
    size: int
    table_size: int
    entry_count: int
    body_checksum: int
    durable_end: int
    flags: int

    @property
    def is_unsynced(self) -> bool:
        """True if the group was written by `Journal.write`, ahead of its sync."""
        return bool(self.flags & _UNSYNCED)


def pack_group_header(
    mark: bytes,
    previous_checksum: int,
    position: int,
    size: int,
    table_size: int,
    entry_count: int,
    body_checksum: int,
    durable_end: int,
    *,
    unsynced: bool,
) -> tuple[bytes, int]:
    """Return the header's bytes and the group's checksum, which the next group repeats."""
    rest = _GROUP_REST.pack(
        previous_checksum,
        position,
        size,
        table_size,
        entry_count,
        body_checksum,
        durable_end,
        _UNSYNCED if unsynced else 0,
    )
    checksum = crc32c(rest, crc32c(mark))
    return _GROUP_HEAD.pack(mark, checksum) + rest, checksum


def unpack_group_header(data: Buffer, mark: bytes) -> GroupHeader | None:
    """Return the header, or None if these are not the bytes of a group of the segment with this mark."""
    if len(data) < GROUP_HEADER_BYTES:
        return None
    found_mark, checksum = _GROUP_HEAD.unpack_from(data)
    if found_mark != mark or crc32c(data[_GROUP_HEAD.size : GROUP_HEADER_BYTES], crc32c(mark)) != checksum:
        return None
    header = GroupHeader(checksum, *_GROUP_REST.unpack_from(data, _GROUP_HEAD.size))
    sound = header.entry_count > 0 and header.size >= GROUP_HEADER_BYTES + header.table_size
    return header if sound else None


def pack_entry(entry: JournalEntry, payload_size: int) -> list[bytes]:
    """Return the entry's part of the table: lengths, index rows, event."""
    index = entry.index
    parts = [_ENTRY.pack(len(entry.event), payload_size, len(index))]
    parts.extend([_ROW.pack(*row) for row in index])
    parts.append(entry.event)
    return parts


class TableEntry(NamedTuple):
    """One entry as read back; `payload_start` counts from the first byte of the group's payloads."""

    event: bytes
    payload_start: int
    payload_size: int
    rows: list[IndexEntry]


def unpack_table(table: Buffer, entry_count: int) -> Iterator[TableEntry]:
    """Yield the entries of a table; raise ValueError where its lengths do not fit."""
    at = 0
    payload_start = 0
    for _ in range(entry_count):
        if at + _ENTRY.size > len(table):
            raise ValueError("the table ends within an entry")
        event_size, payload_size, row_count = _ENTRY.unpack_from(table, at)
        at += _ENTRY.size
        event_at = at + row_count * _ROW.size
        if event_at + event_size > len(table):
            raise ValueError("the table ends within an entry")
        rows = [IndexEntry._make(_ROW.unpack_from(table, row_at)) for row_at in range(at, event_at, _ROW.size)]
        at = event_at + event_size
        yield TableEntry(bytes(table[event_at:at]), payload_start, payload_size, rows)
        payload_start += payload_size
    if at != len(table):
        raise ValueError("the table is longer than its entries")


def pack_snapshot(position: int, blob: bytes) -> list[bytes]:
    """Return the buffers of a snapshot file."""
    checked = _SNAPSHOT.pack(_SNAPSHOT_MAGIC, VERSION, 0, position, len(blob))[_SNAPSHOT_CHECKED_FROM:]
    checksum = crc32c(blob, crc32c(checked))
    return [_SNAPSHOT.pack(_SNAPSHOT_MAGIC, VERSION, checksum, position, len(blob)), blob]


def unpack_snapshot(data: bytes, position: int) -> bytes | None:
    """Return the blob of a snapshot of this position, or None if the file is not one, whole and unaltered."""
    if len(data) < SNAPSHOT_HEADER_BYTES:
        return None
    magic, version, checksum, found_position, size = _SNAPSHOT.unpack_from(data)
    if (magic, version, found_position) != (_SNAPSHOT_MAGIC, VERSION, position):
        return None
    if len(data) != SNAPSHOT_HEADER_BYTES + size or crc32c(data[_SNAPSHOT_CHECKED_FROM:]) != checksum:
        return None
    return data[SNAPSHOT_HEADER_BYTES:]
