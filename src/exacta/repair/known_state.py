"""Find the state that the journal had at a position, if that can be known, and the damaged parts to be believed.

If the state cannot be known, the functions raise `Unknown` with the first position at which it is unknown.
"""

from collections.abc import Sequence

import msgspec

from exacta.adapters.local.damage.segment_walk import events_from
from exacta.adapters.local.damage.survey import Lost, Survey
from exacta.adapters.local.files import read_file
from exacta.adapters.local.format import SEGMENT_HEADER_BYTES, SNAPSHOT_SUFFIX, file_name, unpack_snapshot
from exacta.adapters.local.opening.segment_scan import ScannedGroup
from exacta.core.apply import apply
from exacta.core.event_codec import DurableEvent, decode_event
from exacta.core.events import BatchAppended, BatchStaged, StagedStreamSpilled, TransactionEnded
from exacta.core.snapshot import restore
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.ports.journal import Buffer, IndexEntry
from exacta.protocol.kafka.records import parse_batch_header, sound_batches


class Unknown(Exception):
    """The state at a position cannot be known; `at` is where the first event is missing."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


def newest_snapshot(found: Survey, end: int) -> int:
    """Return the position of the newest sound snapshot up to `end`; 0: there is none."""
    return max((position for position in found.snapshots if position <= end), default=0)


def state_at(found: Survey, end: int) -> State:
    """Return the state at `end`; raise Unknown where an event before it is lost."""
    position = newest_snapshot(found, end)
    blob = None
    if position:
        name = file_name(position, SNAPSHOT_SUFFIX)
        blob = unpack_snapshot(read_file(found.files, name), position)
    elif found.slots[0].base:
        raise Unknown(0, "no snapshot is sound, and the journal's beginning was cleaned away")
    for slot in found.slots:
        if slot.generation and (slot.end is None or slot.end > position) and slot.base < end:
            raise Unknown(position, "no snapshot is sound that is new enough, and events before it were cleaned away")
    try:
        state = restore(blob, Limits())
    except msgspec.DecodeError as error:
        raise Unknown(position, f"this version cannot read the snapshot of {position}: {error}") from error
    for piece in events_from(found, position, end):
        if isinstance(piece, ScannedGroup):
            entries, begin = piece.entries, piece.position
        else:
            begin = max(position, piece.begin)
            if piece.begin == piece.end:
                continue
            if piece.begin < position or not is_table_sound(found, piece):
                raise Unknown(begin, f"events are lost at position {begin}, on which all that follows rests")
            entries = list(piece.entries)
        for entry in entries:
            try:
                event = decode_event(entry.event)
                if isinstance(event, BatchAppended):
                    wanted = state.partitions[event.partition_id].next_offset
                    if event.base_offset != wanted:
                        raise ValueError(f"a batch has offset {event.base_offset}, not {wanted}")
                if isinstance(event, BatchStaged):
                    staged = state.partitions[event.partition_id].staged.get(event.producer_id)
                    if event.first_index != (0 if staged is None else staged.record_count):
                        raise ValueError(f"a staged batch has number {event.first_index} in its stream")
                apply(state, event)
            except (msgspec.DecodeError, KeyError, ValueError, AttributeError) as error:
                raise Unknown(
                    begin, f"the events at position {begin} do not follow from those before: {error!r}"
                ) from error
    return state


def state_at_the_end(found: Survey) -> State:
    """Return the state that a server would have started with; raise Unknown where that cannot be told."""
    state = state_at(found, found.end)
    if not found.is_end_known:
        reason = f"the journal's last bytes are damaged: what was written behind position {found.end} is lost"
        raise Unknown(found.end, reason)
    return state


def is_table_sound(found: Survey, lost: Lost) -> bool:
    """Return whether a group's table may be believed although the group's checksum is wrong.

    The package's docstring says when.
    """
    damaged = 0
    for entry in lost.entries:
        try:
            event = decode_event(entry.event)
        except (msgspec.DecodeError, ValueError):
            return False
        if not _agree(event, entry.rows):
            return False
        damaged += sum(1 for row in entry.rows if not is_batch_sound(found, lost, entry.payload_start, row))
    return damaged > 0


def _agree(event: DurableEvent, rows: list[IndexEntry]) -> bool:
    if isinstance(event, BatchAppended):
        return _is_row_of(rows, event, event.partition_id, event.base_offset)
    if isinstance(event, BatchStaged) and not event.is_held:
        return _is_row_of(rows, event, event.stream, event.first_index)
    if isinstance(event, StagedStreamSpilled):
        return bool(rows) and _follow(rows, [(event.stream, 0, rows[-1].last_offset + 1)])
    if isinstance(event, TransactionEnded):
        markers, held = rows[: len(event.markers)], rows[len(event.markers) :]
        entries = [(place, offset, count) for place, offset, _, count in event.entries]
        return [(row.stream, row.first_offset) for row in markers] == [
            (place, offset) for place, offset, _ in event.markers
        ] and _follow(held, entries)
    return not rows


def _is_row_of(rows: list[IndexEntry], event: BatchAppended | BatchStaged, stream: int, first: int) -> bool:
    """Return whether there is exactly one row, and the event's batch is in it."""
    if len(rows) != 1:
        return False
    row = rows[0]
    said = (stream, first, first + event.record_count - 1, event.max_timestamp_ms, event.size)
    return said == (row.stream, row.first_offset, row.last_offset, row.max_timestamp_ms, row.size)


def _follow(rows: list[IndexEntry], entries: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether the rows are those of some of the entries, each of which is whole: stream, offset and count."""
    at = 0
    for stream, first_offset, count in entries:
        offset = first_offset
        while at < len(rows) and rows[at].stream == stream and rows[at].first_offset == offset:
            offset, at = rows[at].last_offset + 1, at + 1
        if offset not in (first_offset, first_offset + count):
            return False
    return at == len(rows)


def is_batch_sound(found: Survey, lost: Lost, payload_start: int, row: IndexEntry) -> bool:
    """Return whether this row's batch, in what is lost, is unaltered. Its entry's payload is at `payload_start`."""
    slot = found.slot(lost.slot)
    offset = lost.payload_position + payload_start + row.start - slot.base + SEGMENT_HEADER_BYTES
    with found.opened(lost.name) as handle:
        return is_batch(row, found.view.read(handle, row.size, offset))


def is_batch(row: IndexEntry, data: Buffer) -> bool:
    """Return whether these bytes are the record batch that the row speaks of, unaltered."""
    size, _ = sound_batches(data, [row.first_offset])
    return size == len(data) == row.size and parse_batch_header(data).last_offset == row.last_offset
