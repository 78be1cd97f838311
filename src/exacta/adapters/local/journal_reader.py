"""The reading half of a journal of segments: look-ups in its index, and reads of batches."""

from collections.abc import Callable, Sequence

from exacta.adapters.local.files import Files
from exacta.adapters.local.index.segment_rows import DamagedIndex
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.reading import Reader
from exacta.ports.journal import Buffer, Extent, Failed, TimeEntry


class LocalJournalReader:
    """Implement what `exacta.ports.journal.JournalReader` finds and reads; its heirs close it."""

    _index: Index

    def __init__(self, files: Files, position: int, reader: Reader) -> None:
        """An heir sets the index, and lets it tell `_damaged`."""
        self.position = position
        self._files = files
        self._reader = reader
        self._failure: Failed | None = None
        self._on_failure: Callable[[Failed], None] = lambda failed: None

    def on_failure(self, callback: Callable[[Failed], None]) -> None:
        """See `JournalReader.on_failure`."""
        self._on_failure = callback

    def _damaged(self, damage: DamagedIndex) -> None:
        if self._failure is None:
            self._failure = Failed(f"in {self._files.directory}, {damage}")
            self._on_failure(self._failure)

    def find(self, stream: int, offset: int, end_offset: int, max_bytes: int) -> list[Extent]:
        """See `JournalReader.find`."""
        return self._index.find(stream, offset, end_offset, max_bytes)

    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_by_time`."""
        return self._index.find_by_time(stream, timestamp_ms, offset, end_offset)

    def find_latest(self, stream: int, offset: int, end_offset: int) -> TimeEntry | None:
        """See `JournalReader.find_latest`."""
        return self._index.find_latest(stream, offset, end_offset)

    def count_records(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.count_records`."""
        return self._index.count_records(stream, offset, end_offset)

    def size_bytes(self, stream: int, offset: int, end_offset: int) -> int:
        """See `JournalReader.size_bytes`."""
        return self._index.size_bytes(stream, offset, end_offset)

    def offset_after(self, stream: int, offset: int, end_offset: int, size_bytes: int) -> int:
        """See `JournalReader.offset_after`."""
        return self._index.offset_after(stream, offset, end_offset, size_bytes)

    def compacted_to(self, stream: int) -> int:
        """See `JournalReader.compacted_to`."""
        return self._index.compacted_to(stream)

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `JournalReader.read_cached`."""
        return self._reader.read_cached(extents)

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """See `JournalReader.read`."""
        self._reader.read(extents, done)
