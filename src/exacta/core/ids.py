"""Names for the plain values that identify things. All are ints and strings at run time."""

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

NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_GENERATION = -1
