"""The events of topics, partitions, their producers and named writers, and of the broker."""

from collections.abc import Hashable
from typing import ClassVar

from exacta.core.event import Event
from exacta.core.ids import (
    NO_PRINCIPAL,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_WRITER_ID,
    Body,
    Offset,
    PartitionId,
    PrincipalName,
    ProducerEpoch,
    ProducerId,
    WriterId,
)
from exacta.core.rejections import Rejection
from exacta.core.state.disk_room import DiskRoom
from exacta.core.values.usage import Table


class EntriesOwned(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: these entries, which are about to be made or to grow, belong to a host (`core.values.usage`)."""

    durable: ClassVar[bool] = False
    owner: str
    entries: tuple[tuple[Table, Hashable], ...]


class TopicCreated(Event, frozen=True, kw_only=True, array_like=True):
    """Partition ids of the topic are `first_partition_id` and the following ones."""

    topic: str
    topic_id: bytes
    first_partition_id: PartitionId
    partition_count: int
    configs: dict[str, str]
    at_ms: int


class TopicDeleted(Event, frozen=True, kw_only=True, array_like=True):
    """A topic was deleted. Its partition ids are never used again."""

    topic: str


class BatchAppended(Event, frozen=True, kw_only=True, array_like=True):
    """A record batch lies in the partition; its bytes are this event's payload in the journal."""

    partition_id: PartitionId
    base_offset: Offset
    record_count: int
    size: int
    max_timestamp_ms: int
    transactional: bool = False
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    base_sequence: int = -1
    at_ms: int = -1
    """The time of the append, where there is a writer; the writer's idleness counts from there."""
    body: Body = Body.KAFKA
    writer_id: WriterId = NO_WRITER_ID
    """The named writer, or below NO_WRITER_ID a nameless one; `base_sequence` is then the batch's highest sequence."""


class ProducersExpired(Event, frozen=True, kw_only=True, array_like=True):
    """Partitions know nothing of these producers any more."""

    producers: tuple[tuple[PartitionId, ProducerId], ...]


class WriterNamed(Event, frozen=True, kw_only=True, array_like=True):
    """A writer's name has this number from now on."""

    writer_id: WriterId
    name: str
    at_ms: int
    principal: PrincipalName = NO_PRINCIPAL


class WritersExpired(Event, frozen=True, kw_only=True, array_like=True):
    """The names and the sequences of these writers are forgotten; their numbers are never used again."""

    writer_ids: tuple[WriterId, ...]


class TopicEpochMoved(Event, frozen=True, kw_only=True, array_like=True):
    """A writer has the partition for itself under this epoch, and those of lower ones are fenced."""

    partition_id: PartitionId
    topic_epoch: int


class LeadTaken(Event, frozen=True, kw_only=True, array_like=True):
    """This node leads the log from now on, and what it writes is of this epoch (KIP-101)."""

    leader_epoch: int
    node_id: int
    at_ms: int


class TopicConfigsSet(Event, frozen=True, kw_only=True, array_like=True):
    """The topic's own configurations are these from now on."""

    topic: str
    configs: dict[str, str]


class BrokerConfigsSet(Event, frozen=True, kw_only=True, array_like=True):
    """The options that were set for this broker while it ran are these from now on; an empty id: for all brokers."""

    broker_id: str
    configs: dict[str, str]


class PartitionsAdded(Event, frozen=True, kw_only=True, array_like=True):
    """The topic has `partition_count` partitions more: their ids are `first_partition_id` and the following ones."""

    topic: str
    first_partition_id: PartitionId
    partition_count: int


class LogStartMoved(Event, frozen=True, kw_only=True, array_like=True):
    """The partition's records before this offset are deleted. `trimmed`: nobody asked for it, they were old or many."""

    partition_id: PartitionId
    log_start_offset: Offset
    trimmed: bool = False


class AppendsRefused(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: nothing is appended to the partition any more, and this is why; None: it takes batches again."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    reason: Rejection | None


class WritersClosed(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the partition has refused a batch, and takes nothing more from writers that were opened before."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId


class DiskRoomSet(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: this is the room on the disk; None: there is plenty."""

    durable: ClassVar[bool] = False
    room: DiskRoom | None


class CompactedForgotten(Event, frozen=True, kw_only=True, array_like=True):
    """Compaction has removed the records of aborted transactions that ended before this offset.

    The partition's own stream has what is left of the staged streams that had entered before it.
    """

    partition_id: PartitionId
    before_offset: Offset
