"""The layout of a journal: the files that belong to it, chosen by their names and first bytes.

Some segments may have been cleaned or dropped, and not removed yet. A cleaned segment takes the place of all that it
covers, and segments before the position in `start` are no part of the journal any more. Compacted segments stand beside
the others.
"""

from collections.abc import Sequence
from typing import NamedTuple

from exacta.adapters.local.directory_lock import LOCK_NAME
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import (
    COMPACTED_NAME,
    FORMAT_NAME,
    INDEX_SUFFIX,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    START_NAME,
    TEMPORARY_SUFFIX,
    SegmentHeader,
    SegmentId,
    compacted_of,
    file_name,
    segments_of,
    unpack_segment_header,
)
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.opening import first_position
from exacta.adapters.local.space import compacted_segments


class Fault(NamedTuple):
    """Tell what is wrong, and in which file."""

    name: str
    reason: str


class Layout(NamedTuple):
    """The segments, and the compacted ones, oldest first; what is left over from a cleaning; what is missing."""

    segments: list[Segment]
    compacted: list[Segment]
    next_compacted: int
    left_over: list[str]
    faults: list[Fault]


def is_journal(names: Sequence[str]) -> bool:
    """Tell whether a directory of these files is a journal, also a damaged one, or is to become one."""
    ours = {LOCK_NAME, FORMAT_NAME, FORMAT_NAME + TEMPORARY_SUFFIX}
    return not names or not ours.isdisjoint(names) or bool(segments_of(names, SEGMENT_SUFFIX))


def lay_out(files: Files, names: list[str]) -> Layout:
    """Choose the files of the journal; raise OSError."""
    faults: list[Fault] = []
    segments: list[Segment] = []
    begin = first_position.load(files, names)
    if begin is None:
        faults.append(Fault(START_NAME, "it is unreadable"))
    taken_to = begin or 0
    for each in segments_of(names, SEGMENT_SUFFIX):
        if each.base < taken_to:
            continue
        segment = Segment(*each)
        if not segments and begin is not None and each.base > begin:
            faults.append(_missing(begin))
        segments.append(segment)
        taken_to = each.base + 1
        if each.generation:
            header = _header(files, segment)
            if header is None:
                faults.append(Fault(segment.name, "the segment's header is unreadable"))
            else:
                taken_to = header.end
    if segments and segments[-1].generation:
        faults.append(_missing(taken_to))  # what is written to was never cleaned
    if begin and not segments:
        faults.append(_missing(begin))
    named = compacted_segments.load(files, names)
    if named is None:
        faults.append(Fault(COMPACTED_NAME, "it is unreadable"))
        named = compacted_segments.Named((), 0)
    found = compacted_of(names, SEGMENT_SUFFIX)
    compacted_ids = [each for each in found if each.base in named.numbers or each.base >= named.next_number]
    missing = [SegmentId(number, is_compacted=True) for number in named.numbers]
    faults += [
        Fault(each.name(SEGMENT_SUFFIX), "the segment is missing") for each in missing if each not in compacted_ids
    ]
    kept = {*(segment.id for segment in segments), *compacted_ids}
    left_over = [
        each.name(suffix)
        for suffix in (SEGMENT_SUFFIX, INDEX_SUFFIX)
        for each in (*segments_of(names, suffix), *compacted_of(names, suffix))
        if each not in kept
    ]
    next_number = max([named.next_number, *(each.base + 1 for each in compacted_ids)])
    return Layout(segments, [Segment(*each) for each in compacted_ids], next_number, left_over, faults)


def begin_of_replay(segments: Sequence[Segment], position: int) -> int | None:
    """Return in which segment the events from `position` on begin; None: they are gone (case 16)."""
    first = max((number for number, segment in enumerate(segments) if segment.base <= position), default=None)
    return None if first is None or any(segment.generation for segment in segments[first:]) else first


def _missing(position: int) -> Fault:
    return Fault(file_name(position, SEGMENT_SUFFIX), "the segment is missing")


def _header(files: Files, segment: Segment) -> SegmentHeader | None:
    handle = files.open(segment.name)
    try:
        return unpack_segment_header(files.read(handle, SEGMENT_HEADER_BYTES, 0))
    finally:
        files.close(handle)
