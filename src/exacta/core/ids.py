"""Names for the plain values that identify things. All are ints and strings at run time."""

from enum import IntEnum
from typing import NewType

ProducerId = NewType("ProducerId", int)
"""Names one producer for ever; never handed out twice. -1 on the wire means none."""

ProducerEpoch = NewType("ProducerEpoch", int)
"""Generation of a producer id; a higher one fences the lower (KIP-98)."""

PartitionId = NewType("PartitionId", int)
"""Dense number of a topic's partition, never used again after the topic is deleted; a stream of the journal."""

Offset = NewType("Offset", int)
"""Place of a record in its partition, from 0."""

Ticket = NewType("Ticket", int)
"""Names a request whose answer waits for others (JoinGroup, SyncGroup); given by the engine, opaque to the core."""


class TransactionVersion(IntEnum):
    """Which transaction protocol a request speaks; a client may speak one now and the other later (KIP-890)."""

    V1 = 1
    """Partitions and groups are registered by requests of their own; the epoch outlives a transaction."""
    V2 = 2
    """A write registers what it writes to; each end bumps the epoch, so that a pair names one transaction."""


NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_GENERATION = -1
