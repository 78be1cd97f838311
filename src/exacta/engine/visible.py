"""The offsets that readers may see: of durable state only, advanced in one step for all partitions of a group."""

from collections.abc import Iterable

from msgspec import Struct

from exacta.core.ids import Offset, PartitionId
from exacta.core.state.leader_epochs import LeaderEpochs
from exacta.core.state.state import State


class Visible(Struct, frozen=True):
    """One partition's offsets, and its leaders' epochs, as of the last durable group."""

    log_start_offset: Offset
    high_watermark: Offset
    last_stable_offset: Offset
    leader_epochs: LeaderEpochs = ()

    def offsets(self, read_committed: bool) -> tuple[Offset, Offset]:
        """Return the first offset that a reader may see, and the one after the last."""
        return self.log_start_offset, self.last_stable_offset if read_committed else self.high_watermark


Changes = list[tuple[PartitionId, Visible | None]]


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
