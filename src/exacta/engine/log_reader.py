"""The partitions' logs as readers find them: each partition's own stream, and the streams that have entered it.

What a large transaction has written to a sidecar topic lies in a stream of the journal's own, and has entered the
partition in place (`core.log.staging`, decision 0041). This is a `JournalReader` in which a partition is one stream all
the same. Owns how the pieces are put together. Owns neither the batches nor how they are found (the journal).

Theory of operation. A partition has pieces: runs of its own stream, and entered streams between them, in the order of
their offsets. A question is put to each piece that it concerns, in the piece's own numbers, and the answers are moved.
The bytes of an entered batch are as they were staged. Their reader sees to it that they say where the batch is
now (`Moved`). Compaction writes what it leaves of an entered stream into the partition's own. So entered streams are
passed over below the offset to which the partition is compacted.

A partition may have tens of thousands of entered streams that are tiny: where the state has no room left, each small
transaction spills. So the journal is asked about as few of them as can be, and the others are only added up.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from exacta.core.ids import PartitionId
from exacta.core.state.partition import Partition
from exacta.core.state.staged import BEGINS, ENDS, EnteredStream
from exacta.ports.journal import Buffer, Extent, Failed, JournalReader, TimeEntry

MOST_BYTES = 256 << 10
MOST_BATCHES = 1_000
"""The size, and the number, of batches that are read for a subscription at once; one batch may be larger."""

MOST_PIECES = 1_000
"""The number of pieces that one `find` goes through, if it has found something. Each costs some microseconds."""


class _Piece(NamedTuple):
    """A run of offsets, and the stream in which they lie at these offsets less `shift`. `end` is exclusive."""

    stream: int
    shift: int
    offset: int
    end: int
    entered: EnteredStream | None

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

    def _entered_from(self, stream: int, offset: int, end_offset: int) -> tuple[int, Iterator[EnteredStream]]:
        """Return the entered streams that have offsets from `offset` to `end_offset`, and where the first begins."""
        entered = self._entered(stream)
        if entered:
            offset = max(offset, self._journal.compacted_to(stream))
        return offset, _overlapping(entered, offset, end_offset)

    def _pieces(self, stream: int, offset: int, end_offset: int, entered: Sequence[EnteredStream]) -> Iterator[_Piece]:
        """Yield the pieces from `offset` to `end_offset`, in order."""
        compacted_to = self._journal.compacted_to(stream)
        for each in _overlapping(entered, max(offset, compacted_to), end_offset):
            begin = max(each.first_offset, compacted_to)
            if offset < begin:
                yield _Piece(stream, 0, offset, begin, None)
            yield _piece_of(each, max(offset, begin), end_offset)
            offset = each.end_offset
        if offset < end_offset:
            yield _Piece(stream, 0, offset, end_offset, None)

    # --- look-ups -----------------------------------------------------------------------------------------------------

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `JournalReader.find`."""
        entered = self._entered(stream)
        if not entered:
            return self._journal.find(stream, offset, end_offset, max_bytes)
        found: list[Extent] = []
        room = max_bytes
        for number, piece in enumerate(self._pieces(stream, offset, end_offset, entered)):
            if found and (room <= 0 or number >= MOST_PIECES):
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
        begin, entered = self._entered_from(stream, offset, end_offset)
        for each in entered:
            if found is not None and found.first_offset < each.first_offset:
                break
            if each.max_timestamp_ms < timestamp_ms:
                continue
            first = self._first_from(_piece_of(each, begin, end_offset), each, timestamp_ms)
            if first is not None:
                return first
        return found

    def _first_from(self, piece: _Piece, entered: EnteredStream, timestamp_ms: int) -> TimeEntry | None:
        if timestamp_ms > entered.append_time_ms:  # a batch that has its producer's timestamps, or none
            return _shifted(self._journal.find_by_time(piece.stream, timestamp_ms, *piece.own[1:]), entered, -1)
        first = self._journal.find_by_time(piece.stream, -1, *piece.own[1:])
        return _shifted(first, entered, entered.append_time_ms)

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_latest`."""
        found = self._journal.find_latest(stream, offset, end_offset)
        begin, entered = self._entered_from(stream, offset, end_offset)
        for each in sorted(entered, key=_latest_first):
            if found is not None and _latest_first(each) > (-found.max_timestamp_ms, found.first_offset):
                break  # neither this one nor those that follow have a later batch, or as late a one before it
            piece = _piece_of(each, begin, end_offset)
            if each.append_time_ms < 0 or each.max_timestamp_ms > each.append_time_ms:
                latest = _shifted(self._journal.find_latest(*piece.own), each, -1)
            else:
                latest = self._first_from(piece, each, 0)
            if latest is not None and (found is None or _is_later(latest, found)):
                found = latest
        return found

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.count_records`."""
        count = self._journal.count_records(stream, offset, end_offset)
        begin, entered = self._entered_from(stream, offset, end_offset)
        for each in entered:
            if begin <= each.first_offset and each.end_offset <= end_offset:
                count += each.end_offset - each.first_offset  # a staged batch has one record for each of its offsets
            else:
                count += self._journal.count_records(*_piece_of(each, begin, end_offset).own)
        return count

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.size_bytes`."""
        size = self._journal.size_bytes(stream, offset, end_offset)
        begin, entered = self._entered_from(stream, offset, end_offset)
        for each in entered:
            size += self._entered_size(each, begin, end_offset)
        return size

    def _entered_size(self, entered: EnteredStream, offset: int, end_offset: int) -> int:
        if offset <= entered.first_offset and entered.end_offset <= end_offset:
            return entered.size
        return self._journal.size_bytes(*_piece_of(entered, offset, end_offset).own)

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """See `JournalReader.offset_after`."""
        entered = self._entered(stream)
        if not entered:
            return self._journal.offset_after(stream, offset, end_offset, size_bytes)
        after = offset
        for piece in self._pieces(stream, offset, end_offset, entered):
            if piece.entered is None:
                size = self._journal.size_bytes(*piece.own)
            else:
                size = self._entered_size(piece.entered, piece.offset, piece.end)
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
    begin = bisect_right(entered, offset, key=ENDS)
    return map(entered.__getitem__, range(begin, bisect_left(entered, end_offset, key=BEGINS)))


def _latest_first(entered: EnteredStream) -> tuple[int, int]:
    return -entered.max_timestamp_ms, entered.first_offset


def _piece_of(entered: EnteredStream, offset: int, end_offset: int) -> _Piece:
    begin, end = max(offset, entered.first_offset), min(end_offset, entered.end_offset)
    return _Piece(entered.stream, entered.first_offset, begin, end, entered)


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


def find_few(journal: JournalReader, stream: int, offset: int, end_offset: int) -> list[Extent]:
    """Find the next batches for a subscription, hardly more than `MOST_BATCHES`: each becomes a message by itself."""
    extents = journal.find(stream, offset, end_offset, MOST_BYTES)
    count = sum(len(each.first_offsets) for each in extents)
    if count <= MOST_BATCHES:
        return extents
    return journal.find(stream, offset, end_offset, sum(each.size for each in extents) * MOST_BATCHES // count)
