"""The changes of what readers may see: taken down when a group is sealed, and shown when it is durable."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from exacta.core.events import (
    BatchAppended,
    Event,
    LeadTaken,
    LogStartMoved,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    TransactionEnded,
)
from exacta.core.ids import PartitionId
from exacta.core.state.state import State
from exacta.ports.log import Visible

Changes = list[tuple[PartitionId, Visible | None]]


def _ended(state: State, event: TransactionEnded) -> list[PartitionId]:
    return [partition_id for partition_id, *_ in event.markers] + [partition_id for partition_id, *_ in event.entries]


def _added(state: State, event: TopicCreated | PartitionsAdded) -> list[PartitionId]:
    first = event.first_partition_id
    return [PartitionId(first + index) for index in range(event.partition_count)]


TOUCHES: Mapping[type[Event], Callable[[State, Any], Iterable[PartitionId]]] = {
    BatchAppended: lambda state, event: (event.partition_id,),
    TransactionEnded: _ended,
    LogStartMoved: lambda state, event: (event.partition_id,),
    TopicCreated: _added,
    PartitionsAdded: _added,
    TopicDeleted: lambda state, event: state.topics[event.topic].partition_ids,
    LeadTaken: lambda state, event: state.partitions,
}
"""The partitions of which readers will see something else after an event that is not applied yet."""


def visible_of(
    visible: Mapping[PartitionId, Visible], partition_ids: Iterable[PartitionId | None]
) -> list[Visible | None]:
    """Return what is seen of each of these partitions; None for an id that is None, or that nothing is seen of."""
    return list(map(visible.get, partition_ids))  # type: ignore[arg-type]


def visible_changes(state: State, partition_ids: Iterable[PartitionId]) -> Changes:
    """Return what these partitions will show once the state as of now is durable; None for one that is gone."""
    changes: Changes = []
    for partition_id in partition_ids:
        partition = state.partitions.get(partition_id)
        if partition is None:
            changes.append((partition_id, None))
        else:
            seen = Visible(
                partition.log_start_offset,
                partition.next_offset,
                partition.last_stable_offset,
                partition.leader_epochs,
            )
            changes.append((partition_id, seen))
    return changes


def show(visible: dict[PartitionId, Visible], changes: Changes) -> None:
    """Let readers see the changes: all of them in this step."""
    for partition_id, seen in changes:
        if seen is None:
            visible.pop(partition_id, None)
        else:
            visible[partition_id] = seen
