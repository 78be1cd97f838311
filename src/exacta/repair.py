"""What a damaged journal still holds, in the terms of topics and transactions, and what each remedy would cost.

Owns what `exacta log repair` offers: three remedies, whether each is possible, what it gives up, and the batches that
stand in for lost ones. Composes the local journal's survey and repair with the core's fold and Kafka's batches.

Theory of operation. Events before a snapshot are needed by nobody: what is damaged there costs its batches alone.
Behind the newest sound snapshot an event that is lost makes all that follows worthless, since it was decided on a state
that nobody knows any more; there only a group whose table is sound, and whose payload is not, can be done without its
batches. The table has no checksum of its own: it is believed if at least one batch of the payload is damaged, all its
events can be read, they agree with the index rows, and each continues its partition where the one before ended.

What is lost becomes empty batches, as Kafka's log cleaner leaves them, so that readers pass over it and every
partition still ends where its producers were told that it ends; and markers of aborted transactions, which readers of
committed records need to tell what comes after, are written anew.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import cast

import msgspec
from crc32c import crc32c

from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import (
    SEGMENT_HEADER_BYTES,
    SNAPSHOT_SUFFIX,
    TableEntry,
    file_name,
    unpack_snapshot,
)
from exacta.adapters.local.inspection import Finding, Place, inspect
from exacta.adapters.local.layout import begin_of_replay, lay_out
from exacta.adapters.local.repair import (
    Plan,
    Staged,
    StandIn,
    events_from,
    finish,
    is_interrupted,
    put_in_place,
    stage,
    unstage,
)
from exacta.adapters.local.scan import Group
from exacta.adapters.local.snapshots import load_latest
from exacta.adapters.local.survey import Lost, Survey, survey
from exacta.core.apply import apply
from exacta.core.events import (
    BatchAppended,
    DurableEvent,
    OffsetsCommitted,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    TransactionalOffsetsCommitted,
    TransactionEnded,
    decode_event,
)
from exacta.core.ids import PartitionId
from exacta.core.snapshot import restore, snapshot
from exacta.core.state import Limits, Phase, State
from exacta.kafka.record_format import KafkaRecordFormat
from exacta.ports.journal import Buffer, IndexEntry, JournalError
from exacta.protocol.primitives import DecodeError
from exacta.protocol.records import empty_batch, parse_batch_header

__all__ = ["Examination", "NotRepaired", "Remedy", "Way", "apply_remedy", "examine", "finish", "is_interrupted"]

_CRC_START = 21
_MOST_OFFSETS = (1 << 31) - 1  # of one batch


class NotRepaired(JournalError):
    """The remedy did not come to a journal that is sound; nothing was changed."""


class Way(Enum):
    """What may be given up: the options of `exacta log repair`."""

    MEND = "--mend"
    """Nothing."""
    DROP = "--drop-damaged-batches"
    """Batches that are lost, and all else is kept."""
    CUT = "--truncate-at-damage"
    """All from the first loss on."""
    DROP_AND_CUT = "--drop-damaged-batches --truncate-at-damage"
    """Batches that are lost, and all from the first event on that is."""


@dataclass(slots=True, kw_only=True)
class Remedy:
    """One way: what it gives up, line by line, or why it is none."""

    way: Way
    plan: Plan | None = None
    losses: list[str] = field(default_factory=list)
    why_not: str = ""


@dataclass(slots=True)
class Examination:
    """All that was found. `damage` is what is lost, one line each; `is_sound`: there is nothing to do."""

    found: Survey
    findings: list[Finding]
    damage: list[str]
    remedies: list[Remedy]

    @property
    def is_sound(self) -> bool:
        """Whether verifying finds nothing."""
        return not self.findings


class _Unknown(Exception):
    """The state at a position cannot be known; `at` is where the first event is missing."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


def examine(files: Files) -> Examination:
    """Look at a locked directory, and change nothing. Raises OSError and UnsupportedFormat."""
    findings = [each for each in inspect(files) if isinstance(each, Finding)]
    found = survey(files, is_batch)
    remedies = [_mend(found), _drop(found, cuts=False), _drop(found, cuts=True), _cut(found)]
    damage = [_told(each) for each in found.lost if each.begin < each.end]
    damage += [f"{each.name}, byte {each.offset}: {each.reason}" for each in found.lost_compacted]
    return Examination(found, findings, damage, remedies)


def apply_remedy(examined: Examination, remedy: Remedy, files: Files, keep: Files) -> list[str]:
    """Write the journal anew and change over; return the lines of the report.

    Raises OSError, or NotRepaired; nothing has changed then, unless the change over had begun: then the journal is not
    opened before the repair is run again, which finishes it.
    """
    assert remedy.plan is not None
    staged = stage(examined.found, remedy.plan)
    try:
        _check(staged)
    except BaseException:
        unstage(files)
        raise
    lines = [f"put right: {each.name}, byte {each.offset}: {each.what}" for each in examined.found.mended]
    lines += [f"given up: {line}" for line in remedy.losses]
    put_in_place(files, staged, keep, "\n".join(lines))
    return lines


def is_batch(row: IndexEntry, data: Buffer) -> bool:
    """Whether these bytes are the record batch that the row speaks of, unaltered."""
    try:
        header = parse_batch_header(data)
    except DecodeError:
        return False
    return (
        header.size == len(data) == row.size
        and (header.base_offset, header.last_offset) == (row.first_offset, row.last_offset)
        and crc32c(memoryview(data)[_CRC_START:]) == header.crc
    )


def _told(lost: Lost) -> str:
    return f"{lost.name}, byte {lost.offset}: {lost.reason}; positions {lost.begin} to {lost.end} are lost"


# --- the state --------------------------------------------------------------------------------------------------------


def _newest(found: Survey, end: int) -> int:
    return max((position for position in found.snapshots if position <= end), default=0)


def _state(found: Survey, end: int) -> State:
    """Return the state at `end`; raise _Unknown where an event before it is lost."""
    position = _newest(found, end)
    blob = None
    if position:
        name = file_name(position, SNAPSHOT_SUFFIX)
        blob = unpack_snapshot(read_file(found.files, name), position)
    elif found.slots[0].base:
        raise _Unknown(0, "no snapshot is sound, and the journal's beginning was cleaned away")
    for slot in found.slots:
        if slot.generation and (slot.end is None or slot.end > position) and slot.base < end:
            raise _Unknown(position, "no snapshot is sound that is new enough, and events before it were cleaned away")
    try:
        state = restore(blob, Limits())
    except msgspec.DecodeError as error:
        raise _Unknown(position, f"this version cannot read the snapshot of {position}: {error}") from error
    for piece in events_from(found, position, end):
        if isinstance(piece, Group):
            entries, begin = piece.entries, piece.position
        else:
            begin = max(position, piece.begin)
            if piece.begin == piece.end:
                continue
            if piece.begin < position or not _is_table_sound(found, piece):
                raise _Unknown(begin, f"events are lost at position {begin}, on which all that follows rests")
            entries = list(piece.entries)
        for entry in entries:
            try:
                event = decode_event(entry.event)
                if isinstance(event, BatchAppended):
                    wanted = state.partitions[event.partition_id].next_offset
                    if event.base_offset != wanted:
                        raise ValueError(f"a batch has offset {event.base_offset}, not {wanted}")
                apply(state, event)
            except (msgspec.DecodeError, KeyError, ValueError, AttributeError) as error:
                raise _Unknown(
                    begin, f"the events at position {begin} do not follow from those before: {error!r}"
                ) from error
    return state


def _state_at_the_end(found: Survey) -> State:
    state = _state(found, found.end)
    if not found.is_end_known:
        reason = f"the journal's last bytes are damaged: what was written behind position {found.end} is lost"
        raise _Unknown(found.end, reason)
    return state


def _is_table_sound(found: Survey, lost: Lost) -> bool:
    """Whether a group's table may be believed although the group's checksum is wrong; see the module's docstring."""
    damaged = 0
    for entry in lost.entries:
        try:
            event = decode_event(entry.event)
        except (msgspec.DecodeError, ValueError):
            return False
        if not _agree(event, entry.rows):
            return False
        damaged += sum(1 for row in entry.rows if not _is_sound(found, lost, entry.payload_start, row))
    return damaged > 0


def _agree(event: DurableEvent, rows: list[IndexEntry]) -> bool:
    if isinstance(event, BatchAppended):
        if len(rows) != 1:
            return False
        row = rows[0]
        last_offset = event.base_offset + event.record_count - 1
        said = (event.partition_id, event.base_offset, last_offset, event.max_timestamp_ms, event.size)
        return said == (row.stream, row.first_offset, row.last_offset, row.max_timestamp_ms, row.size)
    if isinstance(event, TransactionEnded):
        return [(row.stream, row.first_offset) for row in rows] == [tuple(marker) for marker in event.markers]
    return not rows


def _is_sound(found: Survey, lost: Lost, payload_start: int, row: IndexEntry) -> bool:
    slot = found.slot(lost.slot)
    offset = lost.payload_position + payload_start + row.start - slot.base + SEGMENT_HEADER_BYTES
    with found.opened(lost.name) as handle:
        return is_batch(row, found.view.read(handle, row.size, offset))


# --- remedies ---------------------------------------------------------------------------------------------------------


def _mend(found: Survey) -> Remedy:
    remedy = Remedy(way=Way.MEND)
    if found.lost_compacted or any(each.begin < each.end or found.slots[each.slot].generation for each in found.lost):
        remedy.why_not = "not all that is damaged can be put right"
        return remedy
    try:
        _state_at_the_end(found)
    except _Unknown as unknown:
        remedy.why_not = str(unknown)
        return remedy
    # A place that is empty, such as that of a last segment of which nothing is known, is filled at no price.
    known_at = found.end if found.lost else None
    blob = None
    if known_at is not None and known_at not in found.snapshots:
        blob = snapshot(_state(found, known_at))
    remedy.plan = Plan(known_at=known_at, blob=blob)
    return remedy


def _drop(found: Survey, *, cuts: bool) -> Remedy:
    remedy = Remedy(way=Way.DROP_AND_CUT if cuts else Way.DROP)
    end, cut = found.end, None
    if not found.lost and not found.lost_compacted:
        remedy.why_not = "no batch is lost"
        return remedy
    try:
        state = _state_at_the_end(found)
        if cuts:
            remedy.why_not = "no event is lost"
            return remedy
    except _Unknown as unknown:
        if not cuts:
            remedy.why_not = str(unknown)
            return remedy
        end = cut = unknown.at
        if cut <= found.slots[0].base:
            remedy.why_not = "nothing would be left"
            return remedy
        try:
            state = _state(found, end)
        except _Unknown as other:
            remedy.why_not = str(other)
            return remedy
    # Up to the newest snapshot, if nothing is lost behind it, else up to the end.
    newest = _newest(found, end)
    is_behind = any(each.begin < each.end and each.end > newest for each in found.lost if each.begin < end)
    known_at = end if is_behind or cut is not None else newest
    if not found.lost:
        known_at = 0  # all of the journal stays; only compacted segments are written anew
    blob = None if known_at in (newest, 0) else snapshot(state)
    if cut is not None and (reason := _compacted_beyond(found, state)):
        remedy.why_not = reason
        return remedy
    gaps = _gaps(found, state, end)
    plan = Plan(cut=cut, known_at=known_at or None, blob=blob, stand_ins=_stand_ins(state, gaps))
    remedy.plan = plan
    remedy.losses = _losses(found, state, gaps)
    if cut is not None:
        remedy.losses += _cut_losses(found, state, cut)
    return remedy


def _cut(found: Survey) -> Remedy:
    remedy = Remedy(way=Way.CUT)
    begins = [each.begin for each in found.lost]
    if not begins:
        remedy.why_not = "nothing is lost"
        return remedy
    cut = min(begins)
    if cut <= found.slots[0].base:
        remedy.why_not = "nothing would be left"
        return remedy
    try:
        state = _state(found, cut)
    except _Unknown as unknown:
        remedy.why_not = str(unknown)
        return remedy
    if found.lost_compacted:
        remedy.why_not = "compacted records are lost as well: --drop-damaged-batches gives these up"
        return remedy
    if reason := _compacted_beyond(found, state):
        remedy.why_not = reason
        return remedy
    remedy.plan = Plan(cut=cut)
    remedy.losses = _cut_losses(found, state, cut)
    return remedy


def _compacted_beyond(found: Survey, state: State) -> str:
    """Return why the journal cannot end where the state is this one; empty: it can."""
    for number in found.numbers_of_compacted:
        for piece in found.pieces(number):
            for entry in piece.entries:
                for row in entry.rows:
                    partition = state.partitions.get(PartitionId(row.stream))
                    if partition is not None and row.last_offset >= partition.next_offset:
                        return "records that were written after the damage are compacted already"
    return ""


_Gaps = dict[tuple[int, int], list[tuple[PartitionId, int, int]]]
"""For each loss, by slot and offset: partition, first and last offset that are gone."""


def _gaps(found: Survey, state: State, end: int) -> _Gaps:
    """Find what batches are missing where something is lost, by the offsets before and behind it."""
    gaps: _Gaps = {}
    regions: list[tuple[int, int]] = []
    next_offsets: dict[int, int] = {}
    seen_at: dict[int, int] = {}

    def missing(stream: int, first: int, upto: int) -> None:
        partition = state.partitions.get(PartitionId(stream))
        if partition is None:
            return
        first = max(first, partition.log_start_offset)
        number = seen_at.get(stream, 0)
        if first < upto and number < len(regions):
            gaps.setdefault(regions[number], []).append((partition.partition_id, first, upto - 1))

    def take(row: IndexEntry) -> None:
        known = next_offsets.get(row.stream)
        partition = state.partitions.get(PartitionId(row.stream))
        expected = known if known is not None else (partition.log_start_offset if partition is not None else 0)
        if row.last_offset < expected:
            return  # compacted
        if row.first_offset > expected:
            missing(row.stream, expected, row.first_offset)
        next_offsets[row.stream] = row.last_offset + 1

    # What is compacted comes first, and has gaps of its own: only what is missing behind it is taken for lost.
    for number in found.numbers_of_compacted:
        for piece in found.pieces(number):
            for entry in piece.entries:
                for row in entry.rows:
                    if isinstance(piece, Group) or _is_sound(found, piece, entry.payload_start, row):
                        next_offsets[row.stream] = max(next_offsets.get(row.stream, 0), row.last_offset + 1)
    for number, slot in enumerate(found.slots):
        for piece in found.pieces(number):
            begin = piece.begin if isinstance(piece, Lost) else piece.position
            if slot.base >= end or (not slot.generation and begin >= end):
                break
            if isinstance(piece, Lost):
                regions.append((number, piece.offset))
            for entry in piece.entries:
                for row in entry.rows:
                    if isinstance(piece, Group) or _is_sound(found, piece, entry.payload_start, row):
                        take(row)
                        # Behind a batch that was saved from a loss, more of that loss may follow.
                        seen_at[row.stream] = len(regions) - isinstance(piece, Lost)
    for partition in state.partitions.values():
        known = next_offsets.get(partition.partition_id, partition.log_start_offset)
        if known < partition.next_offset:
            missing(partition.partition_id, known, partition.next_offset)
    return gaps


def _stand_ins(state: State, gaps: _Gaps) -> Mapping[tuple[int, int], list[StandIn]]:
    return {key: [each for gap in found for each in _filling(state, *gap)] for key, found in gaps.items()}


def _filling(state: State, partition_id: PartitionId, first: int, last: int) -> Iterator[StandIn]:
    """Yield batches for all of these offsets: markers where an aborted transaction had its, and else none's."""
    partition = state.partitions[partition_id]
    at = first
    for aborted in sorted(partition.aborted, key=lambda each: each.last_offset):
        marker_at = aborted.last_offset
        if first <= marker_at <= last:
            yield from _empty(partition_id, at, marker_at - 1)
            producer = partition.producers.get(aborted.producer_id)
            epoch = producer.producer_epoch if producer is not None else 0
            content = KafkaRecordFormat().marker(marker_at, aborted.producer_id, epoch, commit=False, timestamp_ms=0)
            yield StandIn(IndexEntry(partition_id, marker_at, marker_at, 0, 0, len(content), 0), content)
            at = marker_at + 1
    yield from _empty(partition_id, at, last)


def _empty(partition_id: PartitionId, first: int, last: int) -> Iterator[StandIn]:
    while first <= last:
        upto = min(last, first + _MOST_OFFSETS - 1)
        content = empty_batch(first, upto)
        yield StandIn(IndexEntry(partition_id, first, upto, -1, 0, len(content), 0), content)
        first = upto + 1


# --- what is given up -------------------------------------------------------------------------------------------------


def _losses(found: Survey, state: State, gaps: _Gaps) -> list[str]:
    lines: list[str] = []
    touched: dict[str, str] = {}
    is_certain = True
    for lost in [*found.lost, *found.lost_compacted]:
        if lost.begin < lost.end and not lost.entries:
            is_certain = False
        for entry in lost.entries:
            with_names = _transaction_of(state, entry)
            if with_names and any(not _is_sound(found, lost, entry.payload_start, row) for row in entry.rows):
                touched.setdefault(with_names, "")
    by_partition: dict[PartitionId, list[tuple[int, int]]] = {}
    for found_gaps in gaps.values():
        for partition_id, first, last in found_gaps:
            by_partition.setdefault(partition_id, []).append((first, last))
    for partition_id, ranges in by_partition.items():
        partition = state.partitions[partition_id]
        for first, last in sorted(ranges):
            lines.append(f"topic {partition.topic}, partition {partition.index}: offsets {first} to {last}")
            for producer_id, runs in partition.open_runs.items():
                if any(a <= last and first <= b for a, b in zip(runs[::2], runs[1::2], strict=True)):
                    held = state.whose_transaction(producer_id)
                    if held is not None:
                        touched[held.transactional_id] = " (still open: abort it)"
    lines.sort()
    lines += [f"records of a transaction of {name!r}{note}" for name, note in sorted(touched.items())]
    if not is_certain and by_partition:
        lines.append("which other transactions these records were part of cannot be read any more")
    lines += [f"compacted records in {each.name}, from byte {each.offset} on" for each in found.lost_compacted]
    if not lines:
        lines.append("no record that anybody could still read")
    return lines


def _transaction_of(state: State, entry: TableEntry) -> str:
    try:
        event = decode_event(entry.event)
    except (msgspec.DecodeError, ValueError):
        return ""
    if isinstance(event, TransactionEnded):
        return event.transactional_id
    if isinstance(event, BatchAppended) and event.transactional:
        held = state.whose_transaction(event.producer_id)
        return held.transactional_id if held is not None else f"producer {event.producer_id}"
    return ""


def _cut_losses(found: Survey, state: State, cut: int) -> list[str]:
    """Tell what is known to have happened after the cut."""
    names = {each.partition_id: (each.topic, each.index) for each in state.partitions.values()}
    ends: dict[PartitionId, int] = {}
    transactions: Counter[tuple[str, str]] = Counter()
    groups: set[str] = set()
    topics: set[str] = set()
    later = _newest(found, found.end)
    if later > cut:
        blob = unpack_snapshot(read_file(found.files, file_name(later, SNAPSHOT_SUFFIX)), later)
        known = restore(blob, Limits())
        for partition in known.partitions.values():
            names[partition.partition_id] = (partition.topic, partition.index)
            ends[partition.partition_id] = partition.next_offset
        topics |= known.topics.keys() - state.topics.keys()
        groups |= {name for name, group in known.groups.items() if state.groups.get(name) != group}
    for piece in events_from(found, cut, found.end + 1):
        for entry in piece.entries:
            if isinstance(piece, Lost) and not _is_table_sound(found, piece):
                continue
            for row in entry.rows:
                stream = PartitionId(row.stream)
                ends[stream] = max(ends.get(stream, 0), row.last_offset + 1)
            try:
                event = decode_event(entry.event)
            except (msgspec.DecodeError, ValueError):
                continue
            if isinstance(event, TopicCreated | PartitionsAdded):
                before = sum(1 for topic, _ in names.values() if topic == event.topic)
                for number in range(event.partition_count):
                    names.setdefault(PartitionId(event.first_partition_id + number), (event.topic, before + number))
                if event.topic not in state.topics:
                    topics.add(event.topic)
            elif isinstance(event, TopicDeleted):
                topics.discard(event.topic)
            elif isinstance(event, TransactionEnded):
                transactions[event.transactional_id, "committed" if event.committed else "aborted"] += 1
            elif isinstance(event, OffsetsCommitted | TransactionalOffsetsCommitted):
                groups.add(event.group_id)
    lines = [f"all that happened from position {cut} on; of that can be read:"]
    for partition_id, end in sorted(ends.items()):
        present = state.partitions.get(partition_id)
        first = present.next_offset if present is not None else 0
        if first < end:
            topic, index = names.get(partition_id, (f"(unknown, partition id {partition_id})", 0))
            lines.append(f"topic {topic}, partition {index}: offsets {first} to {end - 1}, which are given out again")
    lines += [f"the creation of topic {name}" for name in sorted(topics)]
    lines += [f"transactions of {name!r} that were {how}: {n}" for (name, how), n in sorted(transactions.items())]
    lines += [f"offsets of group {name}: back to what it had before" for name in sorted(groups)]
    if not found.is_end_known:
        lines.append(f"whatever was written behind position {found.end}: the journal's last bytes are damaged")
    for held in state.transactionals.values():
        if held.phase is Phase.ONGOING:
            lines.append(f"the open transaction of {held.transactional_id!r}: the next start aborts it")
    return lines


# --- the check before the change over ---------------------------------------------------------------------------------


def _check(staged: Staged) -> None:
    """Raise NotRepaired unless a server would start on what is staged, and find nothing wrong with it."""
    view = cast("Files", staged.view)
    findings = [each for each in inspect(view) if not isinstance(each, Place)]
    if findings:
        raise NotRepaired(f"what was made is not sound: {findings[0].name}: {findings[0].reason}; nothing was changed")
    segments = lay_out(view, view.names()).segments
    position, blob = load_latest(view)
    first = begin_of_replay(segments, position)
    assert first is not None
    replayed = {segment.name for segment in segments[first:]}
    state = restore(blob, Limits())
    for place in inspect(view):
        if isinstance(place, Place) and place.name in replayed and place.group.position >= position:
            for entry in place.group.entries:
                try:
                    apply(state, decode_event(entry.event))
                except (msgspec.DecodeError, LookupError, ValueError, AttributeError) as error:
                    reason = f"what was made cannot be replayed: {place.name}: {error!r}; nothing was changed"
                    raise NotRepaired(reason) from error
