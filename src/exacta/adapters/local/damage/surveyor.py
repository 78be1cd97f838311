"""Surveyor of a damaged journal: puts right what can be, and tells what is sound, what was mended and what is lost.

This module decides which segment has which place. The meaning of events and batches, and remedies that give something
up, are in `exacta.repair`. Nothing is written here (see `repair`).
"""

from exacta.adapters.local.damage.mended_files import mend_files
from exacta.adapters.local.damage.mended_journal import View
from exacta.adapters.local.damage.segment_walk import mend_segment, pieces
from exacta.adapters.local.damage.survey import IsBatch, Lost, Slot, Survey
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import (
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_SUFFIX,
    SegmentId,
    compacted_of,
    file_name,
    unpack_segment_header,
)
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.layout import lay_out
from exacta.adapters.local.opening import first_position
from exacta.adapters.local.opening.segment_scan import SegmentScan
from exacta.adapters.local.space import compacted_segments


def survey(files: Files, is_batch: IsBatch) -> Survey:
    """Look at a locked directory; raise OSError, or UnsupportedFormat where it is not ours to judge.

    `is_batch` says whether bytes are the batch that an index row speaks of: the second witness of a flipped bit.
    """
    found = Survey(View(files), is_batch)
    mend_files(found)
    layout = lay_out(found.files, found.view.names())
    found.left_over = layout.left_over
    found.slots = _slots(found, first_position.load(found.files, found.view.names()) or 0, layout.segments)
    found.compacted = _compacted(found)
    for number in range(len(found.slots) + len(found.compacted)):
        mend_segment(found, number)
    boundaries: set[int] = set()
    for number, slot in enumerate(found.slots):
        for piece in pieces(found, number):
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
        found.lost_compacted += [piece for piece in pieces(found, number) if isinstance(piece, Lost)]
    for position in boundaries:  # of another journal: the state of no moment of this one
        found.snapshots.remove(position)
        found.unusable.append(file_name(position, SNAPSHOT_SUFFIX))
    return found


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
    named = compacted_segments.load(found.files, names)
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
