"""Planted bugs of what readers get."""

from collections.abc import Collection, Sequence
from typing import Any

from exacta.core.groups import reading as group_reading
from exacta.core.ids import PartitionId
from exacta.core.queries import group_offsets
from exacta.core.state import aborted
from exacta.core.state.partition import AbortedTransaction, Partition
from exacta.core.state.state import State
from exacta.engine import fetch_plan, journal_writer
from exacta.engine.visible import Changes, visible_changes
from simulation.canaries import Replacements, canary


@canary(
    "the last stable offset follows the newest open transaction, not the oldest",
    shows=r"4: (readers of partition .* are shown|LSO of)",
)
def stable_offset_of_the_newest() -> Replacements:
    def last_stable_offset(self: Partition) -> int:
        return (
            max([*self.open_transactions.values(), self.log_start_offset])
            if self.open_transactions
            else int(self.next_offset)
        )

    return [(Partition, "last_stable_offset", property(last_stable_offset))]


@canary(
    "the end of a transaction is shown partition by partition, as by Apache Kafka's markers, without an older open one",
    shows=r"3: .* has ended, and nothing older is open before its record",
)
def last_partition_is_shown_later() -> Replacements:
    def all_but_the_last(state: State, partition_ids: Collection[PartitionId]) -> Changes:
        changes = visible_changes(state, partition_ids)
        return changes[:-1] or changes

    return [(journal_writer, "visible_changes", all_but_the_last)]


@canary(
    "the list of aborted transactions lacks those that began before the reader's position (KAFKA-17801)",
    shows=r"aborted read: ",
)
def aborted_list_incomplete() -> Replacements:
    between = aborted.aborted_between

    def incomplete(partition: Partition, from_offset: Any, end_offset: Any) -> Sequence[AbortedTransaction]:
        return [each for each in between(partition, from_offset, end_offset) if each.first_offset >= from_offset]

    return [(fetch_plan, "aborted_between", incomplete)]


@canary("the list of aborted transactions is empty (seen in another broker)", shows=r"aborted read: ")
def aborted_list_empty() -> Replacements:
    return [(fetch_plan, "aborted_between", lambda partition, from_offset, end_offset: [])]


@canary(
    "OffsetFetch does not wait for the end of a transaction that has offsets pending (KIP-447)",
    shows=r"offset and data apart: ",
)
def pending_offsets_ignored() -> Replacements:
    positions = group_reading.positions

    def unstable(state: Any, group_id: str, topics: Any, *, require_stable: bool) -> Any:
        return positions(state, group_id, topics, require_stable=False)

    return [(group_offsets, "positions", unstable)]
