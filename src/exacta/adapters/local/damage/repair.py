"""Writing a damaged journal anew beside the old one, and changing over to it in one step that no crash can halve.

Owns what is staged and how it takes its place. What is damaged says `survey`; what may be given up, and what stands in
for it, the caller (`exacta.repair`), who knows what events and batches mean.

Theory of operation. No file is written to in place. What changes is written to `*.repaired.tmp`; all files that it will
replace, and all that must go, are copied into a directory of their own, durably. Then the file `repair` says what is to
be done: from now on the journal is not opened by anybody, and the repair is only ever finished, by renaming and
removing; when all of that is durable, the file goes. A crash before it leaves the journal as it was, and leftovers that
the next opening removes.

Where batches are lost and the state is known at a later position, the segment is written as if it had been cleaned up
to there: batches without events, in the old order, with stand-ins at the offsets that are lost. Where the state is
known only in the middle of a segment, that is split there: groups know their position in the journal, not in the file,
so those that follow are the same bytes in a new segment.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from exacta.adapters.local.damage.mended_journal import View
from exacta.adapters.local.damage.segment_walk import pieces
from exacta.adapters.local.damage.survey import Lost, Slot, Survey
from exacta.adapters.local.files import Files, read_file, write_fully
from exacta.adapters.local.format import (
    GROUP_HEADER_BYTES,
    INDEX_SUFFIX,
    MARK_BYTES,
    REPAIR_NAME,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentHeader,
    SegmentId,
    file_name,
    pack_entry,
    pack_segment_header,
    pack_snapshot,
    unpack_group_header,
)
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.adapters.local.layout import lay_out
from exacta.adapters.local.opening.recovery import sealed_at
from exacta.adapters.local.opening.segment_scan import WINDOW_BYTES, Group, SegmentScan
from exacta.adapters.local.opening.unsynced_end import NAME as NOTE_NAME
from exacta.adapters.local.writer import Writer, write_file
from exacta.ports.journal import Buffer, Entry, IndexEntry

STAGED_SUFFIX = ".repaired" + TEMPORARY_SUFFIX
_GROUP_BYTES = 1 << 20
_GROUP_ROWS = 5_000
_REPORT_NAME = "repair.txt"


class StandIn(NamedTuple):
    """A batch in place of offsets that are lost: its row (whose start counts for nothing), and its bytes."""

    row: IndexEntry
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is given up. At `cut` the journal ends (None: where it did).

    The state is known at `known_at` (None: nothing is given up before the cut); `blob` is that state, where there is no
    snapshot of it yet. `stand_ins` belong to what was lost, by slot and offset.
    """

    cut: int | None = None
    known_at: int | None = None
    blob: bytes | None = None
    stand_ins: Mapping[tuple[int, int], Sequence[StandIn]] = field(default_factory=dict)


class Staged(NamedTuple):
    """What is ready to take its place: names of files that are replaced or made, and of those that go."""

    put: list[str]
    remove: list[str]
    view: View
    """The journal as it will be."""


def stage(found: Survey, plan: Plan) -> Staged:
    """Write all files that change beside the old ones; raise OSError, and leave no trace then."""
    staging = _Staging(found, plan)
    try:
        return staging.stage()
    except BaseException:
        unstage(found.view.files)
        raise


def unstage(files: Files) -> None:
    """Remove what was staged and not put in place, as far as the disk lets us."""
    for name in files.names():
        if name.endswith(STAGED_SUFFIX):
            with suppress(OSError):
                files.remove(name)


def put_in_place(files: Files, staged: Staged, keep: Files, report: str) -> None:
    """Keep a copy of all that is replaced or removed, with the report beside it, then change over."""
    present = set(files.names())
    for name in [*staged.put, *staged.remove]:
        if name in present:
            _copy(files, name, keep, name)
    plan = {"put": staged.put, "remove": staged.remove, "kept_in": str(keep.directory)}
    made = "".join(f"made, and not there before: {name}\n" for name in staged.put if name not in present)
    write_file(keep, _REPORT_NAME, [f"{report}\n{made}".encode()])
    files.sync_directory()  # the names of what was staged
    write_file(files, REPAIR_NAME, [json.dumps(plan).encode()])
    finish(files)


def is_interrupted(files: Files) -> bool:
    """Whether a repair was decided on and not finished."""
    return REPAIR_NAME in files.names()


def finish(files: Files) -> str | None:
    """Finish a repair that was decided on; return where the old files are kept, or None: there is none to finish."""
    names = set(files.names())
    if REPAIR_NAME not in names:
        return None
    plan = json.loads(read_file(files, REPAIR_NAME))
    for name in plan["put"]:
        if name + STAGED_SUFFIX in names:
            files.rename(name + STAGED_SUFFIX, name)
    for name in plan["remove"]:
        if name in names:
            files.remove(name)
    files.sync_directory()
    files.remove(REPAIR_NAME)
    files.sync_directory()
    return str(plan["kept_in"])


def _copy(files: Files, name: str, to: Files, new_name: str, begin: int = 0, end: int | None = None) -> None:
    """Copy a file, or a part of it, durably but for its name."""
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


class _Staging:
    def __init__(self, found: Survey, plan: Plan) -> None:
        self._found = found
        self._plan = plan
        self._files = found.view.files
        self._final = View(self._files)
        self._put: list[str] = []
        self._remove: list[str] = []
        self._converted_to = 0
        self._has_active = False

    def stage(self) -> Staged:
        unstage(self._files)
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
        for name in self._files.names():
            is_gone = name not in self._final.sources and name not in self._put
            if is_gone and not name.endswith(TEMPORARY_SUFFIX):
                self._remove.append(name)
        self._files.sync_directory()
        return Staged(self._put, self._remove, self._final)

    # --- files --------------------------------------------------------------------------------------------------------

    def _write(self, name: str, buffers: Sequence[Buffer]) -> None:
        handle = self._files.create(name + STAGED_SUFFIX)
        try:
            write_fully(self._files, handle, buffers, 0)
            self._files.sync(handle)
        finally:
            self._files.close(handle)
        self._staged(name)

    def _staged(self, name: str) -> None:
        self._final.remove(name)
        self._final.sources[name] = name + STAGED_SUFFIX
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
        _copy(self._found.files, slot.name, self._files, slot.name + STAGED_SUFFIX, 0, size)
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
        handle = self._files.create(name + STAGED_SUFFIX)
        try:
            _Batches(self._files, handle, header).write(batches)
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
        handle = self._files.create(name + STAGED_SUFFIX)
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


class _Batches:
    """A cleaned segment in the making."""

    def __init__(self, files: Files, handle: int, header: SegmentHeader) -> None:
        self._files = files
        self._handle = handle
        self._header = header
        self._writer = Writer(files, handle, header, header.previous_checksum, header.base)
        self._position = header.base
        self._payload: list[Buffer] = []
        self._payload_bytes = 0
        self._rows: list[IndexEntry] = []

    def write(self, batches: Iterator[tuple[IndexEntry, Buffer]]) -> None:
        for row, data in batches:
            self._rows.append(row._replace(start=self._payload_bytes, size=len(data)))
            self._payload.append(data)
            self._payload_bytes += len(data)
            if self._payload_bytes >= _GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
                self._write_group()
        self._write_group()
        size = self._position - self._header.base + SEGMENT_HEADER_BYTES
        write_fully(self._files, self._handle, [pack_segment_header(self._header._replace(size=size))], 0)
        self._files.sync(self._handle)

    def _write_group(self) -> None:
        if not self._rows:
            return
        table = b"".join(pack_entry(Entry(b"", (), self._rows), self._payload_bytes))
        self._position = self._writer.write_group(self._position, table, self._payload, 1, unsynced=False)
        self._payload, self._rows, self._payload_bytes = [], [], 0


def events_from(found: Survey, position: int, end: int) -> Iterator[Group | Lost]:
    """Yield what lies between these positions, in order."""
    for number, slot in enumerate(found.slots):
        if slot.base >= end:
            return
        if slot.end is not None and slot.end <= position:
            continue
        for piece in pieces(found, number):
            begin = piece.begin if isinstance(piece, Lost) else piece.position
            piece_end = piece.end
            if begin >= end:
                return
            if piece_end > position or (isinstance(piece, Lost) and begin >= position):
                yield piece
