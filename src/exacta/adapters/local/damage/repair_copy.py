"""The copy that a repair writes: every file that changes is rewritten beside the old one.

Damage is described by `survey`. The caller (`exacta.repair`) knows what events and batches mean, and so decides what is
given up and what stands in for it.

Theory of operation. No file is written to in place. What changes is written to `*.repaired.tmp`, and takes its place
later (`repair`).

Where batches are lost and the state is known at a later position, the segment is written as if it had been cleaned up
to there: batches without events, in the old order, with stand-ins at the offsets that are lost. Where the state is
known only in the middle of a segment, that segment is split there. Groups know their position in the journal, not in
the file, so those that follow are the same bytes in a new segment.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from msgspec import Struct, field

from exacta.adapters.local.damage.batches_segment import BatchesSegment
from exacta.adapters.local.damage.mended_journal import View
from exacta.adapters.local.damage.segment_walk import pieces
from exacta.adapters.local.damage.survey import Lost, Slot, Survey
from exacta.adapters.local.files import Files, read_file, write_fully
from exacta.adapters.local.format import (
    GROUP_HEADER_BYTES,
    INDEX_SUFFIX,
    MARK_BYTES,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentHeader,
    SegmentId,
    file_name,
    pack_segment_header,
    pack_snapshot,
    unpack_group_header,
)
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.adapters.local.layout import lay_out
from exacta.adapters.local.opening.recovery import sealed_at
from exacta.adapters.local.opening.segment_scan import WINDOW_BYTES, SegmentScan
from exacta.adapters.local.opening.unsynced_end import NAME as NOTE_NAME
from exacta.ports.journal import Buffer, IndexEntry

REPAIRED_SUFFIX = ".repaired" + TEMPORARY_SUFFIX


class StandIn(NamedTuple):
    """Take the place of offsets that are lost: the row of a batch, whose start counts for nothing, and its bytes."""

    row: IndexEntry
    content: bytes


class Plan(Struct, frozen=True, kw_only=True):
    """Say what a repair gives up. The journal ends at `cut` (None: where it did).

    The state is known at `known_at` (None: nothing is given up before the cut). `blob` is that state, where there is no
    snapshot of it yet. `stand_ins` belong to what was lost, by slot and offset.
    """

    cut: int | None = None
    known_at: int | None = None
    blob: bytes | None = None
    stand_ins: Mapping[tuple[int, int], Sequence[StandIn]] = field(default_factory=dict)


class RepairCopy(NamedTuple):
    """Name the files that are copied: those that are replaced or made, and those that go."""

    put: list[str]
    remove: list[str]
    view: View
    """The journal as it will be."""


def write_copy(found: Survey, plan: Plan) -> RepairCopy:
    """Write all files that change beside the old ones; raise OSError, and leave no trace then."""
    writer = _CopyWriter(found, plan)
    try:
        return writer.write()
    except BaseException:
        remove_copy(found.view.files)
        raise


def remove_copy(files: Files) -> None:
    """Remove what was copied and not put in place, as far as the disk lets us."""
    for name in files.names():
        if name.endswith(REPAIRED_SUFFIX):
            with suppress(OSError):
                files.remove(name)


def copy(files: Files, name: str, to: Files, new_name: str, begin: int = 0, end: int | None = None) -> None:
    """Copy and sync a file, or a part of it; the caller syncs the directory."""
    source = files.open(name)
    try:
        target = to.create(new_name)
        try:
            at = begin
            size = files.size(source) if end is None else end
            while at < size:
                data = files.read(source, min(WINDOW_BYTES, size - at), at)
                if not data:
                    break
                write_fully(to, target, [data], at - begin)
                at += len(data)
            to.sync(target)
        finally:
            to.close(target)
    finally:
        files.close(source)


class _CopyWriter:
    """Write one repair's files; used once."""

    def __init__(self, found: Survey, plan: Plan) -> None:
        self._found = found
        self._plan = plan
        self._files = found.view.files
        self._final = View(self._files)
        self._put: list[str] = []
        self._remove: list[str] = []
        self._converted_to = 0
        self._has_active = False

    def write(self) -> RepairCopy:
        remove_copy(self._files)
        for name in self._final.names():
            if name.endswith(TEMPORARY_SUFFIX):
                self._final.remove(name)
        for name, content in self._found.view.contents.items():
            self._write(name, [content])
        for number, slot in enumerate(self._found.slots):
            self._slot(number, slot)
        for number in self._found.numbers_of_compacted:
            self._compacted(number)
        if not self._has_active:
            cut, slots = self._plan.cut, self._found.slots
            gone = [number for number, slot in enumerate(slots) if cut is not None and slot.base >= cut]
            junction = self._junction(gone[0] if gone else len(slots))
            self._begin_segment(self._found.end if cut is None else cut, junction, None)
        self._snapshots()
        if self._plan.cut is not None:
            self._final.remove(NOTE_NAME)  # without it the next start aborts what is open: its end may be cut off
        self._segment_indexes()
        for name in sorted(self._files.names()):
            is_gone = name not in self._final.sources and name not in self._put
            if is_gone and not name.endswith(TEMPORARY_SUFFIX):
                self._remove.append(name)
        self._files.sync_directory()
        return RepairCopy(self._put, self._remove, self._final)

    # --- files --------------------------------------------------------------------------------------------------------

    def _write(self, name: str, buffers: Sequence[Buffer]) -> None:
        handle = self._files.create(name + REPAIRED_SUFFIX)
        try:
            write_fully(self._files, handle, buffers, 0)
            self._files.sync(handle)
        finally:
            self._files.close(handle)
        self._staged(name)

    def _staged(self, name: str) -> None:
        self._final.remove(name)
        self._final.sources[name] = name + REPAIRED_SUFFIX
        self._put.append(name)

    def _drop(self, slot: Slot) -> None:
        for suffix in (SEGMENT_SUFFIX, INDEX_SUFFIX):
            self._final.remove(SegmentId(slot.base, slot.generation).name(suffix))

    # --- segments -----------------------------------------------------------------------------------------------------

    def _slot(self, number: int, slot: Slot) -> None:
        cut, known_at = self._plan.cut, self._plan.known_at
        if cut is not None and slot.base >= cut:
            self._drop(slot)
            return None
        ends = [end for end in (slot.end, cut) if end is not None]
        end = min(ends, default=None)
        is_last = slot.end is None or (cut is not None and cut <= slot.end)
        lost = [each for each in self._found.lost if each.slot == number and (cut is None or each.begin < cut)]
        if lost and known_at is not None:
            self._convert(number, slot, min(known_at, end) if end is not None else known_at, is_last=is_last)
            return None
        if slot.header is None:
            if slot.name in self._found.view.sources:
                self._has_active = self._has_active or is_last  # begun and no more: recovery creates it again
            return None
        if slot.generation:
            return self._patched(slot, None)
        self._has_active = self._has_active or is_last
        size = self._size(slot)
        wanted = size if end is None else end - slot.base + SEGMENT_HEADER_BYTES
        if is_last and self._found.torn is not None and slot.end is None:
            wanted = min(wanted, self._found.torn)
        return self._patched(slot, wanted if wanted < size else None)

    def _compacted(self, number: int) -> None:
        slot = self._found.slot(number)
        if not any(each.slot == number for each in self._found.lost_compacted):
            self._patched(slot, None)
            return
        header = SegmentHeader(slot.base, self._files.random_bytes(MARK_BYTES), 0)
        self._batches_alone(slot.name, header, self._batches(number, slot, 0))

    def _size(self, slot: Slot) -> int:
        with self._found.opened(slot.name) as handle:
            return self._found.view.size(handle)

    def _patched(self, slot: Slot, size: int | None) -> None:
        if size is None and not self._found.view.is_changed(slot.name):
            return
        copy(self._found.files, slot.name, self._files, slot.name + REPAIRED_SUFFIX, 0, size)
        self._staged(slot.name)

    def _convert(self, number: int, slot: Slot, end: int, *, is_last: bool) -> None:
        """Write a slot up to `end` as if it had been cleaned, and what follows in it as a segment of its own."""
        self._converted_to = max(self._converted_to, end)
        follows = is_last or (slot.end is not None and end < slot.end)
        tail_offset, tail_checksum = self._tail_of(slot, end) if follows else (None, None)
        if not follows:
            tail_checksum = self._junction(number + 1)
        elif end == slot.base:
            tail_checksum = self._junction(number)
        self._drop(slot)
        if end > slot.base:
            self._cleaned(number, slot, end, tail_checksum or 0)
        if follows:
            self._has_active = self._has_active or is_last
            self._begin_segment(end, tail_checksum or 0, None if tail_offset is None else (slot, tail_offset))

    def _cleaned(self, number: int, slot: Slot, end: int, last_checksum: int) -> None:
        generation = slot.generation + 1
        while SegmentId(slot.base, generation).name(SEGMENT_SUFFIX) in self._files.names():
            generation += 1
        name = SegmentId(slot.base, generation).name(SEGMENT_SUFFIX)
        header = SegmentHeader(
            slot.base, self._files.random_bytes(MARK_BYTES), self._junction(number), generation, end, last_checksum
        )
        self._batches_alone(name, header, self._batches(number, slot, end))

    def _batches_alone(self, name: str, header: SegmentHeader, batches: Iterator[tuple[IndexEntry, Buffer]]) -> None:
        handle = self._files.create(name + REPAIRED_SUFFIX)
        try:
            BatchesSegment(self._files, handle, header).write(batches)
        finally:
            self._files.close(handle)
        self._staged(name)

    def _batches(self, number: int, slot: Slot, end: int) -> Iterator[tuple[IndexEntry, Buffer]]:
        view = self._found.view
        for piece in pieces(self._found, number):
            stand_ins: Sequence[StandIn] = ()
            if isinstance(piece, Lost):
                entries, payload_position = piece.entries, piece.payload_position
                stand_ins = self._plan.stand_ins.get((number, piece.offset), ())
            else:
                if not slot.has_batches_alone and piece.position >= end:
                    break
                entries, payload_position = tuple(piece.entries), piece.payload_position
            rows: list[tuple[IndexEntry, Buffer]] = []
            if entries:
                with self._found.opened(slot.name) as handle:
                    for entry in entries:
                        for row in entry.rows:
                            start = payload_position + entry.payload_start + row.start
                            data = view.read(handle, row.size, start - slot.base + SEGMENT_HEADER_BYTES)
                            if not isinstance(piece, Lost) or self._found.is_batch(row, data):
                                rows.append((row, data))
            rows += [(stand_in.row, stand_in.content) for stand_in in stand_ins]
            rows.sort(key=lambda each: each[0].first_offset)
            yield from rows

    def _tail_of(self, slot: Slot, position: int) -> tuple[int | None, int | None]:
        """Return at which byte the groups from `position` on begin (None: there are none), and what they follow."""
        if slot.header is None:
            return None, None
        offset = position - slot.base + SEGMENT_HEADER_BYTES
        with self._found.opened(slot.name) as handle:
            data = self._found.view.read(handle, GROUP_HEADER_BYTES, offset)
        group = unpack_group_header(data, slot.header.mark)
        if group is None or group.position != position or (self._plan.cut is not None and position >= self._plan.cut):
            return None, None
        return offset, group.previous_checksum

    def _begin_segment(self, base: int, previous_checksum: int, tail: tuple[Slot, int] | None) -> None:
        """Make a segment that begins there, with what lies in the file of the slot from that byte on."""
        name = file_name(base, SEGMENT_SUFFIX)
        mark = self._files.random_bytes(MARK_BYTES)
        begin = size = 0
        if tail is not None:
            slot, begin = tail
            assert slot.header is not None
            mark = slot.header.mark
            size = self._size(slot)
            if slot.end is None and self._found.torn is not None:
                size = self._found.torn
            elif slot.end is not None:
                size = min(size, slot.end - slot.base + SEGMENT_HEADER_BYTES)
        handle = self._files.create(name + REPAIRED_SUFFIX)
        try:
            write_fully(self._files, handle, [pack_segment_header(SegmentHeader(base, mark, previous_checksum))], 0)
            if tail is not None:
                with self._found.opened(tail[0].name) as source:
                    at = begin
                    while at < size:
                        data = self._found.view.read(source, min(WINDOW_BYTES, size - at), at)
                        if not data:
                            break
                        write_fully(self._files, handle, [data], at - begin + SEGMENT_HEADER_BYTES)
                        at += len(data)
            self._files.sync(handle)
        finally:
            self._files.close(handle)
        self._staged(name)
        self._has_active = True

    def _junction(self, number: int) -> int:
        """Return what the slot follows: the checksum of the last group before it."""
        slots = self._found.slots
        if number < len(slots):
            header = slots[number].header
            if header is not None:
                return header.previous_checksum
        if not number:
            return 0
        slot = slots[number - 1]
        if slot.header is None:
            return 0
        if slot.generation:
            return slot.header.last_checksum
        with self._found.opened(slot.name) as handle:
            scan = SegmentScan(self._found.files, handle)
            for _ in scan.groups():
                if slot.end is not None and scan.end >= slot.end:
                    break
            return scan.last_checksum

    # --- what goes along with them ------------------------------------------------------------------------------------

    def _snapshots(self) -> None:
        for name in self._found.unusable:
            self._final.remove(name)
        for position in self._found.snapshots:
            name = file_name(position, SNAPSHOT_SUFFIX)
            is_beyond = self._plan.cut is not None and position > self._plan.cut
            if is_beyond or position < self._converted_to:
                self._final.remove(name)
            elif self._found.view.is_changed(name):
                self._write(name, [read_file(self._found.files, name)])
        if self._plan.blob is not None:
            assert self._plan.known_at is not None
            name = file_name(self._plan.known_at, SNAPSHOT_SUFFIX)
            self._write(name, pack_snapshot(self._plan.known_at, self._plan.blob))

    def _segment_indexes(self) -> None:
        """Make those of the sealed segments that are missing or wrong; no other may be left."""
        final = cast("Files", self._final)
        layout = lay_out(final, self._final.names())
        segments = layout.segments
        for name in layout.left_over:
            self._final.remove(name)
        for segment in [*segments[:-1], *layout.compacted]:
            handle = self._final.open(segment.name)
            try:
                scan = SegmentScan(final, handle)
                assert scan.header is not None
                for group in scan.groups():
                    for entry in group.entries:
                        for row in entry.rows:
                            segment.add(group.payload_position + entry.payload_start, row)
                end, last_checksum = sealed_at(scan.header, scan)
                wanted = b"".join(pack_segment_index(segment.growing, scan.header.mark, end, last_checksum))
            finally:
                self._final.close(handle)
            segment.growing = {}
            name = segment.index_name
            if name not in self._final.names() or read_file(final, name) != wanted:
                self._write(name, [wanted])
        if segments:
            self._final.remove(segments[-1].index_name)
