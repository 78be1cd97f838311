"""The tail of a shared log as a broker has read or written it: its segments, and their bytes in memory.

A segment of the tail is a run of groups with one mark, and has the bytes that it will have as an object: a header,
which follows from its first group, and the groups. The newest groups are in memory. Older ones are read again from the
ledger, by the event loop (`pieces`, `buffers`). Threads see memory alone (`size`, `read`, `read_nowait`).
"""

import errno
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from exacta.adapters.local.format import SEGMENT_HEADER_BYTES, SegmentHeader, pack_segment_header
from exacta.adapters.shared.blocks import Gone
from exacta.adapters.shared.steps import call
from exacta.ports.journal import Buffer, Failed
from exacta.ports.shared import Ledger

T = TypeVar("T")
MEMORY_BYTES = 256 << 20
"""So much of the tail is in memory: four segments, of which one is being offloaded, and the rest is read most."""
FETCHED_BYTES = 4 << 20
"""So much is read at once from the ledger."""


class TailSegment:
    """A segment of the tail. Only the event loop changes it; positions are only added, for threads that look."""

    def __init__(self, header: SegmentHeader) -> None:
        self.header = header
        self.positions: list[int] = []
        self.bodies: list[Buffer | None] = []
        """The groups' bytes; None: they are no longer in memory."""
        self.end = header.base
        self._checksums = [header.previous_checksum]
        """The checksum before the first group, and those of the groups."""

    def add(self, body: Buffer, checksum: int) -> None:
        """Add a group."""
        self.bodies.append(body)
        self._checksums.append(checksum)
        self.positions.append(self.end)
        self.end += len(body)

    @property
    def last_checksum(self) -> int:
        """The checksum of the last group so far."""
        return self._checksums[-1]

    def checksum_before(self, position: int) -> int:
        """Return the checksum of the group that ends at `position`."""
        return self._checksums[bisect_left(self.positions, position)]

    @property
    def base(self) -> int:
        """The position at which the segment begins."""
        return self.header.base

    def number_at(self, position: int) -> int:
        """Return which of the groups has this position."""
        return bisect_right(self.positions, position) - 1

    def end_of(self, number: int) -> int:
        """Return the position after a group."""
        return self.positions[number + 1] if number + 1 < len(self.positions) else self.end

    def in_memory(self, position: int, size: int) -> list[Buffer] | None:
        """Return these bytes, in pieces; None: not all of them are in memory."""
        pieces: list[Buffer] = []
        number, end = self.number_at(position), position + size
        while position < end:
            body = self.bodies[number]
            if body is None:
                return None
            pieces.append(_piece(body, self.positions[number], position, end))
            position += len(pieces[-1])
            number += 1
        return pieces


def _piece(body: Buffer, begin: int, position: int, end: int) -> Buffer:
    """Return the bytes from `position` to `end` that a group has which begins at `begin`."""
    if position == begin and end >= begin + len(body):
        return body
    return memoryview(body)[position - begin : end - begin]


def _found(answer: T | Failed, position: int) -> T:
    """Return what the ledger has found of the group at `position`; raise Gone, OSError."""
    if isinstance(answer, Failed):
        raise OSError(errno.EIO, answer.reason)
    if not answer:
        raise Gone(errno.ENOENT, f"position {position} is no longer in the tail")
    return answer


class Tail:
    """Keep the segments of the tail, oldest first; the last one grows."""

    def __init__(self, ledger: Ledger, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._ledger = ledger
        self._memory_bytes = memory_bytes
        self._in_memory = 0
        self._oldest: deque[tuple[TailSegment, int]] = deque()
        """The groups that are in memory, by segment and number."""
        self._segments: dict[int, TailSegment] = {}
        self.growing: TailSegment | None = None

    def begin(self, header: SegmentHeader) -> None:
        """Begin a segment."""
        self.growing = self._segments[header.base] = TailSegment(header)

    def add(self, body: Buffer, checksum: int) -> None:
        """Add a group to the segment that grows."""
        segment = self.growing
        assert segment is not None
        segment.add(body, checksum)
        self._oldest.append((segment, len(segment.bodies) - 1))
        self._in_memory += len(body)
        while self._in_memory > self._memory_bytes:
            self._let_go(*self._oldest.popleft())

    def _let_go(self, segment: TailSegment, number: int) -> None:
        body = segment.bodies[number]
        assert body is not None
        self._in_memory -= len(body)
        segment.bodies[number] = None

    def drop_before(self, position: int) -> None:
        """Forget the segments that begin before `position`: they are objects."""
        for segment in [each for each in self._segments.values() if each.base < position]:
            del self._segments[segment.base]
            if segment is self.growing:
                self.growing = None
        kept = [each for each in self._oldest if each[0].base >= position]
        for each in self._oldest:
            if each[0].base < position:
                self._let_go(*each)
        self._oldest = deque(kept)

    def segment(self, base: int) -> TailSegment | None:
        """Return the segment of this base; None: it is not in the tail."""
        return self._segments.get(base)

    @property
    def segments(self) -> Sequence[TailSegment]:
        """All segments of the tail, oldest first."""
        return list(self._segments.values())

    def checksum_before(self, position: int) -> int | None:
        """Return the checksum of the group that ends at `position`; None: the tail does not know."""
        found = [each for each in self._segments.values() if each.base <= position <= each.end]
        return found[0].checksum_before(position) if found else None

    @property
    def sealed(self) -> Sequence[TailSegment]:
        """The segments that do not grow any more, oldest first."""
        return [each for each in self._segments.values() if each is not self.growing]

    # --- on the event loop --------------------------------------------------------------------------------------------

    async def pieces(self, segment: TailSegment, position: int, size: int) -> list[Buffer]:
        """Return these bytes of a segment, in pieces; raise Gone where they have left the ledger, else OSError."""
        pieces: list[Buffer] = []
        end = position + size
        while position < end:
            number = segment.number_at(position)
            body = segment.bodies[number]
            if body is not None:
                pieces.append(_piece(body, segment.positions[number], position, end))
                position += len(pieces[-1])
                continue
            for each in await self._fetch(segment, number, position, end):
                pieces.append(each)
                position += len(each)
        return pieces

    async def _fetch(self, segment: TailSegment, number: int, position: int, end: int) -> list[Buffer]:
        """Read bytes again that are no longer in memory: a part of a group, or groups from this one on."""
        begin, group_end = segment.positions[number], segment.end_of(number)
        wanted = min(end, group_end) - position
        if wanted * 2 < group_end - begin:
            part = await call(self._ledger.read_body, begin, position - begin, wanted)
            return [_found(part, begin)]
        groups = _found(await call(self._ledger.read_tail, begin, min(FETCHED_BYTES, end - begin)), begin)
        return [
            _piece(each.body, each.position, max(position, each.position), end)
            for each in groups
            if each.position < end
        ]

    async def buffers(self, segment: TailSegment) -> list[Buffer]:
        """Return a segment that does not grow any more as the file that it would be; raise as `pieces` does."""
        pieces = await self.pieces(segment, segment.base, segment.end - segment.base)
        return [pack_segment_header(segment.header), *pieces]

    # --- on any thread ------------------------------------------------------------------------------------------------

    def size(self, base: int) -> int | None:
        """Return how many bytes the segment has so far, its header included; None: it is not in the tail."""
        segment = self._segments.get(base)
        return None if segment is None else SEGMENT_HEADER_BYTES + segment.end - base

    def read(self, base: int, size: int, offset: int) -> bytes:
        """Return these bytes of the file that a segment would be, fewer at its end; raise OSError.

        Raises Gone where they are not in the tail, or not in memory.
        """
        data = self.read_nowait(base, size, offset)
        if data is None:
            raise Gone(errno.ENOENT, f"byte {offset} of the segment at position {base} is not in memory")
        return data

    def read_nowait(self, base: int, size: int, offset: int) -> bytes | None:
        """Return these bytes as `read` does; None: they are not in the tail, or not in memory."""
        segment = self._segments.get(base)
        if segment is None:
            return None
        stop = min(offset + size, SEGMENT_HEADER_BYTES + segment.end - base)
        header = pack_segment_header(segment.header)[offset:stop]
        begin = max(offset, SEGMENT_HEADER_BYTES)
        pieces = segment.in_memory(base + begin - SEGMENT_HEADER_BYTES, stop - begin)
        return None if pieces is None else b"".join([header, *pieces])
