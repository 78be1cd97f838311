"""Where the batches of a stream lie within one segment: columns of numbers, searched by bisection.

Owns the columns, what can be asked of one segment's, and what is known of a segment while it is open. Owns no look-up
over several segments (see `index`), no bytes on disk (see `sidecar`), and no file handle: a segment carries its own.

Theory of operation. Each batch is a row of seven columns; the rows of one stream follow one another in order of offset.
In the segment that is written to, each stream has columns of its own, arrays that grow when a group is taken in. When
the segment is sealed, a sidecar takes their place: one file with the columns of all streams, mapped, so that what is
kept in memory does not grow with what is kept on disk. Three columns hold running values of their stream, which turns
nearly every question into a bisection:

- `ends`: bytes of all batches up to and with this one; a size is the difference of two, a limit of bytes a bisection;
- `record_counts`: records of all batches up to and with this one;
- `max_timestamps`: the largest timestamp so far. The first row that reaches a time is the first batch that has one as
  late, since the running value can only have risen there by the row's own. Only who begins to look behind rows that
  are later than what follows (their records are deleted) must go by the rows' own `timestamps`.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SEGMENT_HEADER_BYTES, SEGMENT_SUFFIX, SIDECAR_SUFFIX, SegmentId
from exacta.ports.journal import IndexEntry, TimeEntry

Column: TypeAlias = "array[int] | memoryview"  # of signed 64-bit numbers
COLUMN_COUNT = 7


class Rows:
    """The batches of one stream in one segment: the rows from `low` to `high` (exclusive) of these columns."""

    __slots__ = (
        "ends",
        "first_offsets",
        "high",
        "last_offsets",
        "low",
        "max_timestamps",
        "positions",
        "record_counts",
        "segment",
        "timestamps",
    )

    def __init__(self, segment: "Segment", columns: Sequence[Column], low: int, high: int) -> None:
        self.segment = segment
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

    def columns(self) -> Sequence[Column]:
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

    def at(self, offset: int) -> int:
        """Return the first row whose last offset is `offset` or later."""
        return bisect_left(self.last_offsets, offset, self.low, self.high)

    def end_before(self, row: int) -> int:
        """Return the bytes of all batches before `row`."""
        return self.ends[row - 1] if row > self.low else 0

    def records_before(self, row: int) -> int:
        """Return the records of all batches before `row`."""
        return self.record_counts[row - 1] if row > self.low else 0

    def size_from(self, offset: int) -> int:
        """Return the bytes of the batches that `offset` leaves: those whose last offset is as late."""
        return self.end_before(self.high) - self.end_before(self.at(offset))

    def time_entry(self, row: int) -> TimeEntry:
        """Return what `find_by_time` says of this row."""
        return TimeEntry(self.first_offsets[row], self.last_offsets[row], self.timestamps[row])


class Sidecar(NamedTuple):
    """The columns of a sealed segment, all streams one after another, in order of their ids.

    `row_ends` has for each stream where its rows end; each has at least one.
    """

    mark: bytes
    end: int
    last_checksum: int
    streams: Column
    row_ends: Column
    columns: Sequence[Column]

    def number(self, stream: int) -> int | None:
        """Return which of the streams this is; None: it is not here."""
        number = bisect_left(self.streams, stream)
        return number if number < len(self.streams) and self.streams[number] == stream else None

    def bounds(self, number: int) -> tuple[int, int]:
        """Return where the rows of this stream begin and end."""
        return self.row_ends[number - 1] if number else 0, self.row_ends[number]


class Segment:
    """A segment file as readers know it.

    `growing` has the rows of a segment that is written to, until there is a `sidecar`. `generation` says how often it
    has been cleaned. `handle`, when one is open, and `readers`, the number of reads under way on a thread, belong to
    `reading.Reader`.
    """

    __slots__ = ("base", "generation", "growing", "handle", "is_compacted", "readers", "sidecar", "size")

    def __init__(self, base: int, generation: int = 0, is_compacted: bool = False) -> None:
        self.base = base
        self.generation = generation
        self.is_compacted = is_compacted
        self.growing: dict[int, Rows] = {}
        self.sidecar: Sidecar | None = None
        self.size = 0
        """Of the file, in bytes, once it is sealed."""
        self.handle: int | None = None
        self.readers = 0

    @property
    def id(self) -> SegmentId:
        """What its files' names say."""
        return SegmentId(self.base, self.generation, self.is_compacted)

    @property
    def name(self) -> str:
        """The name of the segment's file."""
        return self.id.name(SEGMENT_SUFFIX)

    @property
    def sidecar_name(self) -> str:
        """The name of the segment's sidecar, which exists once it is sealed."""
        return self.id.name(SIDECAR_SUFFIX)

    def file_offset(self, position: int) -> int:
        """Return where in the file the journal's `position` lies."""
        return position - self.base + SEGMENT_HEADER_BYTES

    @property
    def streams(self) -> Iterable[int]:
        """The streams that have rows in this segment."""
        return self.growing if self.sidecar is None else self.sidecar.streams

    def rows(self, stream: int) -> Rows | None:
        """Return the stream's rows; None if it has none here."""
        sidecar = self.sidecar
        if sidecar is None:
            return self.growing.get(stream)
        number = sidecar.number(stream)
        if number is None:
            return None
        return Rows(self, sidecar.columns, *sidecar.bounds(number))

    def last_offset(self, stream: int) -> int:
        """Return the last offset that a stream has here, which has rows."""
        rows = self.rows(stream)
        assert rows is not None
        return rows.last_offsets[rows.high - 1]

    def size_from(self, stream: int, offset: int) -> int:
        """Return the bytes of the stream's batches that `offset` leaves here; 0 if it has none."""
        rows = self.rows(stream)
        return 0 if rows is None else rows.size_from(offset)

    def release(self, files: Files) -> None:
        """Give back the memory that look-ups in the sidecar have taken."""
        if self.sidecar is not None and isinstance(self.sidecar.streams, memoryview):
            files.release_mapped(self.sidecar.streams)

    def seal(self, sidecar: Sidecar) -> None:
        """Look up in the sidecar from now on; rows that an extent names stay as they are."""
        self.sidecar = sidecar
        self.growing = {}

    def add(self, payload_position: int, entry: IndexEntry) -> bool:
        """Add a row for a batch of the entry whose payload begins there; return whether it is its stream's first."""
        stream, first_offset, last_offset, max_timestamp_ms, start, size, record_count = entry
        rows = self.growing.get(stream)
        is_first = rows is None
        if rows is None:
            rows = self.growing[stream] = Rows(self, [array("q") for _ in range(COLUMN_COUNT)], 0, 0)
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
    """What an extent of the local journal refers to: rows `low` to `high` (exclusive)."""

    rows: Rows
    low: int
    high: int
