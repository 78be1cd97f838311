"""The events of staged streams (PIP-31, "Sidecar Approach")."""

from exacta.core.event import Event
from exacta.core.ids import (
    NO_WRITER_ID,
    Body,
    PartitionId,
    ProducerEpoch,
    ProducerId,
    WriterId,
)
from exacta.core.state.staged import HELD


class BatchStaged(Event, frozen=True, kw_only=True, array_like=True):
    """A record batch lies in a staged stream from `first_index` on, and no reader sees it.

    If its stream is spilled, its bytes are the event's payload in the journal. If not, they are `batch`, which the
    engine puts in. `provisional_offset` is what its writer is told. `size` is in bytes.
    """

    partition_id: PartitionId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    stream: PartitionId
    first_index: int
    provisional_offset: int
    record_count: int
    size: int
    max_timestamp_ms: int
    base_sequence: int
    at_ms: int
    body: Body = Body.KAFKA
    writer_id: WriterId = NO_WRITER_ID
    """The writer's number, as in BatchAppended."""
    takes_append_time: bool = False
    batch: bytes = b""

    @property
    def is_held(self) -> bool:
        """Return whether the state holds its bytes."""
        return self.stream == HELD


class StagedStreamSpilled(Event, frozen=True, kw_only=True, array_like=True):
    """The batches that the state holds of a staged stream lie in this stream of the journal from now on.

    They are the event's payload in the journal.
    """

    partition_id: PartitionId
    producer_id: ProducerId
    stream: PartitionId
