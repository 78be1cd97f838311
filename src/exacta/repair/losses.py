"""Say what a remedy gives up, in lines for people: offsets, transactions, topics, groups."""

from collections import Counter

import msgspec

from exacta.adapters.local.damage.segment_walk import events_from
from exacta.adapters.local.damage.survey import Lost, Survey
from exacta.adapters.local.files import read_file
from exacta.adapters.local.format import SNAPSHOT_SUFFIX, TableEntry, file_name, unpack_snapshot
from exacta.core.event_codec import decode_event
from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    OffsetsCommitted,
    PartitionsAdded,
    StagedStreamSpilled,
    TopicCreated,
    TopicDeleted,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from exacta.core.ids import NO_PRODUCER_ID, PartitionId
from exacta.core.snapshot import restore
from exacta.core.state.state import State
from exacta.core.state.transaction import name_of
from exacta.core.values.limits import Limits
from exacta.repair.gaps import Gaps, streams_of
from exacta.repair.known_state import is_batch_sound, is_table_sound, newest_snapshot

_STILL_OPEN = " (still open: abort it)"


def losses_of_gaps(found: Survey, state: State, gaps: Gaps) -> list[str]:
    """Tell which records are gone, of which transactions, where batches are dropped."""
    lines: list[str] = []
    touched: dict[str, str] = {}
    is_certain = True
    for lost in [*found.lost, *found.lost_compacted]:
        if lost.begin < lost.end and not lost.entries:
            is_certain = False
        for entry in lost.entries:
            with_names = _transaction_of(state, entry)
            if with_names and any(not is_batch_sound(found, lost, entry.payload_start, row) for row in entry.rows):
                touched.setdefault(with_names, "")
    by_partition: dict[PartitionId, list[tuple[int, int]]] = {}
    streams = streams_of(state)
    for found_gaps in gaps.values():
        for stream, first, last in found_gaps:
            of = streams[stream]
            if of.producer_id != NO_PRODUCER_ID:
                touched[name_of(state.volatile.transaction_by_producer[of.producer_id])] = _STILL_OPEN
            else:
                where = by_partition.setdefault(of.partition.partition_id, [])
                where.append((first + of.shift, last + of.shift))
    for partition_id, ranges in by_partition.items():
        partition = state.partitions[partition_id]
        for first, last in sorted(ranges):
            lines.append(f"topic {partition.topic}, partition {partition.index}: offsets {first} to {last}")
            for producer_id, runs in partition.open_runs.items():
                if any(a <= last and first <= b for a, b in zip(runs[::2], runs[1::2], strict=True)):
                    transaction = state.volatile.transaction_by_producer.get(producer_id)
                    if transaction is not None:
                        touched[name_of(transaction)] = _STILL_OPEN
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
        return name_of(event)
    if isinstance(event, BatchStaged | StagedStreamSpilled) or (
        isinstance(event, BatchAppended) and event.transactional
    ):
        transaction = state.volatile.transaction_by_producer.get(event.producer_id)
        return name_of(transaction) if transaction is not None else f"producer {event.producer_id}"
    return ""


def losses_of_cut(found: Survey, state: State, cut: int) -> list[str]:
    """Tell what is known to have happened after the cut."""
    names = {each.partition_id: (each.topic, each.index) for each in state.partitions.values()}
    ends: dict[PartitionId, int] = {}
    transactions: Counter[tuple[str, str]] = Counter()
    groups: set[str] = set()
    topics: set[str] = set()
    later = newest_snapshot(found, found.end)
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
            if isinstance(piece, Lost) and not is_table_sound(found, piece):
                continue
            try:
                event = decode_event(entry.event)
            except (msgspec.DecodeError, ValueError):
                continue
            if not isinstance(event, BatchStaged | StagedStreamSpilled):
                for row in entry.rows:
                    stream = PartitionId(row.stream)
                    ends[stream] = max(ends.get(stream, 0), row.last_offset + 1)
            if isinstance(event, TopicCreated | PartitionsAdded):
                before = sum(1 for topic, _ in names.values() if topic == event.topic)
                for number in range(event.partition_count):
                    names.setdefault(PartitionId(event.first_partition_id + number), (event.topic, before + number))
                if event.topic not in state.topics:
                    topics.add(event.topic)
            elif isinstance(event, TopicDeleted):
                topics.discard(event.topic)
            elif isinstance(event, TransactionEnded):
                transactions[name_of(event), "committed" if event.committed else "aborted"] += 1
                for partition_id, first_offset, _, record_count in event.entries:
                    ends[partition_id] = max(ends.get(partition_id, 0), first_offset + record_count)
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
    for transaction in state.transactions.values():
        lines.append(f"the open transaction of {name_of(transaction)!r}: the next start aborts it")
    return lines
