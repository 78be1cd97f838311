"""The invariant of leaders' epochs (decision 0060); `invariants.py` says how such functions are made."""

from collections.abc import Iterator

from exacta.core.events import BatchAppended, LeadTaken, TransactionEnded
from exacta.core.ids import PartitionId
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.values.leader_epochs import FIRST_EPOCH, end_of, epoch_at
from simulation.invariants.log import Log

Written = tuple[int, int, int]
"""An epoch, and the first and the last offset of what was written under it at once."""


def epochs_are_those_of_the_leaders(state: State, log: Log) -> Iterator[str]:
    """Epochs grow one by one, and each partition knows under which its records were written, and where each ends."""
    epoch = FIRST_EPOCH
    for event in log:
        if isinstance(event, LeadTaken):
            if event.leader_epoch != epoch + 1:
                yield f"leaders: {event} follows epoch {epoch}"
            epoch = event.leader_epoch
    if state.leader_epoch != epoch:
        yield f"leaders: the epoch is {state.leader_epoch}, and was last {epoch}"
    written = _written(log)
    for partition in state.partitions.values():
        yield from _of_partition(partition, written.get(partition.partition_id, []), epoch)


def _of_partition(partition: Partition, written: list[Written], last_epoch: int) -> Iterator[str]:
    start, name = partition.log_start_offset, f"{partition.topic}-{partition.index}"
    left = [(epoch, max(first, start), last) for epoch, first, last in written if last >= start]
    for epoch, first, last in left:
        found = {epoch_at(partition.leader_epochs, offset) for offset in (first, last)}
        if found != {epoch}:
            yield f"leaders: offsets {first} to {last} of {name} are of epochs {found}, and were written in {epoch}"
    for asked in range(last_epoch):
        until = next((first for epoch, first, _ in left if epoch > asked), partition.next_offset)
        present = max((epoch for epoch, _, _ in left if epoch <= asked), default=asked)
        found_end = end_of(partition.leader_epochs, asked, partition.next_offset)
        if found_end != (present, until):
            yield f"leaders: epoch {asked} of {name} ends at {found_end}, and not at {(present, until)}"


def _written(log: Log) -> dict[PartitionId, list[Written]]:
    written: dict[PartitionId, list[Written]] = {}
    epoch = FIRST_EPOCH
    for event in log:
        if isinstance(event, LeadTaken):
            epoch = event.leader_epoch
        elif isinstance(event, BatchAppended):
            row = (epoch, event.base_offset, event.base_offset + event.record_count - 1)
            written.setdefault(event.partition_id, []).append(row)
        elif isinstance(event, TransactionEnded):
            rows = [(partition_id, offset, 1) for partition_id, offset, _ in event.markers]
            rows += [(partition_id, offset, count) for partition_id, offset, _, count in event.entries]
            for partition_id, offset, count in sorted(rows):
                written.setdefault(partition_id, []).append((epoch, offset, offset + count - 1))
    return written
