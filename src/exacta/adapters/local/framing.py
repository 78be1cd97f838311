"""Groups framed from entries: checked and laid out, as the writer writes them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from exacta.adapters.local.format import GROUP_HEADER_BYTES, pack_entry, pack_group_header
from exacta.ports.journal import Buffer, IndexEntry, JournalEntries

PlacedRows: TypeAlias = tuple[int, Sequence[IndexEntry]]
"""The position at which an entry's payload begins, and its index."""

# Copying a buffer below this size costs less than handing it to the kernel by itself.
JOIN_BELOW_BYTES = 4096


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


def pack_group(
    mark: bytes,
    previous_checksum: int,
    position: int,
    table: bytes,
    payload: Sequence[Buffer],
    entry_count: int,
    durable_end: int,
    *,
    unsynced: bool,
) -> tuple[Sequence[Buffer], int, int]:
    """Return the buffers of a group, their size together, and the group's checksum, which the next group repeats."""
    body = join_small([table, *payload])
    body_checksum = 0
    size = GROUP_HEADER_BYTES
    for buffer in body:
        body_checksum = crc32c(buffer, body_checksum)
        size += len(buffer)
    header, checksum = pack_group_header(
        mark,
        previous_checksum,
        position,
        size,
        len(table),
        entry_count,
        body_checksum,
        durable_end,
        unsynced=unsynced,
    )
    return join_small([header, *body]), size, checksum


def join_small(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return the same bytes in fewer buffers: neighbours that are small become one, large ones are not copied."""
    joined: list[Buffer] = []
    run: list[Buffer] = []
    for buffer in buffers:
        if len(buffer) < JOIN_BELOW_BYTES:
            run.append(buffer)
            continue
        if run:
            joined.append(b"".join(run) if len(run) > 1 else run[0])
            run = []
        joined.append(buffer)
    if run:
        joined.append(b"".join(run) if len(run) > 1 else run[0])
    return joined
