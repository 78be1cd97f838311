"""The events of transactional ids, transactions and handles."""

from typing import ClassVar

from exacta.core.commands import OffsetToCommit
from exacta.core.event import Event
from exacta.core.ids import (
    NO_PRINCIPAL,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Cause,
    Offset,
    PartitionId,
    PrincipalName,
    ProducerEpoch,
    ProducerId,
    SubscriptionKey,
    TransactionId,
)


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
    principal: PrincipalName = NO_PRINCIPAL


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
    principal: PrincipalName = NO_PRINCIPAL
    """The principal of the client that began it, also where it has an owner."""


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


class TransactionalOffsetsCommitted(Event, frozen=True, kw_only=True, array_like=True):
    """Offsets wait in the group until the transaction ends."""

    group_id: str
    transaction_id: TransactionId
    offsets: tuple[OffsetToCommit, ...]
    at_ms: int


Marker = tuple[PartitionId, Offset, ProducerId]
"""The place of a control batch, and the one of the transaction's producer ids that it is for."""


StreamEntry = tuple[PartitionId, Offset, ProducerId, int]
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
    entries: tuple[StreamEntry, ...] = ()
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
