"""Walks over the segments of a damaged journal: put flipped bits right, and tell what is sound and what is lost.

A fault is mended in the view, or is a write that a crash cut short, or is a loss. Events and batches mean nothing here,
and nothing is written.
"""

from collections.abc import Iterator

from crc32c import crc32c

from exacta.adapters.local.damage.mended_journal import MOST_BYTES, Patch, flipped_bit, with_one_bit_put_back
from exacta.adapters.local.damage.survey import Lost, Mended, Survey
from exacta.adapters.local.format import (
    GROUP_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    GroupHeader,
    TableEntry,
    unpack_group_header,
    unpack_table,
)
from exacta.adapters.local.opening.recovery import evidence_of_damage
from exacta.adapters.local.opening.segment_scan import ScanFault, ScannedGroup, SegmentScan


def mend_segment(found: Survey, number: int) -> None:
    """Put flipped bits right, in the view, as far as the segment of this slot can be walked."""
    _Walk(found, number).mend()


def pieces(found: Survey, number: int) -> Iterator[ScannedGroup | Lost]:
    """Yield what lies in a slot, in order."""
    return _Walk(found, number).pieces()


def events_from(found: Survey, position: int, end: int) -> Iterator[ScannedGroup | Lost]:
    """Yield the groups that lie between these positions, and what is lost there, in order."""
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


class _Walk:
    """Walk over one slot."""

    def __init__(self, found: Survey, number: int) -> None:
        self._found = found
        self._number = number
        self._slot = found.slot(number)
        self._name = self._slot.name

    def mend(self) -> None:
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

    def _mended(self, handle: int, scan: SegmentScan, fault: ScanFault) -> tuple[Patch, GroupHeader] | None:
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
        """Say whether table and batches agree; a batch has a checksum of its own."""
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

    def pieces(self) -> Iterator[ScannedGroup | Lost]:
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

    def _end(self, scan: SegmentScan, fault: ScanFault, later: GroupHeader | None) -> int:
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

    def _table(self, handle: int, scan: SegmentScan, fault: ScanFault) -> tuple[tuple[TableEntry, ...], int]:
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
