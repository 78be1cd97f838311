"""The partitions' logs as readers find them: each partition's own stream, and the streams that have entered it.

What a large transaction has written to a sidecar topic lies in a stream of the journal's own, and has entered the
partition in place (`core.log.staging`, decision 0041). This is a `JournalReader` in which a partition is one stream all
the same. Owns how the pieces are put together. Owns neither the batches nor how they are found (the journal).

Theory of operation. A partition has pieces: runs of its own stream, and entered streams between them, in the order of
their offsets. A question is put to each piece that it concerns, in the piece's own numbers, and the answers are moved.
The bytes of an entered batch are as they were staged. Whoever reads them sees to it that they say where the batch is
now (`Moved`).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from exacta.core.ids import PartitionId
from exacta.core.state.partition import Partition
from exacta.core.state.staged import EnteredStream
from exacta.ports.journal import Buffer, Extent, Failed, JournalReader, TimeEntry


class _Piece(NamedTuple):
    """A run of offsets, and the stream in which they lie at these offsets less `shift`. `end` is exclusive."""

    stream: int
    shift: int
    offset: int
    end: int
    entered: EnteredStream | None

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of an entered stream."""
        entered = self.entered
        return entered is not None and self.offset <= entered.first_offset and self.end >= entered.end_offset

    @property
    def own(self) -> tuple[int, int, int]:
        """Return the stream, the first number and the end in the stream's own numbers."""
        return self.stream, max(0, self.offset - self.shift), self.end - self.shift


class Moved(NamedTuple):
    """The place of an extent of an entered stream: the extent as its own stream has it, in other numbers."""

    extent: Extent
    append_time_ms: int
    """The time of batches whose timestamps are the log's; -1: there are none."""


class LogReader(JournalReader):
    """Implement `JournalReader` over partitions; any other stream is the journal's."""

    def __init__(self, journal: JournalReader, partitions: Mapping[PartitionId, Partition]) -> None:
        self._journal = journal
        self._partitions = partitions

    @property
    def position(self) -> int:
        """See `JournalReader.position`."""
        return self._journal.position

    def on_failure(self, callback: Callable[[Failed], None]) -> None:
        """See `JournalReader.on_failure`."""
        self._journal.on_failure(callback)

    def close(self) -> None:
        """See `JournalReader.close`."""
        self._journal.close()

    def compacted_to(self, stream: int) -> int:
        """See `JournalReader.compacted_to`."""
        return self._journal.compacted_to(stream)

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _entered(self, stream: int) -> Sequence[EnteredStream]:
        partition = self._partitions.get(PartitionId(stream))
        return () if partition is None else partition.entered

    def _pieces(self, stream: int, offset: int, end_offset: int, entered: Sequence[EnteredStream]) -> Iterator[_Piece]:
        """Yield the pieces from `offset` to `end_offset`, in order."""
        for each in _overlapping(entered, offset, end_offset):
            if offset < each.first_offset:
                yield _Piece(stream, 0, offset, each.first_offset, None)
            end = min(end_offset, each.end_offset)
            yield _Piece(each.stream, each.first_offset, max(offset, each.first_offset), end, each)
            offset = each.end_offset
        if offset < end_offset:
            yield _Piece(stream, 0, offset, end_offset, None)

    def _entered_pieces(self, offset: int, end_offset: int, entered: Sequence[EnteredStream]) -> Iterator[_Piece]:
        for each in _overlapping(entered, offset, end_offset):
            begin, end = max(offset, each.first_offset), min(end_offset, each.end_offset)
            yield _Piece(each.stream, each.first_offset, begin, end, each)

    # --- look-ups -----------------------------------------------------------------------------------------------------

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `JournalReader.find`."""
        entered = self._entered(stream)
        if not entered:
            return self._journal.find(stream, offset, end_offset, max_bytes)
        found: list[Extent] = []
        room = max_bytes
        for piece in self._pieces(stream, offset, end_offset, entered):
            if found and room <= 0:
                break
            extents = self._journal.find(*piece.own, room)
            size = sum(extent.size for extent in extents)
            if found and size > room:
                break  # the journal gives one batch in any case
            room -= size
            found += extents if piece.entered is None else [_moved(extent, piece.entered) for extent in extents]
            if found and found[-1].last_offset < piece.end - 1:
                break  # there was no room for what follows in it
        return found

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_by_time`."""
        found = self._journal.find_by_time(stream, timestamp_ms, offset, end_offset)
        for piece in self._entered_pieces(offset, end_offset, self._entered(stream)):
            if found is not None and found.first_offset < piece.offset:
                break
            entered = piece.entered
            if entered is None or entered.max_timestamp_ms < timestamp_ms:
                continue
            if (first := self._first_from(piece, entered, timestamp_ms)) is not None:
                return first
        return found

    def _first_from(self, piece: _Piece, entered: EnteredStream, timestamp_ms: int) -> TimeEntry | None:
        if entered.append_time_ms < 0:
            return _shifted(self._journal.find_by_time(piece.stream, timestamp_ms, *piece.own[1:]), entered, -1)
        if timestamp_ms > entered.append_time_ms:
            return None
        first = self._journal.find_by_time(piece.stream, 0, *piece.own[1:])
        return _shifted(first, entered, entered.append_time_ms)

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_latest`."""
        found = self._journal.find_latest(stream, offset, end_offset)
        for piece in self._entered_pieces(offset, end_offset, self._entered(stream)):
            entered = piece.entered
            if entered is None or (found is not None and entered.max_timestamp_ms < found.max_timestamp_ms):
                continue
            if entered.append_time_ms < 0:
                latest = _shifted(self._journal.find_latest(*piece.own), entered, -1)
            else:
                latest = self._first_from(piece, entered, 0)
            if latest is not None and (found is None or _is_later(latest, found)):
                found = latest
        return found

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.count_records`."""
        count = self._journal.count_records(stream, offset, end_offset)
        for piece in self._entered_pieces(offset, end_offset, self._entered(stream)):
            # A staged batch has one record for each of its offsets.
            count += piece.end - piece.offset if piece.is_whole else self._journal.count_records(*piece.own)
        return count

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.size_bytes`."""
        size = self._journal.size_bytes(stream, offset, end_offset)
        for piece in self._entered_pieces(offset, end_offset, self._entered(stream)):
            size += self._size(piece)
        return size

    def _size(self, piece: _Piece) -> int:
        if piece.entered is not None and piece.is_whole:
            return piece.entered.size
        return self._journal.size_bytes(*piece.own)

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """See `JournalReader.offset_after`."""
        entered = self._entered(stream)
        if not entered:
            return self._journal.offset_after(stream, offset, end_offset, size_bytes)
        after = offset
        for piece in self._pieces(stream, offset, end_offset, entered):
            size = self._size(piece)
            if size > size_bytes:
                found = self._journal.offset_after(*piece.own, size_bytes)
                return after if found <= piece.own[1] else found + piece.shift
            size_bytes -= size
            if size:
                after = self._last_end(piece)
        return after

    def _last_end(self, piece: _Piece) -> int:
        """Return the offset after the last whole batch of a piece, all of which is wanted."""
        found = self._journal.offset_after(*piece.own, 1 << 62)
        return found + piece.shift

    # --- reads --------------------------------------------------------------------------------------------------------

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `JournalReader.read_cached`."""
        return self._journal.read_cached([_own(extent) for extent in extents])

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """See `JournalReader.read`."""
        self._journal.read([_own(extent) for extent in extents], done)


def _overlapping(entered: Sequence[EnteredStream], offset: int, end_offset: int) -> Iterator[EnteredStream]:
    place = bisect_right(entered, offset, key=lambda each: each.end_offset)
    while place < len(entered) and entered[place].first_offset < end_offset:
        yield entered[place]
        place += 1


def _own(extent: Extent) -> Extent:
    return extent.place.extent if isinstance(extent.place, Moved) else extent


def _moved(extent: Extent, entered: EnteredStream) -> Extent:
    by = entered.first_offset
    return Extent(
        [first + by for first in extent.first_offsets],
        [last + by for last in extent.last_offsets],
        extent.size,
        Moved(extent, entered.append_time_ms),
    )


def _shifted(found: TimeEntry | None, entered: EnteredStream, append_time_ms: int) -> TimeEntry | None:
    if found is None:
        return None
    by, time_ms = entered.first_offset, found.max_timestamp_ms if append_time_ms < 0 else append_time_ms
    return TimeEntry(found.first_offset + by, found.last_offset + by, time_ms)


def _is_later(one: TimeEntry, other: TimeEntry) -> bool:
    """Return whether one has the later timestamp, or the same one at an earlier offset."""
    return (one.max_timestamp_ms, -one.first_offset) > (other.max_timestamp_ms, -other.first_offset)
