"""The index over the whole journal: says which segments have the batches of a stream.

This module has the look-ups over all segments, and keeps in memory what they need: the segments, and for each stream
the numbers of the segments that it has been in, four bytes each. Look-ups within one segment are in `segment_rows`.

Theory of operation. A segment gets a number when it is taken in; a stream's list has the numbers of the segments in
which it has rows. The lists are sorted by number, hence by offset, too, so that bisection finds the first segment of a
range. When neighbouring segments are cleaned, the one that takes their place has the number of the first of them.

A compacted segment has the beginnings of streams. It has a smaller number than all that are not, and comes first in the
lists of its streams; whatever other segments have of these offsets is no longer found, until they are cleaned of it.
Mostly it ends where another segment ends, but not after a repair.

A look-up that meets a damaged segment index calls `on_damage` and raises DamagedIndex. Nothing that was found earlier
may then be relied on any more, nor may this index.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from exacta.adapters.local.index.segment_rows import Column, DamagedIndex, Place, Rows, Segment
from exacta.ports.journal import Extent, IndexEntry, TimeEntry

_FIRST_NUMBER = 1 << 31
_TOUCHES_TILL_RELEASE = 256
"""Each touch takes some hundred kilobytes of a segment index into memory: the system maps what lies around a page."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _telling(look_up: "Callable[Concatenate[Index, _P], _T]") -> "Callable[Concatenate[Index, _P], _T]":
    """Call `on_damage` where a look-up meets a damaged segment index."""

    @wraps(look_up)
    def telling(self: "Index", /, *arguments: _P.args, **keywords: _P.kwargs) -> _T:
        try:
            return look_up(self, *arguments, **keywords)
        except DamagedIndex as damage:
            self.on_damage(damage)
            raise

    return telling


class Index:
    """Index all rows of all segments by stream. The segment added last is the active one."""

    def __init__(self, release: Callable[[Segment], None] = lambda segment: None) -> None:
        """Make an empty index; `release` gives back the memory that the index of a segment has taken."""
        self.on_damage: Callable[[DamagedIndex], None] = lambda damage: None
        self._release = release
        self._touches = 0
        self._touched: set[Segment] = set()
        self._numbered: dict[int, Segment] = {}
        self._next_number = _FIRST_NUMBER
        self._next_compacted_number = 0
        self._streams: dict[int, array[int]] = {}

    @_telling
    def add_segment(self, segment: Segment) -> None:
        """Take in a segment, after all those with smaller bases, with the rows that it has already."""
        number = self._next_number
        self._numbered[number] = segment
        self._next_number += 1
        for stream in segment.streams:
            self._note(stream, number)

    def _note(self, stream: int, number: int) -> None:
        numbers = self._streams.get(stream)
        if numbers is None:
            self._streams[stream] = array("I", (number,))
        else:
            numbers.append(number)

    @_telling
    def replace(self, old: Sequence[Segment], new: Segment | None) -> None:
        """Let another segment take the place of these neighbours; None: nothing of them is left."""
        first, *others = [number for number, segment in self._numbered.items() if segment in old]
        last = others[-1] if others else first
        streams = {stream for segment in old for stream in segment.streams}
        left = set() if new is None else set(new.streams)
        for stream in streams:
            numbers = self._streams.get(stream)
            if numbers is None:
                continue  # all of it is compacted, and gone
            low, high = bisect_left(numbers, first), bisect_right(numbers, last)
            if stream in left and low < high:
                numbers[low] = first
                low += 1
            del numbers[low:high]
            if not numbers:
                del self._streams[stream]
        for number in others:
            del self._numbered[number]
        if new is None:
            del self._numbered[first]
        else:
            self._numbered[first] = new

    @_telling
    def add_compacted(self, segment: Segment) -> None:
        """Find in this segment, from now on, what its streams have up to its last offset of each."""
        number = self._next_compacted_number
        self._next_compacted_number += 1
        self._numbered[number] = segment
        for stream in segment.streams:
            numbers = self._streams.setdefault(stream, array("I"))
            end = self._first_behind(stream, numbers, segment.last_offset(stream))
            numbers[:end] = array("I", (number,))

    def _first_behind(self, stream: int, numbers: "array[int]", offset: int) -> int:
        """Return which of the stream's segments is the first with a later offset."""
        return bisect_right(numbers, offset, key=lambda number: self._last_offset(number, stream))

    @_telling
    def drop_compacted(self, segment: Segment) -> None:
        """Forget a compacted segment, and the streams that are found there: they are gone."""
        number = self._number_of(segment)
        for stream in self.streams_found_in(segment):
            del self._streams[stream][0]
            if not self._streams[stream]:
                del self._streams[stream]
        del self._numbered[number]

    def _number_of(self, segment: Segment) -> int:
        return next(number for number, each in self._numbered.items() if each is segment)

    @_telling
    def streams_found_in(self, segment: Segment) -> list[int]:
        """Return the streams of a compacted segment whose beginnings are found there, and not in a later one."""
        number = self._number_of(segment)
        self._touch(segment)
        return [stream for stream in segment.streams if self._streams.get(stream, (0xFFFFFFFF,))[0] == number]

    def segments_of(self, stream: int) -> list[Segment]:
        """Return the segments in which the stream is found, in order of offset."""
        return [self._numbered[number] for number in self._streams.get(stream, ())]

    @_telling
    def last_offset_in(self, segment: Segment, stream: int) -> int:
        """Return the last offset that the stream, which has rows there, has in a segment."""
        self._touch(segment)
        return segment.last_offset(stream)

    @_telling
    def size_in(self, segment: Segment, stream: int, offset: int) -> int:
        """Return the bytes of the stream's batches in a segment whose last offset is `offset` or later."""
        self._touch(segment)
        return segment.size_from(stream, offset)

    @_telling
    def compacted_to(self, stream: int) -> int:
        """Return up to which offset (exclusive) the stream is found in a compacted segment; 0: it is in none."""
        numbers = self._streams.get(stream)
        if not numbers or numbers[0] >= _FIRST_NUMBER:
            return 0
        return self._last_offset(numbers[0], stream) + 1

    @_telling
    def last_offset(self, stream: int) -> int:
        """Return the last offset of the stream, -1 if it has none."""
        numbers = self._streams.get(stream)
        return self._last_offset(numbers[-1], stream) if numbers else -1

    def add(self, payload_position: int, index: Iterable[IndexEntry]) -> None:
        """Add the rows of one entry of the active segment, whose payload begins at `payload_position`."""
        number = self._next_number - 1
        segment = self._numbered[number]
        for entry in index:
            if segment.add(payload_position, entry):
                self._note(entry.stream, number)

    def _pieces(self, stream: int, offset: int) -> Iterator[tuple[Rows, int]]:
        """Yield the stream's rows, segment by segment, and the first of each that has `offset` or a later one."""
        numbers = self._streams.get(stream)
        if numbers is None:
            return
        numbered = self._numbered
        self._touch(numbered[numbers[-1]])
        newest = numbered[numbers[-1]].rows(stream)
        assert newest is not None
        newest.check(newest.low, newest.low + 1, Column.FIRST_OFFSETS)
        follows_compacted = len(numbers) == 2 and numbers[0] < _FIRST_NUMBER
        if newest.first_offsets[newest.low] <= offset and not follows_compacted:  # mostly so: readers follow the end
            yield newest, newest.at(offset)
            return
        begin = bisect_left(numbers, offset, key=lambda number: self._last_offset(number, stream))
        for number in numbers[begin:]:
            self._touch(numbered[number])
            rows = numbered[number].rows(stream)
            assert rows is not None
            yield rows, rows.at(offset)
            if number < _FIRST_NUMBER:
                # After a repair the segment behind it may have batches again that were compacted.
                offset = max(offset, rows.last_offset + 1)

    def _last_offset(self, number: int, stream: int) -> int:
        segment = self._numbered[number]
        self._touch(segment)
        return segment.last_offset(stream)

    def _touch(self, segment: Segment) -> None:
        """Note that the segment is about to be looked into; give back what was touched before, now and then."""
        if segment.index is None:
            return
        if self._touches >= _TOUCHES_TILL_RELEASE:
            for each in self._touched:
                self._release(each)
            self._touched.clear()
            self._touches = 0
        self._touches += 1
        self._touched.add(segment)

    @_telling
    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `Journal.find`: one extent for each segment that has a part of the range."""
        extents: list[Extent] = []
        room_bytes = max_bytes
        for rows, low in self._pieces(stream, offset):
            end_row = rows.at(end_offset, low)
            rows.check_found(end_row, Column.LAST_OFFSETS)
            before = rows.end_before(low)
            high = bisect_right(rows.ends, before + room_bytes, low, end_row)
            if high == low and not extents and end_row > low:
                high = low + 1  # a batch larger than the limit must get through, or its reader stands still for ever
            rows.check(low - 1, high + 1, Column.FIRST_OFFSETS, Column.LAST_OFFSETS, Column.POSITIONS, Column.ENDS)
            if high == low:
                break
            size = rows.ends[high - 1] - before
            place = Place(rows, low, high)
            extents.append(Extent(rows.first_offsets[low:high], rows.last_offsets[low:high], size, place))
            room_bytes -= size
            if high < rows.high:
                break
        return extents

    @_telling
    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `Journal.find_by_time`."""
        for rows, low in self._pieces(stream, offset):
            rows.check(rows.high - 1, rows.high, Column.MAX_TIMESTAMPS)
            if rows.max_timestamps[rows.high - 1] < timestamp_ms:
                continue
            rows.check_found(low, Column.LAST_OFFSETS, Column.MAX_TIMESTAMPS)
            row = bisect_left(rows.max_timestamps, timestamp_ms, low, rows.high)
            if row == low > rows.low and rows.max_timestamps[low - 1] >= timestamp_ms:
                # The running value was as late before: it tells nothing until it rises.
                while row < rows.high and rows.timestamps[row] < timestamp_ms:
                    row += 1
                rows.check(low, row + 1, Column.TIMESTAMPS)
                if row == rows.high:
                    continue
            rows.check_found(row, Column.FIRST_OFFSETS, Column.LAST_OFFSETS, Column.MAX_TIMESTAMPS, Column.TIMESTAMPS)
            return rows.time_entry(row) if rows.last_offsets[row] < end_offset else None
        return None

    @_telling
    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `Journal.find_latest`."""
        latest: TimeEntry | None = None
        for rows, low in self._pieces(stream, offset):
            end_row = rows.at(end_offset, low)
            rows.check_found(low, Column.LAST_OFFSETS)
            rows.check_found(end_row, Column.LAST_OFFSETS, Column.MAX_TIMESTAMPS)
            if low == end_row:
                continue
            if low == rows.low:
                row = bisect_left(rows.max_timestamps, rows.max_timestamps[end_row - 1], low, rows.high)
            else:
                highest_ms = max(rows.timestamps[low:end_row])
                row = next(row for row in range(low, end_row) if rows.timestamps[row] == highest_ms)
                rows.check(low, end_row, Column.TIMESTAMPS)
            rows.check_found(row, Column.FIRST_OFFSETS, Column.LAST_OFFSETS, Column.MAX_TIMESTAMPS, Column.TIMESTAMPS)
            if latest is None or rows.timestamps[row] > latest.max_timestamp_ms:
                latest = rows.time_entry(row)
        return latest

    @_telling
    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `Journal.count_records`."""
        total = 0
        for rows, low in self._pieces(stream, offset):
            high = rows.at(end_offset, low)
            rows.check_found(low, Column.FIRST_OFFSETS, Column.LAST_OFFSETS, Column.RECORD_COUNTS)
            rows.check_found(high, Column.LAST_OFFSETS, Column.RECORD_COUNTS)
            if high == low:
                break
            before = rows.records_before(low)
            first = rows.record_counts[low] - before
            left = rows.last_offsets[low] - max(offset, rows.first_offsets[low]) + 1
            total += rows.record_counts[high - 1] - before - first + min(first, left)
        return total

    @_telling
    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `Journal.size_bytes`."""
        size = 0
        for rows, low in self._pieces(stream, offset):
            end_row = rows.at(end_offset, low)
            rows.check_found(low, Column.LAST_OFFSETS, Column.ENDS)
            rows.check_found(end_row, Column.LAST_OFFSETS, Column.ENDS)
            size += rows.end_before(end_row) - rows.end_before(low)
        return size

    @_telling
    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """See `Journal.offset_after`."""
        left, reached = size_bytes, offset
        for rows, low in self._pieces(stream, offset):
            end_row = rows.at(end_offset, low)
            rows.check_found(low, Column.LAST_OFFSETS, Column.ENDS)
            rows.check_found(end_row, Column.LAST_OFFSETS)
            before = rows.end_before(low)
            row = bisect_right(rows.ends, before + left, low, end_row)
            rows.check_found(row, Column.LAST_OFFSETS, Column.ENDS)
            if row > low:
                left -= rows.ends[row - 1] - before
                reached = rows.last_offsets[row - 1] + 1
            if row < rows.high:
                break
        return reached
