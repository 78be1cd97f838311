"""Where the batches of a stream lie: columns of numbers, in memory or mapped from a sidecar, searched by bisection.

Owns the columns, the look-ups over all segments, and the sidecar's bytes. Owns no file handle: a segment carries its
own.

Theory of operation. A segment has, for each stream in it, seven columns with one row for each batch, in order of
offset. Rows of the active segment are added when their group is durable. When the segment is sealed, the columns are
written to a sidecar as they are, and the mapped file takes the place of the arrays. Three columns hold running values,
which turns nearly every question into a bisection:

- `ends`: bytes of all batches up to and with this one; a size is the difference of two, a limit of bytes a bisection;
- `record_counts`: records of all batches up to and with this one;
- `max_timestamps`: the largest timestamp so far. The first row that reaches a time is the first batch that has one as
  late, since the running value can only have risen there by the row's own. Only who begins to look behind rows that
  are later than what follows (their records are deleted) must go by the rows' own `timestamps`.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from exacta.adapters.local.format import SEGMENT_HEADER_BYTES, SEGMENT_SUFFIX, SIDECAR_SUFFIX, VERSION, file_name
from exacta.ports.journal import Buffer, Extent, IndexEntry, TimeEntry

Column: TypeAlias = "array[int] | memoryview"  # of signed 64-bit numbers


class StreamRows:
    """The batches of one stream in one segment."""

    __slots__ = (
        "ends",
        "first_offsets",
        "last_offsets",
        "max_timestamps",
        "positions",
        "record_counts",
        "segment",
        "timestamps",
    )

    first_offsets: Column
    last_offsets: Column
    max_timestamps: Column
    timestamps: Column
    positions: Column
    ends: Column
    record_counts: Column

    def __init__(self, segment: "Segment", columns: Sequence[Column] | None = None) -> None:
        self.segment = segment
        self.replace_columns(columns or [array("q") for _ in range(COLUMN_COUNT)])

    def replace_columns(self, columns: Sequence[Column]) -> None:
        """Use these columns, which hold the same numbers: rows that an extent names stay where they are."""
        (
            self.first_offsets,
            self.last_offsets,
            self.max_timestamps,
            self.timestamps,
            self.positions,
            self.ends,
            self.record_counts,
        ) = columns

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

    def end_before(self, row: int) -> int:
        """Return the bytes of all batches before `row`."""
        return self.ends[row - 1] if row else 0


COLUMN_COUNT = 7


class Segment:
    """A segment file as readers know it: its base, its rows, and a handle when one is open.

    `handle` and `readers`, the number of reads under way on a thread, belong to `reading.Reader`.
    """

    __slots__ = ("base", "handle", "readers", "streams")

    def __init__(self, base: int) -> None:
        self.base = base
        self.streams: dict[int, StreamRows] = {}
        self.handle: int | None = None
        self.readers = 0

    @property
    def name(self) -> str:
        """The name of the segment's file."""
        return file_name(self.base, SEGMENT_SUFFIX)

    @property
    def sidecar_name(self) -> str:
        """The name of the segment's sidecar, which exists once it is sealed."""
        return file_name(self.base, SIDECAR_SUFFIX)

    def file_offset(self, position: int) -> int:
        """Return where in the file the journal's `position` lies."""
        return position - self.base + SEGMENT_HEADER_BYTES


class Place(NamedTuple):
    """What an extent of the local journal refers to: rows `low` to `high` (exclusive)."""

    rows: StreamRows
    low: int
    high: int


class Index:
    """All rows of all segments, by stream. The segment added last is the active one."""

    def __init__(self) -> None:
        self._streams: dict[int, list[StreamRows]] = {}
        self._active: Segment | None = None

    def add_segment(self, segment: Segment) -> None:
        """Take in a segment, after all those with smaller bases, with the rows that it has already."""
        self._active = segment
        for stream, rows in segment.streams.items():
            self._streams.setdefault(stream, []).append(rows)

    def last_offset(self, stream: int) -> int:
        """Return the last offset of the stream, -1 if it has none."""
        pieces = self._streams.get(stream)
        return pieces[-1].last_offsets[-1] if pieces else -1

    def add(self, payload_position: int, index: Iterable[IndexEntry]) -> None:
        """Add the rows of one entry of the active segment, whose payload begins at `payload_position`."""
        segment = self._active
        assert segment is not None
        for stream, first_offset, last_offset, max_timestamp_ms, start, size, record_count in index:
            rows = segment.streams.get(stream)
            if rows is None:
                rows = segment.streams[stream] = StreamRows(segment)
                self._streams.setdefault(stream, []).append(rows)
                end = size
                latest = max_timestamp_ms
            else:
                end = rows.ends[-1] + size
                record_count += rows.record_counts[-1]
                latest = rows.max_timestamps[-1]
                if latest < max_timestamp_ms:
                    latest = max_timestamp_ms
            # The active segment's columns are arrays; only sealed ones are mapped.
            rows.first_offsets.append(first_offset)  # type: ignore[union-attr]
            rows.last_offsets.append(last_offset)  # type: ignore[union-attr]
            rows.max_timestamps.append(latest)  # type: ignore[union-attr]
            rows.timestamps.append(max_timestamp_ms)  # type: ignore[union-attr]
            rows.positions.append(payload_position + start)  # type: ignore[union-attr]
            rows.ends.append(end)  # type: ignore[union-attr]
            rows.record_counts.append(record_count)  # type: ignore[union-attr]

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `Journal.find`: one extent for each segment that has a part of the range."""
        pieces = self._streams.get(stream)
        if pieces is None:
            return []
        extents: list[Extent] = []
        room_bytes = max_bytes
        for piece in range(bisect_left(pieces, offset, key=_last_offset), len(pieces)):
            rows = pieces[piece]
            low = bisect_left(rows.last_offsets, offset)
            end_row = bisect_left(rows.last_offsets, end_offset, low)
            before = rows.end_before(low)
            high = bisect_right(rows.ends, before + room_bytes, low, end_row)
            if high == low and not extents and end_row > low:
                high = low + 1  # a batch larger than the limit must get through, or its reader stands still for ever
            if high == low:
                break
            size = rows.ends[high - 1] - before
            extents.append(Extent(rows.first_offsets[low], rows.last_offsets[high - 1], size, Place(rows, low, high)))
            room_bytes -= size
            if high < len(rows.ends):
                break
        return extents

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `Journal.find_by_time`."""
        for rows in self._streams.get(stream, ()):
            if rows.max_timestamps[-1] < timestamp_ms:
                continue
            low = bisect_left(rows.last_offsets, offset)
            row = bisect_left(rows.max_timestamps, timestamp_ms, low)
            if row == low > 0 and rows.max_timestamps[low - 1] >= timestamp_ms:
                # The running value was as late before: it tells nothing until it rises.
                row_count = len(rows.timestamps)
                while row < row_count and rows.timestamps[row] < timestamp_ms:
                    row += 1
                if row == row_count:
                    continue
            return _time_entry(rows, row) if rows.last_offsets[row] < end_offset else None
        return None

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `Journal.find_latest`."""
        latest: TimeEntry | None = None
        for rows in self._streams.get(stream, ()):
            low = bisect_left(rows.last_offsets, offset)
            end_row = bisect_left(rows.last_offsets, end_offset, low)
            if low == end_row:
                continue
            if low == 0:
                row = bisect_left(rows.max_timestamps, rows.max_timestamps[end_row - 1])
            else:
                highest_ms = max(rows.timestamps[low:end_row])
                row = next(row for row in range(low, end_row) if rows.timestamps[row] == highest_ms)
            if latest is None or rows.timestamps[row] > latest.max_timestamp_ms:
                latest = _time_entry(rows, row)
        return latest

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `Journal.count_records`."""
        pieces = self._streams.get(stream)
        if pieces is None:
            return 0
        total = 0
        for rows in pieces[bisect_left(pieces, offset, key=_last_offset) :]:
            low = bisect_left(rows.last_offsets, offset)
            high = bisect_left(rows.last_offsets, end_offset, low)
            if high == low:
                break
            before = rows.record_counts[low - 1] if low else 0
            first = rows.record_counts[low] - before
            left = rows.last_offsets[low] - max(offset, rows.first_offsets[low]) + 1
            total += rows.record_counts[high - 1] - before - first + min(first, left)
        return total

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `Journal.size_bytes`."""
        size = 0
        for rows in self._streams.get(stream, ()):
            low = bisect_left(rows.last_offsets, offset)
            end_row = bisect_left(rows.last_offsets, end_offset, low)
            size += rows.end_before(end_row) - rows.end_before(low)
        return size


def _time_entry(rows: StreamRows, row: int) -> TimeEntry:
    return TimeEntry(rows.first_offsets[row], rows.last_offsets[row], rows.timestamps[row])


def _last_offset(rows: StreamRows) -> int:
    return rows.last_offsets[-1]


# magic, version, checksum of all that follows it, mark and end of the segment, checksum of its last group, streams
_SIDECAR = Struct("=8sII8sQII")
# In the machine's own byte order, as the columns are: another machine's magic is wrong, and the sidecar made anew.
_SIDECAR_MAGIC = (0x4558414354412D4B).to_bytes(8, "little")
_SIDECAR_CHECKED_FROM = 16
_ITEM_BYTES = 8


class Sidecar(NamedTuple):
    """What a sidecar tells: the extent of its segment, the last group's checksum, and the columns of each stream."""

    end: int
    last_checksum: int
    streams: dict[int, Sequence[Column]]


def pack_sidecar(streams: dict[int, StreamRows], mark: bytes, end: int, last_checksum: int) -> list[Buffer]:
    """Return the buffers of the sidecar of the segment with this mark."""
    directory = array("q")
    columns: list[Buffer] = []
    for stream, rows in streams.items():
        directory.extend((stream, len(rows.ends)))
        columns.extend(memoryview(column).cast("B") for column in rows.columns())
    buffers: list[Buffer] = [memoryview(directory).cast("B"), *columns]

    def header(checksum: int) -> bytes:
        return _SIDECAR.pack(_SIDECAR_MAGIC, VERSION, checksum, mark, end, last_checksum, len(streams))

    checksum = crc32c(header(0)[_SIDECAR_CHECKED_FROM:])
    for buffer in buffers:
        checksum = crc32c(buffer, checksum)
    return [header(checksum), *buffers]


def unpack_sidecar(data: memoryview, mark: bytes) -> Sidecar | None:
    """Return what the sidecar says, its columns as views of `data`; None if it is damaged or of another segment."""
    if len(data) < _SIDECAR.size or len(data) % _ITEM_BYTES:
        return None
    magic, version, checksum, found_mark, end, last_checksum, stream_count = _SIDECAR.unpack_from(data)
    if (magic, version, found_mark) != (_SIDECAR_MAGIC, VERSION, mark):
        return None
    if crc32c(data[_SIDECAR_CHECKED_FROM:]) != checksum:
        return None
    numbers = data[_SIDECAR.size :].cast("q")
    at = 2 * stream_count
    streams: dict[int, Sequence[Column]] = {}
    for stream, row_count in zip(numbers[0:at:2], numbers[1:at:2], strict=True):
        streams[stream] = [numbers[at + k * row_count : at + (k + 1) * row_count] for k in range(COLUMN_COUNT)]
        at += COLUMN_COUNT * row_count
    return Sidecar(end, last_checksum, streams)
