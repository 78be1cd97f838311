"""The invariants of staged streams; `invariants.py` says how such functions are made."""

from collections.abc import Iterator

from msgspec import Struct, field

from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    CompactedForgotten,
    LogStartMoved,
    PartitionsAdded,
    StagedStreamSpilled,
    TopicCreated,
    TopicDeleted,
    TransactionEnded,
)
from exacta.core.ids import Body, Offset, PartitionId, ProducerId
from exacta.core.log.staging import place_of
from exacta.core.log.staging_fold import MOST_RECEIPTS
from exacta.core.state.partition import Partition
from exacta.core.state.staged import HELD, EnteredStream
from exacta.core.state.state import State
from simulation.invariants.log import Log

Key = tuple[PartitionId, ProducerId]


class _Walk(Struct):
    """The sum of the events up to some place."""

    waiting: dict[Key, list[BatchStaged]] = field(default_factory=dict)
    next_offsets: dict[PartitionId, int] = field(default_factory=dict)
    streams: dict[Key, PartitionId] = field(default_factory=dict)
    """The spilled streams of what waits."""
    entered: dict[PartitionId, list[EnteredStream]] = field(default_factory=dict)
    offsets: dict[PartitionId, dict[int, int]] = field(default_factory=dict)
    """The offset of each record that has entered, by the place that its writer was told."""
    messages: dict[PartitionId, set[int]] = field(default_factory=dict)
    """The places of those that are Pulsar's."""
    told: set[tuple[PartitionId, int]] = field(default_factory=set)
    given: set[PartitionId] = field(default_factory=set)
    partitions: dict[str, list[PartitionId]] = field(default_factory=dict)


def staged_streams_enter_whole(state: State, log: Log) -> Iterator[str]:
    """Invariant 11: what is staged enters its partition when its transaction commits, whole and at the end; or never.

    So it lies there in the order of the commits, and no other record lies between. No two batches are told one
    provisional offset, and no two streams of the journal have one id. Receipts of messages lead to where these are.
    """
    walk = _Walk()
    for event in log:
        match event:
            case TopicCreated() | PartitionsAdded():
                first = event.first_partition_id
                ids = [PartitionId(first + number) for number in range(event.partition_count)]
                walk.partitions.setdefault(event.topic, []).extend(ids)
                walk.given.update(ids)
            case TopicDeleted():
                _deleted(walk, event)
            case BatchAppended():
                walk.next_offsets[event.partition_id] = event.base_offset + event.record_count
            case BatchStaged():
                yield from _staged(walk, event)
            case StagedStreamSpilled():
                yield from _given(walk, (event.partition_id, event.producer_id), event.stream)
            case TransactionEnded():
                yield from _ended(walk, event)
            case LogStartMoved():
                _not_entered_before(walk, event.partition_id, event.log_start_offset)
            case CompactedForgotten():
                _not_entered_before(walk, event.partition_id, event.before_offset)
            case _:
                pass
    yield from _is_what_it_comes_to(state, walk)


def _staged(walk: _Walk, event: BatchStaged) -> Iterator[str]:
    key = (event.partition_id, event.producer_id)
    batches = walk.waiting.setdefault(key, [])
    if event.first_index != sum(each.record_count for each in batches):
        yield f"11: {event} does not go on where its stream ends"
    batches.append(event)
    if event.stream != HELD and walk.streams.get(key) != event.stream:
        if len(batches) > 1:
            yield f"11: {event} lies elsewhere than what was staged before it"
        yield from _given(walk, key, event.stream)
    if event.stream == HELD and key in walk.streams:
        yield f"11: {event} is held, and what was staged before it was spilled"
    for provisional in range(event.provisional_offset, event.provisional_offset + event.record_count):
        if provisional >= -1 or (event.partition_id, provisional) in walk.told:
            yield f"11: {event} is told what another record was told, or an offset"
        walk.told.add((event.partition_id, provisional))


def _given(walk: _Walk, key: Key, stream: PartitionId) -> Iterator[str]:
    if stream in walk.given:
        yield f"11: the stream {stream} is given out a second time, to {key}"
    walk.given.add(stream)
    walk.streams[key] = stream


def _ended(walk: _Walk, event: TransactionEnded) -> Iterator[str]:
    for partition_id, offset, _ in event.markers:
        walk.next_offsets[partition_id] = offset + 1
    of_it = {key: batches for key, batches in walk.waiting.items() if key[1] in event.producer_ids}
    expected = {key: sum(each.record_count for each in batches) for key, batches in of_it.items()}
    found = {(partition_id, producer_id): count for partition_id, _, producer_id, count in event.entries}
    if found != (expected if event.committed else {}) or len(found) < len(event.entries):
        yield f"11: {event} lets {found} enter, staged is {expected}"
    for partition_id, first_offset, producer_id, count in event.entries:
        if first_offset != walk.next_offsets.get(partition_id, 0):
            yield f"11: {event} does not enter where {partition_id} ends"
        walk.next_offsets[partition_id] = first_offset + count
        batches = of_it.get((partition_id, producer_id), [])
        stream = walk.streams.get((partition_id, producer_id))
        if stream is not None:
            entered = _entered(batches, stream, first_offset, event.at_ms)
            walk.entered.setdefault(partition_id, []).append(entered)
        _note_places(walk, partition_id, batches, first_offset)
    for key in of_it:
        del walk.waiting[key]
        walk.streams.pop(key, None)


def _entered(batches: list[BatchStaged], stream: PartitionId, first_offset: Offset, at_ms: int) -> EnteredStream:
    append_time_ms = at_ms if any(each.takes_append_time for each in batches) else -1
    times = [each.max_timestamp_ms for each in batches if not each.takes_append_time]
    return EnteredStream(
        first_offset,
        Offset(first_offset + sum(each.record_count for each in batches)),
        stream,
        sum(each.size for each in batches),
        max(append_time_ms, *times, -1),
        append_time_ms,
    )


def _note_places(walk: _Walk, partition_id: PartitionId, batches: list[BatchStaged], offset: int) -> None:
    for each in batches:
        place = place_of(each.provisional_offset)
        places = range(place, place + each.record_count)
        walk.offsets.setdefault(partition_id, {}).update(zip(places, range(offset, offset + len(places)), strict=True))
        if each.body is Body.PULSAR:
            walk.messages.setdefault(partition_id, set()).update(places)
        offset += each.record_count


def _not_entered_before(walk: _Walk, partition_id: PartitionId, offset: Offset) -> None:
    kept = walk.entered.get(partition_id, [])
    walk.entered[partition_id] = [each for each in kept if each.end_offset > offset]


def _deleted(walk: _Walk, event: TopicDeleted) -> None:
    gone = set(walk.partitions.pop(event.topic, ()))
    walk.waiting = {key: batches for key, batches in walk.waiting.items() if key[0] not in gone}
    walk.streams = {key: stream for key, stream in walk.streams.items() if key[0] not in gone}


def _is_what_it_comes_to(state: State, walk: _Walk) -> Iterator[str]:
    found = {
        (partition.partition_id, producer_id): (stream.record_count, stream.size, stream.stream)
        for partition in state.partitions.values()
        for producer_id, stream in partition.staged.items()
    }
    expected = {
        key: (
            sum(each.record_count for each in batches),
            sum(each.size for each in batches),
            walk.streams.get(key, HELD),
        )
        for key, batches in walk.waiting.items()
    }
    if found != expected:
        yield f"11: {found} is staged, and the log says {expected}"
    for partition_id, partition in state.partitions.items():
        if partition.entered != (entered := walk.entered.get(partition_id, [])):
            yield f"11: {partition.topic}-{partition.index} has {partition.entered} entered, its log {entered}"
        yield from _receipts(partition, walk)
        for stream in partition.staged.values():
            if sum(each.record_count for each in stream.held) != (stream.record_count if stream.stream == HELD else 0):
                yield f"11: {partition.topic}-{partition.index} holds {len(stream.held)} batches of {stream}"
    held = sum(size for _, size, stream in found.values() if stream == HELD)
    if (state.volatile.held_bytes, state.volatile.staged_bytes) != (held, sum(size for _, size, _ in found.values())):
        yield f"11: {state.volatile.held_bytes} held and {state.volatile.staged_bytes} staged bytes are counted"
    held_batches = sum(len(each.held) for partition in state.partitions.values() for each in partition.staged.values())
    if state.volatile.held_batches != held_batches:
        yield f"11: {state.volatile.held_batches} held batches are counted, and there are {held_batches}"
    yield from _limits(state)
    if any(producer_id in state.partitions[place].open_transactions for place, producer_id in found):
        yield "11: a transaction is staged in a partition in which it also lies"


def _limits(state: State) -> Iterator[str]:
    """No more is staged than may be, and no more of it is held."""
    limits, volatile = state.limits, state.volatile
    held_too_much = volatile.held_bytes > limits.max_held_bytes or volatile.held_batches > limits.max_held_batches
    if volatile.staged_bytes > limits.max_staged_bytes or held_too_much:
        yield f"limits: {volatile.staged_bytes} bytes are staged, {volatile.held_bytes} of them held"
    for partition in state.partitions.values():
        for stream in partition.staged.values():
            held_bytes = stream.size if stream.stream == HELD else 0
            if held_bytes > limits.max_held_bytes_per_stream or len(stream.held) > limits.max_held_batches_per_stream:
                yield f"limits: {len(stream.held)} batches of one stream are held, which have {stream.size} bytes"


def _receipts(partition: Partition, walk: _Walk) -> Iterator[str]:
    """The receipts of Pulsar's messages lead to where they have entered; there is one for each message that is kept."""
    found = {
        each.first_place + number: each.first_offset + number
        for each in partition.receipts
        for number in range(each.count)
    }
    offsets = walk.offsets.get(partition.partition_id, {})
    if wrong := [place for place, offset in found.items() if offsets.get(place) != offset]:
        yield f"11: {partition.topic}-{partition.index} has entered elsewhere than receipts for {wrong} say"
    if len(partition.receipts) < MOST_RECEIPTS:
        messages = walk.messages.get(partition.partition_id, set())
        kept = {place for place in messages if offsets[place] >= partition.log_start_offset}
        if lost := kept - found.keys():
            yield f"11: {partition.topic}-{partition.index} has no receipts for {lost}, which are there"
