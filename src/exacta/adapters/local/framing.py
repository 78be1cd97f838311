"""Groups framed from entries: checked and laid out, as the writer writes them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from exacta.adapters.local.format import GROUP_HEADER_BYTES, pack_entry
from exacta.ports.journal import Buffer, IndexEntry, JournalEntries

PlacedRows: TypeAlias = tuple[int, Sequence[IndexEntry]]
"""The position at which an entry's payload begins, and its index."""


class Framed(NamedTuple):
    """A group as it will be written; `end` is the position after it."""

    table: bytes
    payload: Sequence[Buffer]
    entry_count: int
    end: int
    rows: Sequence[PlacedRows]


def frame(entries: JournalEntries, position: int, last_offset: Callable[[int], int]) -> Framed:
    """Lay out a group that begins at `position`; `last_offset` returns a stream's last offset, -1 for an empty stream.

    Raises ValueError for an index that points outside its payload or goes back in a stream.
    """
    table_parts: list[bytes] = []
    payload: list[Buffer] = []
    payload_size = 0
    rows: list[PlacedRows] = []
    last_offsets: dict[int, int] = {}
    for entry in entries:
        start = payload_size
        for buffer in entry.payload:
            payload_size += len(buffer)
        payload += entry.payload
        if entry.index:
            _check_index(entry.index, payload_size - start, last_offsets, last_offset)
            rows.append((start, entry.index))
        table_parts += pack_entry(entry, payload_size - start)
    table = b"".join(table_parts)
    payload_position = position + GROUP_HEADER_BYTES + len(table)
    placed = [(payload_position + start, index) for start, index in rows]
    return Framed(table, payload, len(entries), payload_position + payload_size, placed)


def _check_index(
    index: Sequence[IndexEntry], payload_size: int, last_offsets: dict[int, int], stored: Callable[[int], int]
) -> None:
    for row in index:
        stream, first_offset, last_offset, _, start, size, _ = row
        if start < 0 or size < 0 or start + size > payload_size:
            raise ValueError(f"{row} points outside its payload of {payload_size} bytes")
        before = last_offsets.get(stream)
        if before is None:
            before = stored(stream)
        if not before < first_offset <= last_offset:
            raise ValueError(f"{row} goes back in its stream, which is at {before}")
        last_offsets[stream] = last_offset
