"""Planted bugs of sidecar topics: what is staged, and how it enters its partition."""

from collections.abc import Iterable, Sequence
from typing import Any

from exacta.core.apply import _APPLY
from exacta.core.commands import Command, ForgetCompacted
from exacta.core.events import BatchStaged, Event, TransactionEnded
from exacta.core.ids import Offset, PartitionId
from exacta.core.log import staging, staging_fold
from exacta.core.state.partition import Partition
from exacta.core.state.staged import HELD, EnteredStream
from exacta.core.state.state import State
from exacta.engine import commit_group, engine, journal_writer, staged_batches, upkeep, visible
from exacta.engine.compaction_schedule import CompactionSchedule
from exacta.engine.log_reader import LogReader
from exacta.engine.staged_batches import Held
from exacta.engine.visible import Changes, Visible
from exacta.ports.compaction import Buffer
from exacta.ports.journal import IndexEntry
from exacta.records.compaction import RecordCompaction
from simulation.canaries import Replacements, canary

READ_WRONG = r"sidecar: |lost write: |inconsistent: |aborted read: |refused: .* (ends at|reading)|torn transaction: "
"""The violations of readers who get something else than what was staged and committed."""


@canary(
    "a staged stream is cleaned away while its transaction is open", shows=READ_WRONG + r"|logged: |offset and data"
)
def staged_stream_cleaned() -> Replacements:
    streams_of = staging.streams_of

    def of_what_has_entered(partition: Partition, log_start_offset: int) -> dict[int, int]:
        entered = {int(each.stream) for each in partition.entered}
        floors = streams_of(partition, log_start_offset)
        return {stream: floor for stream, floor in floors.items() if stream in entered}

    return [(upkeep, "streams_of", of_what_has_entered)]


@canary("a stream that has entered its partition is cleaned away with the streams of transactions", shows=READ_WRONG)
def entered_stream_cleaned() -> Replacements:
    def of_what_is_staged(partition: Partition, log_start_offset: int) -> dict[int, int]:
        return {int(each.stream): 0 for each in partition.staged.values() if each.stream != HELD}

    return [(upkeep, "streams_of", of_what_is_staged)]


@canary(
    "transactions lie in the order in which they have begun, and not in the order of their commits", shows=READ_WRONG
)
def order_of_entry() -> Replacements:
    """Streams that enter one directly after the other change places if the later one was spilled earlier."""
    original = LogReader._entered

    def in_order_of_entry(self: LogReader, stream: int) -> Sequence[EnteredStream]:
        found = list(original(self, stream))
        for number in range(1, len(found)):
            one, other = found[number - 1 : number + 1]
            if one.end_offset == other.first_offset and other.stream < one.stream:
                between = Offset(one.first_offset + other.end_offset - other.first_offset)
                found[number - 1] = _placed(other, one.first_offset, between)
                found[number] = _placed(one, between, other.end_offset)
        return found

    return [(LogReader, "_entered", in_order_of_entry)]


def _placed(entered: EnteredStream, first_offset: Offset, end_offset: Offset) -> EnteredStream:
    return EnteredStream(
        first_offset, end_offset, entered.stream, entered.size, entered.max_timestamp_ms, entered.append_time_ms
    )


@canary(
    "a transaction enters where its partition ended when it wrote there first",
    shows=r"4: TransactionEnded.* leaves a hole",
)
def place_of_the_first_write() -> Replacements:
    entry, staged = staging.entry, _APPLY[BatchStaged]
    begun: dict[tuple[int, int, int], Offset] = {}

    def noted(state: State, event: BatchStaged) -> None:
        partition = state.partitions[event.partition_id]
        if event.producer_id not in partition.staged:
            begun[id(state), event.partition_id, event.producer_id] = partition.next_offset
        staged(state, event)

    def as_of_then(partition: Partition, producer_id: Any, first_offset: Offset) -> Any:
        partition_id, _, _, count = entry(partition, producer_id, first_offset)
        found = [begun[key] for key in begun if key[1:] == (partition_id, producer_id)]
        return partition_id, min(found, default=first_offset), producer_id, count

    return [(staging, "entry", as_of_then), (_APPLY, BatchStaged, noted)]


@canary("a batch of another transaction comes between those of the one that commits", shows=READ_WRONG + r"|11: ")
def transactions_interleaved() -> Replacements:
    original = staged_batches.held_for

    def with_another(state: State, event: Event) -> list[Held]:
        found = original(state, event)
        if not isinstance(event, TransactionEnded):
            return found
        for each, (partition_id, _, producer_id, _) in zip(found, event.entries, strict=True):
            others = [
                batch
                for other, stream in state.partitions[partition_id].staged.items()
                if other != producer_id
                for batch in stream.held
            ]
            for number, batch in enumerate(each.batches):
                same = [other for other in others if other.record_count == batch.record_count]
                each.batches[number : number + 1] = same[:1] or [batch]
        return found

    return [(engine, "held_for", with_another)]


@canary("transaction.buffer is not looked at: all transactions lie among the other records", shows=r"sidecar: ")
def buffer_ignored() -> Replacements:
    return [(staging, "stages", lambda state, partition, producer_id, transaction_id: False)]


@canary("readers see a batch as soon as it is staged", shows=r"4: readers of partition .* are shown")
def staged_batch_visible() -> Replacements:
    original = visible.visible_changes

    def with_what_is_staged(state: State, partition_ids: Iterable[PartitionId]) -> Changes:
        changes: Changes = []
        for partition_id, seen in original(state, partition_ids):
            if seen is None:
                changes.append((partition_id, None))
                continue
            staged = sum(each.record_count for each in state.partitions[partition_id].staged.values())
            beyond = Offset(seen.high_watermark + staged)
            changes.append((partition_id, Visible(seen.log_start_offset, beyond, beyond)))
        return changes

    return [(owner, "visible_changes", with_what_is_staged) for owner in (engine, journal_writer)]


@canary(
    "the journal is not told where the last of the held batches lies",
    shows=r"11: TransactionEnded.* has laid .* into the journal|" + READ_WRONG,
)
def row_of_a_held_batch_lost() -> Replacements:
    original = staged_batches.lay_out

    def without_the_last(held: list[Held], *rest: Any, **options: Any) -> tuple[list[Any], list[IndexEntry]]:
        payload, rows = original(held, *rest, **options)
        return payload, rows[:-1] if len(rows) > 1 else rows

    return [(commit_group, "lay_out", without_the_last)]


@canary(
    "a spilled stream whose transaction is committed is not noted in its partition",
    shows=READ_WRONG + r"|11: .* entered",
)
def entry_not_noted() -> Replacements:
    def enter(state: State, event: TransactionEnded) -> None:
        before = {partition_id: len(state.partitions[partition_id].entered) for partition_id, _, _, _ in event.entries}
        original(state, event)
        for partition_id, count in before.items():
            del state.partitions[partition_id].entered[max(1, count) :]

    original = staging_fold.enter
    return [(staging_fold, "enter", enter)]


@canary(
    "the sequences of an aborted transaction's staged batches are taken back, and not used up",
    shows=r"refused: .*: OUT_OF_ORDER_SEQUENCE_NUMBER|1: Batch",
)
def sequences_of_the_aborted_forgotten() -> Replacements:
    ended = _APPLY[TransactionEnded]

    def takes_back(state: State, event: TransactionEnded) -> None:
        staged = [
            (partition.producers[producer_id], staging.FIRST_PROVISIONAL_OFFSET + ~stream.places[0])
            for partition in state.partitions.values()
            for producer_id, stream in partition.staged.items()
            if producer_id in event.producer_ids and producer_id in partition.producers and not event.committed
        ]
        ended(state, event)
        for known, first_told in staged:
            older = [batch for batch in known.batches if batch.base_offset >= 0 or batch.base_offset < first_told]
            known.batches = older or known.batches

    return [(_APPLY, TransactionEnded, takes_back)]


@canary("compaction leaves out the streams that have entered its partition", shows=READ_WRONG)
def entered_streams_not_compacted() -> Replacements:
    candidate = CompactionSchedule._candidate

    def without(self: CompactionSchedule, *arguments: Any) -> object:
        found = candidate(self, *arguments)
        return None if found is None else found._replace(order=found.order._replace(joining=()))

    return [(CompactionSchedule, "_candidate", without)]


@canary("a stream that has entered its partition is forgotten before compaction has been over it", shows=READ_WRONG)
def entered_stream_forgotten_too_early() -> Replacements:
    def to_forget(self: CompactionSchedule) -> list[Command]:
        return [
            ForgetCompacted(topic=partition.topic, partition=partition.index, before_offset=seen.last_stable_offset)
            for partition, seen, _ in self._partitions()
            if partition.entered and partition.entered[0].end_offset <= seen.last_stable_offset
        ]

    return [(CompactionSchedule, "to_forget", to_forget)]


@canary(
    "what compaction takes in of a stream that has entered says that it lies where it was staged",
    shows=READ_WRONG + r"|liveness: ",
)
def batches_not_moved_by_compaction() -> Replacements:
    def unmoved(self: RecordCompaction, batch: Buffer, first_offset: int, append_time_ms: int) -> Buffer:
        return bytes(batch)

    return [(RecordCompaction, "moved", unmoved)]
