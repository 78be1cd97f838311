"""The bytes of staged batches that the state holds, between the writer's request and the journal (decision 0041).

The core decides without bytes. Here a staged batch is given its own, and what the state has held is laid out as the
payload of the event that lets it into the journal: at a commit, or when a stream spills. What a spilled stream has lies
in the journal already.
"""

from collections import deque
from typing import NamedTuple

from msgspec.structs import replace

from exacta.core.events import BatchStaged, Event, StagedStreamSpilled, TransactionEnded
from exacta.core.ids import PartitionId
from exacta.core.state.staged import HeldBatch
from exacta.core.state.state import State
from exacta.ports.journal import IndexEntry
from exacta.ports.record_format import Buffer, RecordFormat


class Held(NamedTuple):
    """Batches that the state has held, and where they are going to lie from `first_offset` on."""

    stream: PartitionId
    first_offset: int
    batches: list[HeldBatch]


NO_HELD: list[Held] = []


def with_bytes(event: Event, payload: Buffer | None) -> Event:
    """Return the event with the batch that the state is to hold, if it is one."""
    if type(event) is not BatchStaged or not event.is_held:
        return event
    assert payload is not None
    return replace(event, batch=bytes(payload))


def held_for(state: State, event: Event) -> list[Held]:
    """Return the batches that an event takes out of the state into the journal; to be called before it is applied."""
    if type(event) is TransactionEnded and event.entries:
        partitions = state.partitions
        return [
            Held(partition_id, first_offset, partitions[partition_id].staged[producer_id].held)
            for partition_id, first_offset, producer_id, _ in event.entries
        ]
    if type(event) is StagedStreamSpilled:
        staged = state.partitions[event.partition_id].staged[event.producer_id]
        return [Held(event.stream, 0, staged.held)]
    return NO_HELD


class StreamsLetGo:
    """Streams of the journal that nobody needs any more once what has let them go is durable."""

    def __init__(self, state: State) -> None:
        self._volatile = state.volatile
        self._waiting: deque[tuple[int, list[PartitionId]]] = deque()

    def note(self, number: int) -> None:
        """Take the streams that the last event has let go, which is in the commit group of this number."""
        if self._volatile.streams_let_go:
            self._waiting.append((number, self._volatile.streams_let_go))
            self._volatile.streams_let_go = []

    def settle(self, durable_number: int) -> bool:
        """Forget those that groups up to this number, which is durable, have let go; return whether there were any."""
        before = len(self._waiting)
        while self._waiting and self._waiting[0][0] <= durable_number:
            self._waiting.popleft()
        return len(self._waiting) < before

    def needed(self) -> list[PartitionId]:
        """Return the streams that a crash would bring back."""
        return [stream for _, streams in self._waiting for stream in streams]


def lay_out(
    held: list[Held], records: RecordFormat, start: int, append_time_ms: int
) -> tuple[list[Buffer], list[IndexEntry]]:
    """Return held batches as the part of a payload from `start` on, and its rows.

    `append_time_ms` is the time that batches with the log's timestamps get; -1: they keep what they have.
    """
    payload: list[Buffer] = []
    rows: list[IndexEntry] = []
    for stream, first_offset, batches in held:
        offset = first_offset
        for each in batches:
            time_ms = each.max_timestamp_ms
            if each.takes_append_time and append_time_ms >= 0:
                batch = bytearray(b"".join(records.place(each.batch, offset)))
                records.move(memoryview(batch), [offset], append_time_ms)
                payload.append(batch)
                time_ms = append_time_ms
            else:
                payload += records.place(each.batch, offset)
            last_offset, size = offset + each.record_count - 1, len(each.batch)
            rows.append(IndexEntry(stream, offset, last_offset, time_ms, start, size, each.record_count))
            offset, start = last_offset + 1, start + size
    return payload, rows
