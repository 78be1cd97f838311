"""The bytes of staged batches that the state holds, between the writer's request and the journal (decision 0041).

The core decides without bytes. Here a staged batch is given its own, and what the state has held is laid out as the
payload of the event that lets it into the journal: at a commit, or when a stream spills. What a spilled stream has lies
in the journal already.
"""

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


def with_bytes(event: Event, payload: Buffer | None) -> Event:
    """Return the event with the batch that the state is to hold, if it is one."""
    if type(event) is not BatchStaged or not event.is_held:
        return event
    assert payload is not None
    return replace(event, batch=bytes(payload))


def held_for(state: State, event: Event) -> list[Held]:
    """Return the batches that an event takes out of the state into the journal; to be called before it is applied."""
    if type(event) is TransactionEnded:
        partitions = state.partitions
        return [
            Held(partition_id, first_offset, partitions[partition_id].staged[producer_id].held)
            for partition_id, first_offset, producer_id, _ in event.entries
        ]
    if type(event) is StagedStreamSpilled:
        staged = state.partitions[event.partition_id].staged[event.producer_id]
        return [Held(event.stream, 0, staged.held)]
    return []


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
