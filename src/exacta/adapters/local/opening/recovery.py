"""Opening a data directory: find out what is there, mend what a crash explains, refuse what it does not.

This module decides between "a crash did this" and "data is lost". Byte layouts are in `format` and `segment_scan`.

Theory of operation. Every group says up to which position all was durable when it was written. So after a crash
everything up to the highest of these positions is on disk whole, and of what was written later (groups, or the header
of a new segment) any sectors may be there and any missing. Whatever looks otherwise has been altered or lost since it
was durable, and the journal is not opened. `docs/reference/journal-format.md` has the table of what is found and what
is done; the cases below have its numbers.

The limit of what can be told apart: damage to the last groups of the journal, behind that position, looks like writes
cut short, unless a snapshot's name bears witness that they were durable.
"""

import errno
import logging
from itertools import pairwise

from msgspec import Struct

from exacta.adapters.local import format_file
from exacta.adapters.local.errors import damaged
from exacta.adapters.local.files import Files, write_fully
from exacta.adapters.local.format import (
    FORMAT_NAME,
    REPAIR_NAME,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentHeader,
    file_name,
    positions_of,
    segments_of,
)
from exacta.adapters.local.format_file import Format, UnsupportedFormat
from exacta.adapters.local.index.index_writer import write_segment_index
from exacta.adapters.local.index.segment_index import is_sound, map_segment_index
from exacta.adapters.local.index.segment_rows import Segment, SegmentIndex
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.layout import lay_out
from exacta.adapters.local.opening.segment_scan import WINDOW_BYTES, ScanFault, SegmentScan
from exacta.adapters.local.writer import Writer, create_segment, write_file, write_segment_header
from exacta.ports.journal import Schema

logger = logging.getLogger(__name__)


class OpenedDirectory(Struct, frozen=True, kw_only=True):
    """Hold an opened directory: its segments, also the compacted ones, oldest first, the index of all, and the writer.

    `position` is its end, `next_compacted` the number of the next compacted segment.
    """

    segments: list[Segment]
    compacted: list[Segment]
    next_compacted: int
    index: Index
    writer: Writer
    position: int


def recover(files: Files, schema: Schema | None = None) -> OpenedDirectory:
    """Open the locked directory; raise JournalDamaged or UnsupportedFormat."""
    names = files.names()
    if REPAIR_NAME in names:  # case 18
        raise damaged(files, REPAIR_NAME, 0, "a repair was interrupted: `exacta log repair --mend` finishes it")
    found = _check_format(files, names, schema)
    for name in names:
        if name.endswith(TEMPORARY_SUFFIX):
            files.remove(name)  # case 13
    if found is None or (schema is not None and found.schema != schema.writes):
        # An older version would misread what this one writes from now on.
        write_file(files, FORMAT_NAME, [format_file.pack(format_file.present(schema))])
    # What a crash left in the directory may so far be in memory only: names included.
    files.sync_directory()
    chosen, compacted, next_compacted, left_over, faults = lay_out(files, names)
    for fault in faults:
        raise damaged(files, fault.name, 0, fault.reason)  # cases 4, 11 and 15
    witnesses = positions_of(names, SNAPSHOT_SUFFIX)
    witness = witnesses[-1] if witnesses else 0
    index = Index(lambda segment: segment.release(files))
    segments: list[Segment] = []
    previous_checksum: int | None = None
    for segment, following in pairwise(chosen):
        previous_checksum = _open_sealed(files, segment, following.base, previous_checksum)
        segments.append(segment)
        index.add_segment(segment)
    if chosen:
        last = chosen[-1]
        writer, position = _open_last(files, last, previous_checksum, witness, index)
    else:
        if witness:
            raise damaged(files, file_name(witness, SNAPSHOT_SUFFIX), 0, "there is a snapshot, but no segment")
        last = Segment(0)
        writer, position = _create_first(files, last, index)  # case 1
    segments.append(last)
    for segment in compacted:
        _open_sealed(files, segment, None, None)
        index.add_compacted(segment)
    for name in left_over:
        files.remove(name)  # case 14: a crash while cleaning
    return OpenedDirectory(
        segments=segments,
        compacted=compacted,
        next_compacted=next_compacted,
        index=index,
        writer=writer,
        position=position,
    )


def _check_format(files: Files, names: list[str], schema: Schema | None) -> Format | None:
    """Return the format of the directory, or None if it is new; refuse what this version does not read (case 12)."""
    if FORMAT_NAME not in names:
        if segments_of(names, SEGMENT_SUFFIX):
            raise damaged(files, FORMAT_NAME, 0, "there are segments, but no format file")
        return None
    found = format_file.load(files)
    if found is None:
        raise damaged(files, FORMAT_NAME, 0, "it is not what was written")
    if not format_file.is_read(found, schema):
        raise UnsupportedFormat(format_file.refusal(files, found, schema))
    return found


def _create_first(files: Files, segment: Segment, index: Index) -> tuple[Writer, int]:
    segment.handle, header = create_segment(files, 0, 0)
    index.add_segment(segment)
    return Writer(files, segment.handle, header, 0, 0), 0


# --- sealed segments -------------------------------------------------------------------------------------------------


def _open_sealed(files: Files, segment: Segment, following: int | None, previous_checksum: int | None) -> int:
    """Load or rebuild the index of a sealed segment; return the checksum of the last group before the next one.

    `following` is where that begins; None: no other follows a compacted one.
    """
    handle = files.open(segment.name)
    try:
        scan = SegmentScan(files, handle)
        header = _check_header(files, segment, scan, previous_checksum)
        if header is None:
            raise damaged(files, segment.name, 0, "the segment's header is unreadable")  # case 4
        end = header.end if header.was_written_at_once else following
        if following is not None and end != following:  # case 11
            raise damaged(files, segment.name, 0, f"it ends at position {end}, and the next segment begins elsewhere")
        assert end is not None
        wanted_size = header.size if header.was_written_at_once else end - segment.base + SEGMENT_HEADER_BYTES
        if scan.size != wanted_size:  # case 11
            raise damaged(files, segment.name, min(scan.size, wanted_size), f"{scan.size} bytes, not {wanted_size}")
        segment.size = scan.size
        segment_index = _load_segment_index(files, segment, header.mark, end)
        if segment_index is None:
            segment_index = _rebuild_segment_index(files, segment, scan)
    finally:
        files.close(handle)
    segment.seal(segment_index)
    return segment_index.last_checksum


def _load_segment_index(files: Files, segment: Segment, mark: bytes, end: int) -> SegmentIndex | None:
    name = segment.index_name
    try:
        segment_index = map_segment_index(files, name, mark)
    except FileNotFoundError:
        return None  # case 8: the crash came between the roll and the segment index
    if segment_index is not None and segment_index.end == end and is_sound(files, name):
        return segment_index
    logger.warning("%s does not fit its segment, and is made again from it", files.directory / name)
    return None


def _rebuild_segment_index(files: Files, segment: Segment, scan: SegmentScan) -> SegmentIndex:
    for group in scan.groups():
        for entry in group.entries:
            for row in entry.rows:
                segment.add(group.payload_position + entry.payload_start, row)
    if scan.fault is not None:
        raise damaged(files, segment.name, scan.fault.offset, scan.fault.reason)  # case 7
    header = scan.header
    assert header is not None
    end, last_checksum = sealed_at(header, scan)
    return write_segment_index(files, segment, header.mark, end, last_checksum)


def sealed_at(header: SegmentHeader, scan: SegmentScan) -> tuple[int, int]:
    """Return where the journal is at the end of a sealed segment, and the checksum of its last group there."""
    return (header.end, header.last_checksum) if header.was_written_at_once else (scan.end, scan.last_checksum)


# --- the last segment ------------------------------------------------------------------------------------------------


def _open_last(
    files: Files, segment: Segment, previous_checksum: int | None, witness: int, index: Index
) -> tuple[Writer, int]:
    """Find the journal's end, which is at `witness` or later, and make certain of it; nothing is written before."""
    base = segment.base
    handle = segment.handle = files.open(segment.name, writable=True)
    try:
        files.take(handle)
        scan = SegmentScan(files, handle)
        header = _check_header(files, segment, scan, previous_checksum)
        index.add_segment(segment)
        if header is None:
            # Case 2: no group is written before the header is durable, so there was none.
            if scan.size > SEGMENT_HEADER_BYTES or (previous_checksum is None and base > 0) or witness > base:
                raise damaged(files, segment.name, 0, "the segment's header is unreadable")  # cases 4, 10
            logger.warning("%s: a crash interrupted its creation; it is created again", files.directory / segment.name)
            header = write_segment_header(files, handle, base, previous_checksum or 0)
            return Writer(files, handle, header, header.previous_checksum, base), base
        _scan_into(index, scan)
        if witness > scan.end:  # case 10
            raise damaged(files, segment.name, scan.offset, f"the journal ends before its snapshot of {witness}")
        if scan.fault is not None:
            _require_torn_tail(files, segment, scan, scan.fault)  # case 5
        _make_end_durable(files, handle, scan)  # case 3
        return Writer(files, handle, header, scan.last_checksum, scan.end), scan.end
    except BaseException:
        files.close(handle)
        raise


def _check_header(
    files: Files, segment: Segment, scan: SegmentScan, previous_checksum: int | None
) -> SegmentHeader | None:
    header = scan.header
    if header is None:
        return None
    reason = misplaced(header, segment, previous_checksum)
    if reason is not None:
        raise damaged(files, segment.name, 0, reason)
    return header


def misplaced(header: SegmentHeader, segment: Segment, previous_checksum: int | None) -> str | None:
    """Return what shows that this is not the segment that belongs here (case 4); None: it is."""
    if header.base != segment.base:
        return f"the segment belongs to position {header.base}"
    if header.generation != segment.generation:
        return f"the segment belongs to generation {header.generation}"
    if previous_checksum is not None and header.previous_checksum != previous_checksum:
        return "the segment does not follow the one before it"
    return None


def _scan_into(index: Index, scan: SegmentScan) -> None:
    for group in scan.groups():
        for entry in group.entries:
            index.add(group.payload_position + entry.payload_start, entry.rows)


def evidence_of_damage(scan: SegmentScan, fault: ScanFault) -> str | None:
    """Return what proves that the last segment was whole at this place once; None: writes may have been cut short."""
    if fault.header is not None:
        end = fault.offset + fault.header.size
        if scan.size > end and not fault.header.is_unsynced:
            return f", and more follows at byte {end}"  # case 6
        if fault.header.previous_checksum != scan.last_checksum or fault.header.position != scan.end:
            return ""  # case 7
    # A group that was begun when this place was durable.
    for later, header in scan.later_groups(fault.offset + 1):
        if header.durable_end > scan.end:
            return f", but it was sound when the group at byte {later} was written"  # case 6
    return None


def _require_torn_tail(files: Files, segment: Segment, scan: SegmentScan, fault: ScanFault) -> None:
    """Say that what follows the last sound group is dropped; raise JournalDamaged if a sync can have covered it."""
    evidence = evidence_of_damage(scan, fault)
    if evidence is not None:
        raise damaged(files, segment.name, fault.offset, fault.reason + evidence)
    logger.warning(
        "%s: the last writes were cut short by a crash; %d bytes at %d, never durable, are dropped",
        files.directory / segment.name,
        scan.size - fault.offset,
        fault.offset,
    )


def _make_end_durable(files: Files, handle: int, scan: SegmentScan) -> None:
    """Let the segment end behind its last sound group, on disk and not just in memory.

    The last writes may be ahead of their sync: whole in the page cache, and so about to be believed, but not yet
    durable. A sync alone would not do: if the sync of the process before us failed, the kernel may have marked the
    pages clean all the same, and the next sync then reports success without writing them (Rebello et al., ATC 2020).
    Written once more they are dirty, and the sync means something. Sectors are overwritten by what they contain, so a
    crash here harms nothing. For the same reason the size is set even where it is right: the process before us may have
    cut a torn tail off and failed to sync that, and the tail would be back, behind later groups, after a loss of power.
    """
    files.truncate(handle, scan.offset)
    offset = scan.durable_offset
    while offset < scan.offset:
        part = files.read(handle, min(WINDOW_BYTES, scan.offset - offset), offset)
        if not part:
            raise OSError(errno.EIO, "the segment ended while it was read")
        write_fully(files, handle, [part], offset)
        offset += len(part)
    files.sync(handle)
