"""Rows of one segment: columns of numbers that say where each stream's batches lie, searched by bisection.

This module has the columns, the questions that one segment's columns answer, and what is known of a segment while it is
open. Look-ups over several segments are in `stream_index`, the bytes on disk in `segment_index`. File handles are
opened and closed elsewhere; a segment only carries its own.

Theory of operation. Each batch is a row of seven columns; the rows of one stream follow one another in order of offset.
In the segment that is written to, each stream has columns of its own, arrays that grow when a group is taken in. When
the segment is sealed, a *segment index* takes their place: one file with the columns of all streams. It is mapped into
memory, so that the memory used does not grow with what is kept on disk. Three columns hold running values of their
stream, which turns nearly every question into a bisection:

- `ends`: bytes of all batches up to and with this one; a size is the difference of two, a limit of bytes a bisection;
- `record_counts`: records of all batches up to and with this one;
- `max_timestamps`: the largest timestamp so far. The first row that reaches a time is the first batch that has one as
  late, since the running value can only have risen there by the row's own. A look-up that begins behind rows with later
  timestamps (their records are deleted) must go by the rows' own `timestamps`.

A segment index is checked when it is opened, and its pages are read from the disk again later, maybe after years. So it
has a checksum for each block of its numbers, and every look-up checks the blocks that its answer rests on. Other blocks
may lead a bisection astray. The row that it found is right all the same if it has what was looked for, and the row
before has not: both rows are checked after every bisection, also after one that only bounds another.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from crc32c import crc32c

from exacta.adapters.local.files import Files
from exacta.adapters.local.format import INDEX_SUFFIX, SEGMENT_HEADER_BYTES, SEGMENT_SUFFIX, SegmentId
from exacta.ports.journal import IndexEntry, JournalDamaged, TimeEntry

Numbers: TypeAlias = "array[int] | memoryview"  # of signed 64-bit numbers
NUMBER_BYTES: Final = 8
BLOCK_NUMBERS: Final = 128
"""The number of a segment index's numbers that have one checksum together."""


class Column(IntEnum):
    """The columns, in their order on disk."""

    FIRST_OFFSETS = 0
    LAST_OFFSETS = 1
    MAX_TIMESTAMPS = 2
    TIMESTAMPS = 3
    POSITIONS = 4
    ENDS = 5
    RECORD_COUNTS = 6


COLUMN_COUNT = len(Column)


class DamagedIndex(JournalDamaged):
    """A segment index is altered. The next opening makes it again: nothing is lost."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"{self.name} is damaged: start again, and it is made again from its segment"


class Rows:
    """Hold the batches of one stream in one segment: the rows from `low` to `high` (exclusive) of these columns."""

    __slots__ = (
        "ends",
        "first_offsets",
        "high",
        "index",
        "last_offsets",
        "low",
        "max_timestamps",
        "positions",
        "record_counts",
        "segment",
        "stream",
        "timestamps",
    )

    def __init__(
        self,
        segment: "Segment",
        stream: int,
        columns: Sequence[Numbers],
        low: int,
        high: int,
        segment_index: "SegmentIndex | None" = None,
    ) -> None:
        self.segment = segment
        self.stream = stream
        self.index = segment_index
        (
            self.first_offsets,
            self.last_offsets,
            self.max_timestamps,
            self.timestamps,
            self.positions,
            self.ends,
            self.record_counts,
        ) = columns
        self.low = low
        self.high = high

    def columns(self) -> Sequence[Numbers]:
        """Return the columns in their order on disk."""
        return (
            self.first_offsets,
            self.last_offsets,
            self.max_timestamps,
            self.timestamps,
            self.positions,
            self.ends,
            self.record_counts,
        )

    def check(self, low: int, high: int, *columns: Column) -> None:
        """Raise DamagedIndex if the rows `low` to `high` (exclusive) are altered in these columns."""
        if self.index is not None:
            self.index.check_rows(max(low, self.low), min(high, self.high), columns)

    def check_found(self, row: int, *columns: Column) -> None:
        """Check a row that a bisection has found, and the one before it."""
        self.check(row - 1, row + 1, *columns)

    def at(self, offset: int, low: int = 0) -> int:
        """Return the first row, not before `low`, whose last offset is `offset` or later, unchecked."""
        return bisect_left(self.last_offsets, offset, max(low, self.low), self.high)

    @property
    def last_offset(self) -> int:
        """The last offset that the stream has here. Raises DamagedIndex."""
        self.check(self.high - 1, self.high, Column.LAST_OFFSETS)
        return self.last_offsets[self.high - 1]

    def end_before(self, row: int) -> int:
        """Return the bytes of all batches before `row`."""
        return self.ends[row - 1] if row > self.low else 0

    def records_before(self, row: int) -> int:
        """Return the records of all batches before `row`."""
        return self.record_counts[row - 1] if row > self.low else 0

    def size_from(self, offset: int) -> int:
        """Return the bytes of the batches whose last offset is `offset` or later.

        Raises DamagedIndex.
        """
        row = self.at(offset)
        self.check_found(row, Column.LAST_OFFSETS, Column.ENDS)
        self.check(self.high - 1, self.high, Column.ENDS)
        return self.end_before(self.high) - self.end_before(row)

    def time_entry(self, row: int) -> TimeEntry:
        """Return what `find_by_time` says of this row."""
        return TimeEntry(self.first_offsets[row], self.last_offsets[row], self.timestamps[row])


class SegmentIndex(NamedTuple):
    """Hold the columns of a sealed segment, all streams one after another, in order of their ids.

    `row_ends` has for each stream where its rows end; each has at least one. `content` are the bytes of all these
    numbers, one column after another, and `checksums` those of its blocks.
    """

    name: str
    end: int
    last_checksum: int
    streams: Numbers
    row_ends: Numbers
    columns: Sequence[Numbers]
    content: memoryview
    checksums: memoryview

    def find(self, stream: int) -> tuple[int, int] | None:
        """Return where the rows of this stream begin and end; None: it is not here. Raises DamagedIndex."""
        count = len(self.streams)
        number = bisect_left(self.streams, stream)
        low, high = max(number - 1, 0), min(number + 1, count)
        self._check(low, high)
        if number == count or self.streams[number] != stream:
            return None
        self._check(count + low, count + high)
        return self.row_ends[number - 1] if number else 0, self.row_ends[number]

    def check_streams(self) -> None:
        """Raise DamagedIndex if the list of streams is altered."""
        self._check(0, len(self.streams))

    def check_rows(self, low: int, high: int, columns: Iterable[Column]) -> None:
        """Raise DamagedIndex if these rows (`high` is exclusive) are altered in these columns."""
        begin, row_count = 2 * len(self.streams), len(self.columns[0])
        for column in columns:
            at = begin + column * row_count
            self._check(at + low, at + high)

    def _check(self, low: int, high: int) -> None:
        size = BLOCK_NUMBERS * NUMBER_BYTES
        for block in range(low // BLOCK_NUMBERS, -(-high // BLOCK_NUMBERS)):
            if crc32c(self.content[block * size : (block + 1) * size]) != self.checksums[block]:
                raise DamagedIndex(self.name)


class Segment:
    """Describe a segment file as readers know it.

    `growing` has the rows of a segment that is written to, until there is an `index`. `generation` says how often it
    has been cleaned. `handle`, when one is open, and `readers`, the number of jobs on threads that need it, belong to
    `reading.Reader`.
    """

    __slots__ = ("base", "generation", "growing", "handle", "index", "is_compacted", "readers", "size")

    def __init__(self, base: int, generation: int = 0, is_compacted: bool = False) -> None:
        self.base = base
        self.generation = generation
        self.is_compacted = is_compacted
        self.growing: dict[int, Rows] = {}
        self.index: SegmentIndex | None = None
        self.size = 0
        """The size of the file in bytes, once the segment is sealed."""
        self.handle: int | None = None
        self.readers = 0

    @property
    def id(self) -> SegmentId:
        """The id from which the names of its files are made."""
        return SegmentId(self.base, self.generation, self.is_compacted)

    @property
    def name(self) -> str:
        """The name of the segment's file."""
        return self.id.name(SEGMENT_SUFFIX)

    @property
    def index_name(self) -> str:
        """The name of the file of the segment index, which exists once the segment is sealed."""
        return self.id.name(INDEX_SUFFIX)

    def file_offset(self, position: int) -> int:
        """Return where in the file the journal's `position` lies."""
        return position - self.base + SEGMENT_HEADER_BYTES

    @property
    def streams(self) -> Iterable[int]:
        """The streams that have rows in this segment. Raises DamagedIndex."""
        if self.index is None:
            return self.growing
        self.index.check_streams()
        return self.index.streams

    def rows(self, stream: int) -> Rows | None:
        """Return the stream's rows; None if it has none here. Raises DamagedIndex."""
        segment_index = self.index
        if segment_index is None:
            return self.growing.get(stream)
        bounds = segment_index.find(stream)
        return None if bounds is None else Rows(self, stream, segment_index.columns, *bounds, segment_index)

    def last_offset(self, stream: int) -> int:
        """Return the last offset here of a stream that has rows here. Raises DamagedIndex."""
        rows = self.rows(stream)
        assert rows is not None
        return rows.last_offset

    def size_from(self, stream: int, offset: int) -> int:
        """Return the bytes of the stream's batches here whose last offset is `offset` or later. Raises DamagedIndex."""
        rows = self.rows(stream)
        return 0 if rows is None else rows.size_from(offset)

    def release(self, files: Files) -> None:
        """Give back the memory that look-ups in the segment index have taken."""
        if self.index is not None and isinstance(self.index.streams, memoryview):
            files.release_mapped(self.index.streams)

    def seal(self, segment_index: SegmentIndex) -> None:
        """Look up in the segment index from now on; rows that an extent names stay as they are."""
        self.index = segment_index
        self.growing = {}

    def add(self, payload_position: int, entry: IndexEntry) -> bool:
        """Add a row for a batch of the entry whose payload begins there; return whether the stream had none before."""
        stream, first_offset, last_offset, max_timestamp_ms, start, size, record_count = entry
        rows = self.growing.get(stream)
        is_first = rows is None
        if rows is None:
            rows = self.growing[stream] = Rows(self, stream, [array("q") for _ in range(COLUMN_COUNT)], 0, 0)
            end = size
            latest = max_timestamp_ms
        else:
            end = rows.ends[-1] + size
            record_count += rows.record_counts[-1]
            latest = rows.max_timestamps[-1]
            if latest < max_timestamp_ms:
                latest = max_timestamp_ms
        # The columns of what still grows are arrays.
        rows.first_offsets.append(first_offset)  # type: ignore[union-attr]
        rows.last_offsets.append(last_offset)  # type: ignore[union-attr]
        rows.max_timestamps.append(latest)  # type: ignore[union-attr]
        rows.timestamps.append(max_timestamp_ms)  # type: ignore[union-attr]
        rows.positions.append(payload_position + start)  # type: ignore[union-attr]
        rows.ends.append(end)  # type: ignore[union-attr]
        rows.record_counts.append(record_count)  # type: ignore[union-attr]
        rows.high += 1
        return is_first


class Place(NamedTuple):
    """Name the rows, `low` to `high` (exclusive), that an extent of the local journal refers to."""

    rows: Rows
    low: int
    high: int
