"""The reading half of the journal in memory: look-ups, written as plainly as the contract reads."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from exacta.adapters.memory.storage import MemoryStorage, StoredGroup
from exacta.ports.journal import Buffer, Extent, Failed, IndexEntry, TimeEntry


class MemoryJournalReader:
    """Implement what `exacta.ports.journal.JournalReader` finds and reads; `MemoryJournal` closes it."""

    def __init__(self, storage: MemoryStorage, call_soon: Callable[..., object]) -> None:
        self._storage = storage
        self._call_soon = call_soon
        self._position = storage.position
        self._batches: dict[int, list[tuple[IndexEntry, bytes]]] = {}
        self._publish_all()

    @property
    def position(self) -> int:
        """See `JournalReader.position`."""
        return self._position

    def on_failure(self, callback: Callable[[Failed], None]) -> None:
        """See `JournalReader.on_failure`: memory is taken to be sound."""

    def _publish_all(self) -> None:
        self._batches = {stream: list(batches) for stream, batches in self._storage.compacted.items()}
        for group in self._storage.groups:
            self._publish(group)

    def _publish(self, group: StoredGroup) -> None:
        for row, batch in group.batches:
            if row.last_offset >= self.compacted_to(row.stream):
                self._batches.setdefault(row.stream, []).append((row, batch))

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `JournalReader.find`."""
        batches = self._batches.get(stream, [])
        extents: list[Extent] = []
        room_bytes = max_bytes
        first = bisect_left(batches, offset, key=lambda batch: batch[0].last_offset)
        for row, data in map(batches.__getitem__, range(first, len(batches))):
            if row.last_offset >= end_offset or (extents and row.size > room_bytes):
                break
            room_bytes -= row.size
            extents.append(Extent((row.first_offset,), (row.last_offset,), row.size, data))
        return extents

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_by_time`."""
        return next((entry for entry in self._times(stream, offset, end_offset) if entry[2] >= timestamp_ms), None)

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_latest`."""
        return max(self._times(stream, offset, end_offset), key=lambda entry: entry.max_timestamp_ms, default=None)

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.size_bytes`."""
        return sum(row.size for row, _ in self._batches.get(stream, []) if offset <= row.last_offset < end_offset)

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """See `JournalReader.offset_after`."""
        for row, _ in self._batches.get(stream, []):
            if offset <= row.last_offset:
                size_bytes -= row.size
                if size_bytes < 0 or row.last_offset >= end_offset:
                    break
                offset = row.last_offset + 1
        return offset

    def _times(self, stream: int, offset: int, end_offset: int) -> list[TimeEntry]:
        return [
            TimeEntry(row.first_offset, row.last_offset, row.max_timestamp_ms)
            for row, _ in self._batches.get(stream, [])
            if offset <= row.last_offset < end_offset
        ]

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.count_records`."""
        return sum(
            min(row.record_count, row.last_offset - max(offset, row.first_offset) + 1)
            for row, _ in self._batches.get(stream, [])
            if offset <= row.last_offset < end_offset
        )

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `JournalReader.read_cached`; with a pending `read_fault` the caller must ask `read`, which fails."""
        if self._storage.read_fault is not None:
            return None
        return [extent.place for extent in extents if isinstance(extent.place, bytes)]

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """See `JournalReader.read`."""
        if self._storage.read_fault is not None:
            self._call_soon(done, [Failed(self._storage.read_fault)] * len(extents))
        else:
            self._call_soon(done, [extent.place for extent in extents if isinstance(extent.place, bytes)])

    def compacted_to(self, stream: int) -> int:
        """See `JournalReader.compacted_to`."""
        compacted = self._storage.compacted.get(stream)
        return compacted[-1][0].last_offset + 1 if compacted else 0
