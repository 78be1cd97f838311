"""A damaged journal as it would be with all put right that can be: what is sound, what was put right, what is lost.

Owns the walk over the segments of such a journal and the mending on the way (`mending` has the means). What is lost is
told by position, and by entry where the group's table can still be taken apart. Owns no meaning of events and batches,
no remedy that costs anything, and writes nothing (both in `repair`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from crc32c import crc32c

from exacta.adapters.local import compacted, start
from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import (
    COMPACTED_NAME,
    FORMAT_CONTENT,
    FORMAT_NAME,
    GROUP_HEADER_BYTES,
    MARK_BYTES,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_HEADER_BYTES,
    SNAPSHOT_SUFFIX,
    START_NAME,
    GroupHeader,
    SegmentHeader,
    SegmentId,
    TableEntry,
    compacted_of,
    file_name,
    pack_segment_header,
    positions_of,
    segments_of,
    unpack_group_header,
    unpack_segment_header,
    unpack_snapshot,
    unpack_table,
)
from exacta.adapters.local.layout import lay_out
from exacta.adapters.local.mending import MOST_BYTES, Patch, View, flipped_bit, with_one_bit_put_back
from exacta.adapters.local.recovery import UnsupportedFormat, evidence_of_damage
from exacta.adapters.local.rows import Segment
from exacta.adapters.local.scan import Fault, Group, SegmentScan
from exacta.ports.journal import Buffer, IndexEntry

IsBatch = Callable[[IndexEntry, Buffer], bool]


class Mended(NamedTuple):
    """What was put right, at no price."""

    name: str
    offset: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A part of the journal that a segment holds, or held: up to `end` (None: it is the last one).

    `header` is None where there is no segment, or nothing that one could be taken apart by.
    """

    base: int
    end: int | None
    generation: int
    name: str
    header: SegmentHeader | None
    is_compacted: bool = False
    """It has no place among the others: `base` and `end` are its number."""

    @property
    def has_batches_alone(self) -> bool:
        """Whether it was cleaned or compacted: there are no events, and positions are not the journal's."""
        return self.generation > 0 or self.is_compacted


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What is neither sound nor can be put right: the journal from `begin` to `end`, which lies in this slot.

    In a cleaned segment that is all that it stands for, though most of it is sound. `entries` is the group's table,
    which has no checksum of its own: what it says must be held against something else.
    """

    slot: int
    name: str
    offset: int
    begin: int
    end: int
    reason: str
    entries: tuple[TableEntry, ...] = ()
    payload_position: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether this is one group, of which it is known where it ends, and its bytes are all there."""
        return bool(self.entries)


@dataclass(slots=True)
class Survey:
    """All of it; `end` is where the journal ends, as far as groups and snapshots tell.

    `snapshots` are the sound ones by position, `unusable` the names of the others. `torn` says of the last slot at
    which byte writes begin that a crash cut short. `segment_ends` has the chain's checksum where the slots end.
    """

    view: View
    is_batch: IsBatch
    mended: list[Mended] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    compacted: list[Slot] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    lost_compacted: list[Lost] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    torn: int | None = None
    end: int = 0
    is_end_known: bool = True
    """Whether nothing can have been written behind `end`: else the journal's last bytes are damaged."""

    @property
    def files(self) -> Files:
        """The view, for what takes `Files` and only looks."""
        return cast("Files", self.view)

    @property
    def numbers_of_compacted(self) -> range:
        """By which numbers the compacted segments go: those behind the slots'."""
        return range(len(self.slots), len(self.slots) + len(self.compacted))

    def slot(self, number: int) -> Slot:
        """Return the slot, or compacted segment, of this number."""
        return self.slots[number] if number < len(self.slots) else self.compacted[number - len(self.slots)]

    def pieces(self, number: int) -> Iterator[Group | Lost]:
        """Yield what lies in a slot, in order."""
        yield from _Walk(self, number).pieces()

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Open a file of the view."""
        handle = self.view.open(name)
        try:
            yield handle
        finally:
            self.view.close(handle)


def survey(files: Files, is_batch: IsBatch) -> Survey:
    """Look at a locked directory; raise OSError, or UnsupportedFormat where it is not ours to judge.

    `is_batch` says whether bytes are the batch that an index row speaks of: the second witness of a flipped bit.
    """
    found = Survey(View(files), is_batch)
    _mend_format(found)  # first of all: a header that is made from a group is of our version, whatever it was
    _mend_headers(found)
    _mend_start(found)
    _mend_compacted(found)
    _mend_snapshots(found)
    layout = lay_out(found.files, found.view.names())
    found.left_over = layout.left_over
    found.slots = _slots(found, start.load(found.files, found.view.names()) or 0, layout.segments)
    found.compacted = _compacted(found)
    for number in range(len(found.slots) + len(found.compacted)):
        _Walk(found, number).mend()
    boundaries: set[int] = set()
    for number, slot in enumerate(found.slots):
        for piece in found.pieces(number):
            if isinstance(piece, Lost):
                found.lost.append(piece)
                found.end = max(found.end, piece.end)
                found.is_end_known = slot.end is not None or piece.is_whole
            elif not slot.generation:
                found.end = max(found.end, piece.end)
                found.is_end_known = True
                boundaries.update(at for at in found.snapshots if piece.position < at < piece.end)
        found.end = max(found.end, slot.base, slot.end or 0)
    for number in found.numbers_of_compacted:
        found.lost_compacted += [piece for piece in found.pieces(number) if isinstance(piece, Lost)]
    for position in boundaries:  # of another journal: the state of no moment of this one
        found.snapshots.remove(position)
        found.unusable.append(file_name(position, SNAPSHOT_SUFFIX))
    return found


# --- single files -----------------------------------------------------------------------------------------------------


def _mend_headers(found: Survey) -> None:
    """Make the headers of segments from the groups that follow, or from the next segment's header; last ones first."""
    segments = segments_of(found.view.names(), SEGMENT_SUFFIX)
    next_base: int | None = None
    next_checksum: int | None = None
    for each in (*compacted_of(found.view.names(), SEGMENT_SUFFIX), *reversed(segments)):
        base, generation, is_compacted = each
        name = each.name(SEGMENT_SUFFIX)
        with found.opened(name) as handle:
            size = found.view.size(handle)
            data = found.view.read(handle, SEGMENT_HEADER_BYTES + GROUP_HEADER_BYTES, 0)
        header = unpack_segment_header(data)
        if header is None and len(data) >= SEGMENT_HEADER_BYTES:
            head = data[:SEGMENT_HEADER_BYTES]
            mended = with_one_bit_put_back(head, unpack_segment_header)
            if mended is not None:
                header = mended[1]
                found.view.patch(name, [mended[0]])
                found.mended.append(Mended(name, mended[0].offset, "a flipped bit of the header"))
            elif len(data) == SEGMENT_HEADER_BYTES + GROUP_HEADER_BYTES:
                header = _header_from_group(base, generation, data[SEGMENT_HEADER_BYTES:])
                if header is not None and is_compacted:
                    header = header._replace(size=size)
                elif header is not None and generation:
                    header = (
                        None
                        if next_base is None or next_checksum is None
                        else header._replace(end=next_base, last_checksum=next_checksum, size=size)
                    )
                if header is not None:
                    found.view.patch(name, [Patch(0, pack_segment_header(header))])
                    found.mended.append(Mended(name, 0, "the header, which its first group and its name give"))
        if is_compacted:
            continue
        if header is not None and header.base == base:
            next_base, next_checksum = base, header.previous_checksum
        else:
            next_base, next_checksum = base, None


def _header_from_group(base: int, generation: int, data: bytes) -> SegmentHeader | None:
    mark = data[:MARK_BYTES]
    first = unpack_group_header(data, mark)
    if first is None or first.position != base:
        return None
    return SegmentHeader(base, mark, first.previous_checksum, generation)


def _mend_format(found: Survey) -> None:
    view = found.view
    names = view.names()
    content = read_file(found.files, FORMAT_NAME) if FORMAT_NAME in names else None
    if content == FORMAT_CONTENT or (content is None and not segments_of(names, SEGMENT_SUFFIX)):
        return
    # Each segment says which version it has.
    for each in segments_of(names, SEGMENT_SUFFIX):
        with found.opened(each.name(SEGMENT_SUFFIX)) as handle:
            if unpack_segment_header(view.read(handle, SEGMENT_HEADER_BYTES, 0)) is not None:
                view.put(FORMAT_NAME, FORMAT_CONTENT)
                found.mended.append(Mended(FORMAT_NAME, 0, "the version, which each segment has as well"))
                return
    raise UnsupportedFormat(f"{view.directory / FORMAT_NAME} is not of this version, and no segment is: use that one")


def _mend_start(found: Survey) -> None:
    view, names = found.view, found.view.names()
    if start.load(found.files, names) is not None:
        return
    mended = with_one_bit_put_back(read_file(found.files, START_NAME), start.unpack_start)
    if mended is not None:
        view.put(START_NAME, start.pack_start(mended[1]))
    else:
        segments = segments_of(names, SEGMENT_SUFFIX)
        view.put(START_NAME, start.pack_start(segments[0][0] if segments else 0))
    found.mended.append(Mended(START_NAME, 0, "where the journal begins, which its first segment's name says"))


def _mend_compacted(found: Survey) -> None:
    view, names = found.view, found.view.names()
    if compacted.load(found.files, names) is not None:
        return
    mended = with_one_bit_put_back(read_file(found.files, COMPACTED_NAME), compacted.unpack_named)
    if mended is not None:
        view.put(COMPACTED_NAME, compacted.pack_named(mended[1]))
    else:
        numbers = [each.base for each in compacted_of(names, SEGMENT_SUFFIX)]
        view.put(COMPACTED_NAME, compacted.pack_named(compacted.Named(numbers, max(numbers, default=-1) + 1)))
    found.mended.append(Mended(COMPACTED_NAME, 0, "which compacted segments there are, which their names say"))


def _mend_snapshots(found: Survey) -> None:
    for position in positions_of(found.view.names(), SNAPSHOT_SUFFIX):
        name = file_name(position, SNAPSHOT_SUFFIX)
        data = read_file(found.files, name)
        if unpack_snapshot(data, position) is None:
            patch = _mended_snapshot(data, position)
            if patch is None:
                found.unusable.append(name)
                continue
            found.view.patch(name, [patch])
            found.mended.append(Mended(name, patch.offset, "a flipped bit"))
        found.snapshots.append(position)


def _mended_snapshot(data: bytes, position: int) -> Patch | None:
    head = data[:SNAPSHOT_HEADER_BYTES]
    if len(head) < SNAPSHOT_HEADER_BYTES:
        return None
    checksum = int.from_bytes(head[12:16], "little")
    patch = flipped_bit(memoryview(data)[16:], checksum)
    if patch is not None:
        candidates = [Patch(patch.offset + 16, patch.content)]
    else:  # or it is the checksum that is wrong, or what stands before it
        candidates = [Patch(at, bytes((data[at] ^ 1 << bit,))) for at in range(16) for bit in range(8)]
    for each in candidates:
        if unpack_snapshot(data[: each.offset] + each.content + data[each.offset + 1 :], position) is not None:
            return each
    return None


# --- segments ---------------------------------------------------------------------------------------------------------


def _slots(found: Survey, begin: int, segments: list[Segment]) -> list[Slot]:
    """Put each segment in its place, with an empty place where one is missing, or is another journal's."""
    slots: list[Slot] = []
    at = begin
    bases = [segment.base for segment in segments]
    for number, segment in enumerate(segments):
        following = bases[number + 1] if number + 1 < len(segments) else None
        with found.opened(segment.name) as handle:
            header = unpack_segment_header(found.view.read(handle, SEGMENT_HEADER_BYTES, 0))
        if header is not None and (header.base, header.generation) != (segment.base, segment.generation):
            header = None
        if segment.base > at:
            slots.append(_missing(at, segment.base))
        end = following
        if header is not None and header.generation and (end is None or header.end < end):
            end = header.end
        slots.append(Slot(base=segment.base, end=end, generation=segment.generation, name=segment.name, header=header))
        at = end if end is not None else segment.base
        if following is None and end is not None:
            slots.append(_missing(end, None))
    if not slots:
        slots.append(_missing(begin, None))
    return _without_strangers(found, slots)


def _compacted(found: Survey) -> list[Slot]:
    names = found.view.names()
    named = compacted.load(found.files, names)
    assert named is not None
    present = {each.base for each in compacted_of(names, SEGMENT_SUFFIX)}
    slots: list[Slot] = []
    for number in sorted({*named.numbers, *(each for each in present if each >= named.next_number)}):
        name = SegmentId(number, is_compacted=True).name(SEGMENT_SUFFIX)
        header = None
        if number in present:
            with found.opened(name) as handle:
                header = unpack_segment_header(found.view.read(handle, SEGMENT_HEADER_BYTES, 0))
        if header is not None and header.base != number:
            header = None
        slots.append(Slot(base=number, end=number, generation=0, name=name, header=header, is_compacted=True))
    return slots


def _missing(base: int, end: int | None) -> Slot:
    return Slot(base=base, end=end, generation=0, name=file_name(base, SEGMENT_SUFFIX), header=None)


def _without_strangers(found: Survey, slots: list[Slot]) -> list[Slot]:
    """Take a segment that follows neither the one before it nor is followed by the next one for another journal's."""
    chain: list[int | None] = []
    for slot in slots:
        checksum: int | None = None
        if slot.header is not None and slot.generation:
            checksum = slot.header.last_checksum
        elif slot.header is not None:
            with found.opened(slot.name) as handle:
                scan = SegmentScan(found.files, handle)
                for _ in scan.groups():
                    pass
                if scan.fault is None and scan.end == slot.end:
                    checksum = scan.last_checksum
        chain.append(checksum)
    fits: list[bool | None] = []  # whether a slot follows the one before it; None: nobody knows
    for number, slot in enumerate(slots):
        before = chain[number - 1] if number else (0 if not slot.base else None)
        fits.append(None if slot.header is None or before is None else slot.header.previous_checksum == before)
    strangers: set[int] = set()
    for number, fit in enumerate(fits):
        if fit is False and number - 1 not in strangers:
            is_first = number > 0 and (number == 1 or fits[number - 1] is not True)
            follows = number + 1 >= len(fits) or fits[number + 1] is True
            strangers.add(number - 1 if is_first and follows and number else number)
    for number in strangers:
        slot = slots[number]
        slots[number] = Slot(base=slot.base, end=slot.end, generation=slot.generation, name=slot.name, header=None)
    return slots


class _Walk:
    """Over one slot."""

    def __init__(self, found: Survey, number: int) -> None:
        self._found = found
        self._number = number
        self._slot = found.slot(number)
        self._name = self._slot.name

    def mend(self) -> None:
        """Put flipped bits right, as far as the segment can be walked."""
        if self._slot.header is None:
            return
        view = self._found.view
        with self._found.opened(self._name) as handle:
            scan = SegmentScan(self._found.files, handle)
            while True:
                for _ in scan.groups():
                    pass
                fault = scan.fault
                if fault is None:
                    return
                mended = self._mended(handle, scan, fault)
                if mended is not None:
                    patch, header = mended
                    view.patch(self._name, [patch])
                    self._found.mended.append(Mended(self._name, patch.offset, "a flipped bit"))
                    scan = SegmentScan(self._found.files, handle)
                    scan.resume(fault.offset, header)
                    continue
                later = next(scan.later_groups(fault.offset + 1), None)
                if later is None:
                    return
                scan.resume(*later)

    def _mended(self, handle: int, scan: SegmentScan, fault: Fault) -> tuple[Patch, GroupHeader] | None:
        view, offset = self._found.view, fault.offset
        segment = scan.header
        assert segment is not None
        header = fault.header
        if header is None:
            data = view.read(handle, GROUP_HEADER_BYTES, offset)
            found = with_one_bit_put_back(data, lambda each: unpack_group_header(each, segment.mark))
            if found is None:
                return None
            patch, header = found
            patch = Patch(offset + patch.offset, patch.content)
            if header.position != scan.end or header.previous_checksum != scan.last_checksum:
                return None
            body = self._body(handle, scan, header, offset)
            is_borne_out = body is not None and crc32c(body) == header.body_checksum
            return (patch, header) if is_borne_out else None
        if header.position != scan.end or header.previous_checksum != scan.last_checksum:
            return None
        body = self._body(handle, scan, header, offset)
        flipped = flipped_bit(body, header.body_checksum) if body is not None else None
        if body is None or flipped is None:
            return None
        body = body[: flipped.offset] + flipped.content + body[flipped.offset + 1 :]
        if not self._is_consistent(header, memoryview(body)):
            return None
        return Patch(offset + GROUP_HEADER_BYTES + flipped.offset, flipped.content), header

    def _body(self, handle: int, scan: SegmentScan, header: GroupHeader, offset: int) -> bytes | None:
        size = header.size - GROUP_HEADER_BYTES
        if offset + header.size > scan.size or size > MOST_BYTES:
            return None
        return self._found.view.read(handle, size, offset + GROUP_HEADER_BYTES)

    def _is_consistent(self, header: GroupHeader, body: memoryview) -> bool:
        """Whether table and batches agree; a batch has a checksum of its own."""
        payload = body[header.table_size :]
        try:
            for entry in unpack_table(body[: header.table_size], header.entry_count):
                for row in entry.rows:
                    start = entry.payload_start + row.start
                    if not self._found.is_batch(row, payload[start : start + row.size]):
                        return False
        except ValueError:
            return False
        return True

    def pieces(self) -> Iterator[Group | Lost]:
        slot, found = self._slot, self._found
        witness = found.snapshots[-1] if found.snapshots else 0
        if slot.header is None:
            is_there = self._name in found.view.sources
            if slot.end is None and is_there and witness <= slot.base:
                with found.opened(self._name) as handle:
                    if found.view.size(handle) <= SEGMENT_HEADER_BYTES and (self._number or not slot.base):
                        return  # a crash while the segment was begun
            end = slot.end if slot.end is not None else max(witness, slot.base)
            if is_there or slot.is_compacted or end > slot.base or slot.base:
                reason = "nothing in it can be read, or it is another's" if is_there else "the segment is missing"
                yield self._lost(0, slot.base, end, reason)
            return
        with found.opened(self._name) as handle:
            scan = SegmentScan(found.files, handle)
            while True:
                for group in scan.groups():
                    if slot.end is not None and not slot.has_batches_alone and group.end > slot.end:
                        return
                    yield group
                if scan.fault is None:
                    break
                fault = scan.fault
                if slot.end is not None and not slot.has_batches_alone and scan.end >= slot.end:
                    return  # what was never part of it
                later = next(scan.later_groups(fault.offset + 1), None)
                if slot.end is None and witness <= scan.end and evidence_of_damage(scan, fault) is None:
                    found.torn = fault.offset
                    return
                end = self._end(scan, fault, None if later is None else later[1])
                yield self._lost(fault.offset, scan.end, end, fault.reason, *self._table(handle, scan, fault))
                if later is None:
                    return
                scan.resume(*later)
            if slot.has_batches_alone:
                if scan.header is not None and scan.size != scan.header.size:
                    yield self._lost(scan.size, scan.end, slot.end or scan.end, "it is not as long as it says")
            elif slot.end is not None and scan.end < slot.end:
                yield self._lost(scan.offset, scan.end, slot.end, f"it ends at position {scan.end}")
            elif slot.end is None and scan.end < witness:
                yield self._lost(scan.offset, scan.end, witness, f"the journal ends before its snapshot of {witness}")

    def _end(self, scan: SegmentScan, fault: Fault, later: GroupHeader | None) -> int:
        if later is not None:
            return later.position
        if self._slot.end is not None:
            return self._slot.end
        witness = self._found.snapshots[-1] if self._found.snapshots else 0
        return max(scan.end, witness, fault.header.position + fault.header.size if fault.header is not None else 0)

    def _lost(
        self, offset: int, begin: int, end: int, reason: str, entries: tuple[TableEntry, ...] = (), payload: int = 0
    ) -> Lost:
        slot = self._slot
        if slot.has_batches_alone:
            begin, end = slot.base, slot.end if slot.end is not None else slot.base
        return Lost(
            slot=self._number,
            name=self._name,
            offset=offset,
            begin=begin,
            end=end,
            reason=reason,
            entries=entries,
            payload_position=payload,
        )

    def _table(self, handle: int, scan: SegmentScan, fault: Fault) -> tuple[tuple[TableEntry, ...], int]:
        """Return what the table of a group says whose header is sound, and where its payload begins."""
        header = fault.header
        if header is None or header.position != scan.end or header.previous_checksum != scan.last_checksum:
            return (), 0
        if fault.offset + header.size > scan.size or header.table_size > MOST_BYTES:
            return (), 0
        table = self._found.view.read(handle, header.table_size, fault.offset + GROUP_HEADER_BYTES)
        try:
            entries = tuple(unpack_table(table, header.entry_count))
        except ValueError:
            return (), 0
        payload_bytes = sum(entry.payload_size for entry in entries)
        if GROUP_HEADER_BYTES + header.table_size + payload_bytes != header.size:
            return (), 0
        return entries, scan.end + GROUP_HEADER_BYTES + header.table_size
