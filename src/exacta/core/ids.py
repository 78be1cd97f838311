"""Names for the plain values that identify things. All are ints and strings at run time."""

from enum import IntEnum
from typing import NewType

ProducerId = NewType("ProducerId", int)
"""Names one producer for ever; never handed out twice. -1 on the wire means none."""

ProducerEpoch = NewType("ProducerEpoch", int)
"""Generation of a producer id; a higher one fences the lower (KIP-98)."""

TransactionId = NewType("TransactionId", int)
"""Names one transaction for ever; never handed out twice, and no client's to choose."""

PartitionId = NewType("PartitionId", int)
"""Dense number of a topic's partition, never used again after the topic is deleted; a stream of the journal."""

Offset = NewType("Offset", int)
"""The place of a record in its partition, from 0."""

WriterId = NewType("WriterId", int)
"""Dense number that stands for a writer's name in events; -1 means that the writer has no name."""

PrincipalName = NewType("PrincipalName", str)
"""The principal of a client that has logged in, as Kafka writes it (`User:alice`); NO_PRINCIPAL where it has not."""
NO_PRINCIPAL = PrincipalName("")
"""The name of `User:ANONYMOUS` in events and in the state, where it takes no room (decision 0059)."""
ConsumerId = NewType("ConsumerId", int)
"""Names a connected consumer of a subscription; given by the front that has it, and never used again in one life."""

Ticket = NewType("Ticket", int)
"""Names a request whose answer waits for others (JoinGroup, SyncGroup); given by the engine, opaque to the core."""


SubscriptionKey = tuple[PartitionId, str]
"""Names a subscription of a partition. A name may be used again after its subscription is deleted."""


class Body(IntEnum):
    """The encoding of a batch's records. Its value is the magic byte in the header that every batch has."""

    KAFKA = 2
    """Kafka's record format version 2."""
    PULSAR = 0x50
    """One Pulsar entry, as its producer sent it."""


class TransactionVersion(IntEnum):
    """The transaction protocol that a request speaks; a client may speak one now and the other later (KIP-890)."""

    V1 = 1
    """Partitions and groups are registered by requests of their own; the epoch outlives a transaction."""
    V2 = 2
    """A write registers what it writes to; each end bumps the epoch, so that a pair names one transaction."""


class Cause(IntEnum):
    """The reason why a transaction was aborted, its producer fenced, or its transactional id forgotten."""

    OWNER = 0
    """The transaction's own producer asked for it."""
    NEW_INSTANCE = 1
    """Somebody else initialised the transactional id."""
    TIME_OUT = 2
    """The transaction was open for longer than its producer had asked for."""
    MARKER = 3
    """An operator wrote an abort marker (WriteTxnMarkers), or named the transaction by its id (AbortHandles)."""
    SET = 4
    """The transaction was ended as one of a set, by a client that knew its pair (EndTransactions)."""
    IDLE = 5
    """Nothing was heard of the transactional id for too long. Or a handle made room for another one: its connection had
    closed, and nothing took part in it."""
    LOSS = 6
    """The broker's machine stopped, and may have lost writes of the transaction."""
    OTHER_SIDE = 7
    """The transaction was joint, and a client that knew its id ended it, not its own producer."""


NO_TIMEOUT_MS = 2**31 - 1
"""The time-out of a transaction that takes part in a two-phase commit: none (KIP-939; Kafka's own number for it)."""

NO_PRODUCER_ID = ProducerId(-1)
NO_TRANSACTION_ID = TransactionId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_WRITER_ID = WriterId(-1)
NO_GENERATION = -1
