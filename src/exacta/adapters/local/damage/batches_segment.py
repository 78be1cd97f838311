"""Segments of batches alone, as a repair writes them in place of what was lost."""

from collections.abc import Iterator

from exacta.adapters.local.files import Files, write_fully
from exacta.adapters.local.format import SEGMENT_HEADER_BYTES, SegmentHeader, pack_entry, pack_segment_header
from exacta.adapters.local.writer import Writer
from exacta.ports.journal import Buffer, IndexEntry, JournalEntry

_GROUP_BYTES = 1 << 20
_GROUP_ROWS = 5_000


class BatchesSegment:
    """Write a segment as if it had been cleaned: batches without events."""

    def __init__(self, files: Files, handle: int, header: SegmentHeader) -> None:
        self._files = files
        self._handle = handle
        self._header = header
        self._writer = Writer(files, handle, header, header.previous_checksum, header.base)
        self._position = header.base
        self._payload: list[Buffer] = []
        self._payload_bytes = 0
        self._rows: list[IndexEntry] = []

    def write(self, batches: Iterator[tuple[IndexEntry, Buffer]]) -> None:
        """Write these rows and their batches, then the header, and sync."""
        for row, data in batches:
            self._rows.append(row._replace(start=self._payload_bytes, size=len(data)))
            self._payload.append(data)
            self._payload_bytes += len(data)
            if self._payload_bytes >= _GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
                self._write_group()
        self._write_group()
        size = self._position - self._header.base + SEGMENT_HEADER_BYTES
        write_fully(self._files, self._handle, [pack_segment_header(self._header._replace(size=size))], 0)
        self._files.sync(self._handle)

    def _write_group(self) -> None:
        if not self._rows:
            return
        table = b"".join(pack_entry(JournalEntry(b"", (), self._rows), self._payload_bytes))
        self._position = self._writer.write_group(self._position, table, self._payload, 1, unsynced=False)
        self._payload, self._rows, self._payload_bytes = [], [], 0
