"""The changes of what readers may see: taken down when a group is sealed, and shown when it is durable."""

from collections.abc import Iterable, Mapping

from exacta.core.ids import PartitionId
from exacta.core.state.state import State
from exacta.ports.log import Visible

Changes = list[tuple[PartitionId, Visible | None]]


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
