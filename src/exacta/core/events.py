"""The events: all that can happen, one struct each. Durable state is a fold of the durable ones, in journal order.

Durable events are written as MessagePack arrays (`array_like`): a field may be added only at the end and with a
default, and `event.TAGS` has the number of each. Volatile events change the state in memory only: the course of a
rebalance, signs of life (decision 0025), and ids that are given out of what is reserved (0027).
"""

from collections.abc import Hashable
from typing import ClassVar

from exacta.core.commands import OffsetToCommit
from exacta.core.event import Event
from exacta.core.groups.events import (
    ConsumerGroupChanged,
    ConsumerGroupUpdated,
    GroupDeleted,
    GroupEmptied,
    GroupEpochsReserved,
    GroupSettled,
    MemberDue,
    MemberSeen,
    MembershipChanged,
    OffsetsCommitted,
    OffsetsDeleted,
)
from exacta.core.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_WRITER_ID,
    Body,
    Cause,
    Offset,
    PartitionId,
    ProducerEpoch,
    ProducerId,
    SubscriptionKey,
    TransactionId,
    WriterId,
)
from exacta.core.log.staging_events import BatchStaged, StagedStreamSpilled
from exacta.core.rejections import Rejection
from exacta.core.state.disk_room import DiskRoom
from exacta.core.state.usage import Table
from exacta.core.subscriptions.events import (
    ConsumerConnected,
    ConsumerDisconnected,
    DelaysEnded,
    EntriesDelivered,
    EntriesTakenBack,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    NonDurableMessagesAcknowledged,
    NonDurableSubscriptionCreated,
    NonDurableSubscriptionDeleted,
    NonDurableSubscriptionMoved,
    PermitsGranted,
    SubscriptionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
)

__all__ = [
    "AppendsRefused",
    "BatchAppended",
    "BatchStaged",
    "BrokerConfigsSet",
    "CompactedForgotten",
    "ConclusionHeard",
    "ConsumerConnected",
    "ConsumerDisconnected",
    "ConsumerGroupChanged",
    "ConsumerGroupUpdated",
    "DelaysEnded",
    "DiskRoomSet",
    "EntriesDelivered",
    "EntriesOwned",
    "EntriesTakenBack",
    "Entry",
    "Event",
    "GroupDeleted",
    "GroupEmptied",
    "GroupEpochsReserved",
    "GroupSettled",
    "HandlesAbandoned",
    "IdsReserved",
    "LogStartMoved",
    "Marker",
    "MemberDue",
    "MemberSeen",
    "MembershipChanged",
    "MessagesAcknowledged",
    "MessagesAcknowledgedInTransaction",
    "NonDurableMessagesAcknowledged",
    "NonDurableSubscriptionCreated",
    "NonDurableSubscriptionDeleted",
    "NonDurableSubscriptionMoved",
    "NothingAborted",
    "OffsetsCommitted",
    "OffsetsDeleted",
    "PartitionsAdded",
    "PermitsGranted",
    "ProducerBound",
    "ProducerIdAllocated",
    "ProducersExpired",
    "StagedStreamSpilled",
    "SubscriptionChanged",
    "SubscriptionCreated",
    "SubscriptionDeleted",
    "SubscriptionMoved",
    "TopicConfigsSet",
    "TopicCreated",
    "TopicDeleted",
    "TopicEpochMoved",
    "TransactionBegun",
    "TransactionEnded",
    "TransactionExtended",
    "TransactionJoined",
    "TransactionalIdsExpired",
    "TransactionalOffsetsCommitted",
    "WriterNamed",
    "WritersExpired",
]


class EntriesOwned(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: these entries, which are about to be made or to grow, belong to a host (`core.state.usage`)."""

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


class IdsReserved(Event, frozen=True, kw_only=True, array_like=True):
    """Producer ids and transaction ids below these may be given out. After a restart both go on there (0027)."""

    end_producer_id: ProducerId
    end_transaction_id: TransactionId


class ProducerIdAllocated(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: an idempotent producer without a transactional id was given a producer id, at epoch 0.

    What was reserved is durable, and that is enough for no other producer to be given the id.
    """

    durable: ClassVar[bool] = False
    producer_id: ProducerId


class ProducerBound(Event, frozen=True, kw_only=True, array_like=True):
    """A transactional id has this producer id and epoch from now on; lower ones are fenced.

    The previous pair is what the same client may still present to learn the new one (KIP-360); it is -1 after a
    takeover. `prepared` names the transaction that stays open, under the pair that it has (KIP-939). The client is the
    one that asked.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction_timeout_ms: int
    at_ms: int
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    previous_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    prepared: TransactionId | None = None
    cause: Cause = Cause.OWNER
    client_id: str = ""
    client_host: str = ""


class TransactionBegun(Event, frozen=True, kw_only=True, array_like=True):
    """A transaction is open from now on, with these as the first that take part.

    The owner is the transactional id that it belongs to. None: it is a handle, and the client is the one that began it.
    """

    transaction_id: TransactionId
    producer_ids: tuple[ProducerId, ...]
    producer_epoch: ProducerEpoch
    owner: str | None
    timeout_ms: int
    at_ms: int
    partitions: tuple[PartitionId, ...] = ()
    groups: tuple[str, ...] = ()
    client_id: str = ""
    client_host: str = ""


class TransactionExtended(Event, frozen=True, kw_only=True, array_like=True):
    """More partitions, groups or subscriptions take part in the open transaction from now on.

    `by_owner`: the holder of its transactional id is the one that has registered something.
    """

    transaction_id: TransactionId
    partitions: tuple[PartitionId, ...] = ()
    groups: tuple[str, ...] = ()
    at_ms: int = 0
    subscriptions: tuple[SubscriptionKey, ...] = ()
    by_owner: bool = False


class TransactionJoined(Event, frozen=True, kw_only=True, array_like=True):
    """The open transaction is joint from now on: it has this owner, and these producer ids, the owner's first."""

    transaction_id: TransactionId
    producer_ids: tuple[ProducerId, ...]
    producer_epoch: ProducerEpoch
    """The epoch of the owner's pair."""
    owner: str
    at_ms: int


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


class TransactionalOffsetsCommitted(Event, frozen=True, kw_only=True, array_like=True):
    """Offsets wait in the group until the transaction ends."""

    group_id: str
    transaction_id: TransactionId
    offsets: tuple[OffsetToCommit, ...]
    at_ms: int


Marker = tuple[PartitionId, Offset, ProducerId]
"""The place of a control batch, and the one of the transaction's producer ids that it is for."""

Entry = tuple[PartitionId, Offset, ProducerId, int]
"""The offset at which what a producer id has staged in a partition enters it, and the number of records."""


class TransactionEnded(Event, frozen=True, kw_only=True, array_like=True):
    """The transaction ended in all partitions and groups at once (decision D2).

    There is one marker for each partition and producer id that was written to; their bytes are the event's payload.
    There is none where the writes were staged (`core.log.staging`).
    The next pair is what the holder of `owner` has from now on (version 2, KIP-890); -1: still the one that it had.
    A client that ends nothing, and must have another pair, is given a transaction that began and ended in this event.
    """

    transaction_id: TransactionId
    producer_ids: tuple[ProducerId, ...]
    producer_epoch: ProducerEpoch
    committed: bool
    markers: tuple[Marker, ...]
    marker_epoch: ProducerEpoch
    """The markers say this epoch. Where the end bumps, it is above every write of the transaction (KIP-890)."""
    at_ms: int
    owner: str | None = None
    next_producer_id: ProducerId = NO_PRODUCER_ID
    next_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    cause: Cause = Cause.OWNER
    client_id: str = ""
    """The client that asked for it in another's place; empty where the holder, or nobody, did."""
    client_host: str = ""
    entries: tuple[Entry, ...] = ()
    """The places where staged streams enter the partitions, if the transaction commits. Batches that the state has held
    are the event's payload, behind the markers."""

    @property
    def bumps(self) -> bool:
        """Return whether the holder of its owner has another pair from now on."""
        return self.next_producer_id != NO_PRODUCER_ID

    def marker_in(self, partition_id: PartitionId, producer_id: ProducerId) -> Offset | None:
        """Return where the marker of a producer id lies in a partition; None: there is none."""
        for place, offset, whose in self.markers:
            if (place, whose) == (partition_id, producer_id):
                return offset
        return None


class ConclusionHeard(Event, frozen=True, kw_only=True, array_like=True):
    """The holder has said an end after the other side had ended its joint transaction, and may go on."""

    transactional_id: str
    committed: bool
    at_ms: int


class HandlesAbandoned(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the connections are closed over which these handles were begun, and nothing takes part in them."""

    durable: ClassVar[bool] = False
    transactions: tuple[TransactionId, ...]


class NothingAborted(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: an abort was answered although nothing is open: whatever the crash forgot has been given up."""

    durable: ClassVar[bool] = False
    transactional_id: str


class TransactionalIdsExpired(Event, frozen=True, kw_only=True, array_like=True):
    """Nothing is known of these transactional ids any more."""

    transactional_ids: tuple[str, ...]
    at_ms: int


class ProducersExpired(Event, frozen=True, kw_only=True, array_like=True):
    """Partitions know nothing of these producers any more."""

    producers: tuple[tuple[PartitionId, ProducerId], ...]


class WriterNamed(Event, frozen=True, kw_only=True, array_like=True):
    """A writer's name has this number from now on."""

    writer_id: WriterId
    name: str
    at_ms: int


class WritersExpired(Event, frozen=True, kw_only=True, array_like=True):
    """The names and the sequences of these writers are forgotten; their numbers are never used again."""

    writer_ids: tuple[WriterId, ...]


class TopicEpochMoved(Event, frozen=True, kw_only=True, array_like=True):
    """A writer has the partition for itself under this epoch, and those of lower ones are fenced."""

    partition_id: PartitionId
    topic_epoch: int


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
