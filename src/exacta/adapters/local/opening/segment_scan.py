"""One pass over a segment file that checks every byte of it.

A scan finds the groups of a segment, the place where they end, and why. `recovery` decides what such an end means.
Nothing is written here.
"""

from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from exacta.adapters.local.files import Files
from exacta.adapters.local.format import (
    GROUP_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    GroupHeader,
    SegmentHeader,
    TableEntry,
    unpack_group_header,
    unpack_segment_header,
    unpack_table,
)

WINDOW_BYTES = 1 << 20


class ScannedGroup(NamedTuple):
    """A group whose checksums are right."""

    position: int
    end: int
    payload_position: int
    entries: list[TableEntry]


class ScanFault(NamedTuple):
    """Tell why a scan ended before the file did.

    `header` is what could be read of the group at `offset`: with it, the group's length is certain.
    """

    offset: int
    reason: str
    header: GroupHeader | None


class SegmentScan:
    """Scan the file behind `handle` by exhausting `groups`.

    Afterwards `offset`, `last_checksum`, `durable_offset` and `fault` say how far it came and why not further.
    `header` is None if the file does not begin with a segment header; then there is nothing to scan.
    """

    def __init__(self, files: Files, handle: int) -> None:
        self._files = files
        self._handle = handle
        self._window = memoryview(b"")
        self._window_offset = 0
        self.size = files.size(handle)
        self.header: SegmentHeader | None = unpack_segment_header(files.read(handle, SEGMENT_HEADER_BYTES, 0))
        self.offset = SEGMENT_HEADER_BYTES
        self.durable_offset = 0
        """The byte up to which all is durable, as far as the groups tell; 0 if there are none."""
        self.last_checksum = self.header.previous_checksum if self.header else 0
        self.fault: ScanFault | None = None

    @property
    def end(self) -> int:
        """The position after the last sound group."""
        return self._position(self.offset)

    def _position(self, offset: int) -> int:
        assert self.header is not None
        return self.header.base + offset - SEGMENT_HEADER_BYTES

    def _view(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes at `offset`, fewer at the file's end."""
        start = offset - self._window_offset
        if start < 0 or start + size > len(self._window):
            self._window = memoryview(self._files.read(self._handle, max(size, WINDOW_BYTES), offset))
            self._window_offset = offset
            start = 0
        return self._window[start : start + size]

    def groups(self) -> Iterator[ScannedGroup]:
        """Yield the groups, up to the end of the file or to the first fault."""
        assert self.header is not None
        while self.offset < self.size:
            header = unpack_group_header(self._view(self.offset, GROUP_HEADER_BYTES), self.header.mark)
            reason = self._check(header)
            if reason:
                self.fault = ScanFault(self.offset, reason, header)
                return
            assert header is not None
            table_offset = self.offset + GROUP_HEADER_BYTES
            table = self._view(table_offset, header.table_size)
            position = self._position(self.offset)
            payload_position = position + GROUP_HEADER_BYTES + header.table_size
            group = ScannedGroup(position, position + header.size, payload_position, [])
            try:
                group.entries.extend(unpack_table(table, header.entry_count))
            except ValueError as error:
                self.fault = ScanFault(self.offset, str(error), header)
                return
            durable_offset = header.durable_end - self.header.base + SEGMENT_HEADER_BYTES
            self.durable_offset = max(self.durable_offset, durable_offset, SEGMENT_HEADER_BYTES)
            self.last_checksum = header.checksum
            self.offset += header.size
            yield group

    def _check(self, header: GroupHeader | None) -> str | None:
        """Return what is wrong with the group at the scan's offset."""
        if header is None:
            return "no group begins here"
        if header.position != self._position(self.offset):
            return f"the group belongs to position {header.position}, not {self._position(self.offset)}"
        if header.previous_checksum != self.last_checksum:
            return "the group does not follow the one before it"
        if self.offset + header.size > self.size:
            return "the group is longer than the file"
        # The body is read in windows: a group may be larger than memory likes, and its payload is not needed.
        checksum = 0
        at, end = self.offset + GROUP_HEADER_BYTES, self.offset + header.size
        while at < end:
            part = self._view(at, min(end - at, WINDOW_BYTES))
            if not part:
                return "the file ended while it was read"
            checksum = crc32c(part, checksum)
            at += len(part)
        return None if checksum == header.body_checksum else "the group's checksum is wrong"

    def resume(self, offset: int, header: GroupHeader) -> None:
        """Go on after a fault with a later group, of which only the header is known to be sound."""
        self.offset = offset
        self.last_checksum = header.previous_checksum
        self.fault = None

    def later_groups(self, offset: int) -> Iterator[tuple[int, GroupHeader]]:
        """Yield the headers of groups at `offset` or later, and where they stand, however damaged their bodies.

        A header counts if its checksum is right and it stands where it says that it stands.
        """
        assert self.header is not None
        mark = self.header.mark
        while offset < self.size:
            chunk = self._files.read(self._handle, WINDOW_BYTES, offset)
            found = chunk.find(mark)
            while found >= 0:
                data = self._files.read(self._handle, GROUP_HEADER_BYTES, offset + found)
                header = unpack_group_header(data, mark)
                if header is not None and header.position == self._position(offset + found):
                    yield offset + found, header
                found = chunk.find(mark, found + 1)
            if len(chunk) < WINDOW_BYTES:
                return
            offset += len(chunk) - len(mark) + 1
