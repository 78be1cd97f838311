"""The commands: all that can be asked of the core. A command brings whatever entropy it needs.

Timers are commands too: the core asks for them in `Outcome.timers`, the engine sends them back when they are due, and
`decide` looks again whether they still apply.
"""

from typing import ClassVar

from msgspec import Struct, field

from exacta.core.command import Command, Parked
from exacta.core.groups.commands import (
    CommitOffsets,
    CommitTransactionalOffsets,
    ConsumerHeartbeat,
    DeleteGroup,
    DeleteOffsets,
    ExpireConsumer,
    ExpireGroups,
    ExpireMember,
    ExpireRebalance,
    ExpireRevocation,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    MemberToRemove,
    OffsetToCommit,
    SyncGroup,
)
from exacta.core.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Body,
    Cause,
    ProducerEpoch,
    ProducerId,
    TransactionId,
    TransactionVersion,
)
from exacta.core.log.commands import SetDiskRoom
from exacta.core.promises import Promise
from exacta.core.rejections import Rejection
from exacta.core.subscriptions.commands import (
    Acknowledge,
    AcknowledgeSoon,
    Connect,
    Deliver,
    Disconnect,
    EndDelays,
    ForgetIdleSubscription,
    Permit,
    Redeliver,
    Seek,
    Skip,
    Subscribe,
    Unsubscribe,
)
from exacta.core.writers import Writer

__all__ = [
    "HIGH_WATERMARK",
    "AbandonHandles",
    "AbortAfterLoss",
    "AbortByMarker",
    "Acknowledge",
    "AcknowledgeSoon",
    "AddGroup",
    "AddPartitions",
    "AppendBatch",
    "BeginTransaction",
    "Command",
    "CommitOffsets",
    "CommitTransactionalOffsets",
    "Connect",
    "ConsumerHeartbeat",
    "CreatePartitions",
    "CreateTopic",
    "DeleteGroup",
    "DeleteOffsets",
    "DeleteRecords",
    "DeleteTopic",
    "Deliver",
    "Disconnect",
    "EndDelays",
    "EndHandle",
    "EndTransaction",
    "EndTransactions",
    "ExpireConsumer",
    "ExpireGroups",
    "ExpireMember",
    "ExpireProducers",
    "ExpireRebalance",
    "ExpireRevocation",
    "ExpireTransaction",
    "ExpireTransactionalIds",
    "FenceAfterLoss",
    "ForgetCompacted",
    "ForgetIdleSubscription",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "JoinTransaction",
    "LeaveGroup",
    "MemberToRemove",
    "OffsetToCommit",
    "Parked",
    "Permit",
    "Redeliver",
    "RefuseAppends",
    "Seek",
    "SetBrokerConfigs",
    "SetDiskRoom",
    "SetTopicConfigs",
    "Skip",
    "Subscribe",
    "SyncGroup",
    "TakePartition",
    "TransactionToEnd",
    "Trim",
    "Unsubscribe",
]

HIGH_WATERMARK = -1
"""This stands for the high watermark where DeleteRecords names an offset."""


# --- topics -----------------------------------------------------------------------------------------------------------


class CreateTopic(Command, frozen=True, kw_only=True):
    """Create a topic. `topic_id` is 16 random bytes from the caller."""

    topic: str
    topic_id: bytes
    partition_count: int
    configs: dict[str, str] = field(default_factory=dict)
    validate_only: bool = False


class CreatePartitions(Command, frozen=True, kw_only=True):
    """Let a topic have `total_count` partitions, more than now; `assigned_count`: for how many a place was named."""

    topic: str
    total_count: int
    assigned_count: int | None = None
    validate_only: bool = False


class DeleteRecords(Command, frozen=True, kw_only=True):
    """Delete a partition's records before an offset, or all that there are (`HIGH_WATERMARK`).

    `allowed`: whether it asks for what it may, by its topic's policy too; what the policy is, is the caller's to know.
    """

    topic: str
    partition: int
    before_offset: int
    allowed: bool = True


class Trim(Command, frozen=True, kw_only=True):
    """Delete a partition's records before an offset because they are old or many, as far as nobody still needs them."""

    topic: str
    partition: int
    before_offset: int


class RefuseAppends(Command, frozen=True, kw_only=True):
    """Let a partition take no batch any more, for this reason; None: let it take batches again."""

    promises: ClassVar[Promise] = Promise.NOTHING

    topic: str
    partition: int
    reason: Rejection | None


class DeleteTopic(Command, frozen=True, kw_only=True):
    """Delete a topic with its records; its committed offsets go too.

    Named by `topic`, or by `topic_id`: then a topic that has the name by now, but another id, is left alone.
    """

    topic: str = ""
    topic_id: bytes = b""


class SetTopicConfigs(Command, frozen=True, kw_only=True):
    """Let the topic's own configurations be these from now on, whichever they were; their meaning is the caller's."""

    topic: str
    configs: dict[str, str]
    validate_only: bool = False


class SetBrokerConfigs(Command, frozen=True, kw_only=True):
    """Let these be the options that are set for a broker while it runs, whichever they were; the caller knows them.

    An empty id stands for all brokers (KIP-226).
    """

    broker_id: str
    configs: dict[str, str]
    validate_only: bool = False


class ForgetCompacted(Command, frozen=True, kw_only=True):
    """Forget aborted transactions and entered streams before an offset to which the partition is compacted."""

    topic: str
    partition: int
    before_offset: int


# --- producers and transactions ---------------------------------------------------------------------------------------


class InitProducerId(Command, frozen=True, kw_only=True):
    """Bind a producer id and epoch (KIP-98, KIP-360); with a transactional id fences and aborts the predecessor.

    `producer_id` and `producer_epoch` are what the client holds already (KIP-360), else -1. A producer of a
    `two_phase` commit gets no time-out; `keep_prepared` takes over what is open instead of aborting it (KIP-939).
    """

    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    two_phase: bool = False
    keep_prepared: bool = False
    client_id: str = ""
    client_host: str = ""


class AppendBatch(Command, frozen=True, kw_only=True):
    """Append one record batch, validated as bytes by the wire protocol, which keeps the bytes beside the command.

    `writer` is None where nobody can tell a repeat of the batch. `transaction` names the handle that the batch is
    written into, and its writer is None or a named one then. `handle_producer_id` is what its bytes say: by that
    readers find out which transaction they belong to.
    """

    promises: ClassVar[Promise] = Promise.WRITE

    topic: str
    partition: int
    record_count: int
    size: int
    max_timestamp_ms: int
    body: Body = Body.KAFKA
    writer: Writer | None = None
    transaction: TransactionId | None = None
    handle_producer_id: ProducerId = NO_PRODUCER_ID
    takes_append_time: bool = False
    """Its timestamps are the log's, so that of a batch that is staged they become the time of the commit."""


class TakePartition(Command, frozen=True, kw_only=True):
    """Give one writer a partition for itself. `topic_epoch` is what it got before; None: it comes for the first time.

    The front sees to it that nobody else writes there.
    """

    topic: str
    partition: int
    topic_epoch: int | None = None


class AddPartitions(Command, frozen=True, kw_only=True):
    """Register partitions with the open transaction, beginning one if none is (AddPartitionsToTxn).

    With `verify_only` nothing is registered: it is only told which of them are.
    """

    promises: ClassVar[Promise] = Promise.REGISTRATION

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    partitions: tuple[tuple[str, int], ...]
    verify_only: bool = False


class AddGroup(Command, frozen=True, kw_only=True):
    """Register a consumer group's offsets with the open transaction (AddOffsetsToTxn, version 1)."""

    promises: ClassVar[Promise] = Promise.REGISTRATION

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    group_id: str


class EndTransaction(Command, frozen=True, kw_only=True):
    """Commit or abort the transaction that this producer id and epoch name (EndTxn)."""

    promises: ClassVar[Promise] = Promise.END

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    commit: bool
    version: TransactionVersion = TransactionVersion.V1


class TransactionToEnd(Struct, frozen=True, kw_only=True):
    """One transaction of a set; its owner has written to `partitions`, or does not say where to."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    partitions: tuple[tuple[str, int], ...] = ()


class EndTransactions(Command, frozen=True, kw_only=True):
    """Commit or abort a set of transactions, all or none (a request of our own)."""

    promises: ClassVar[Promise] = Promise.END

    transactions: tuple[TransactionToEnd, ...]
    commit: bool


class BeginTransaction(Command, frozen=True, kw_only=True):
    """Begin a transaction without a transactional id: a handle. The client is the one that asks."""

    promises: ClassVar[Promise] = Promise.NEW_ID

    timeout_ms: int
    client_id: str = ""
    client_host: str = ""


class JoinTransaction(Command, frozen=True, kw_only=True):
    """Let a transactional id's transaction be known by its id, too; or let a transactional id take part in a handle.

    None: the transaction that this producer id and epoch have open. Else the handle of this id, which then belongs to
    the transactional id.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction: TransactionId | None = None


class EndHandle(Command, frozen=True, kw_only=True):
    """Commit or abort a handle or a joint transaction, by its id. Everybody who knows that may; the client asks.

    The cause `MARKER` stands for an operator, who aborts a joint one as any transaction of a transactional id.
    """

    promises: ClassVar[Promise] = Promise.END

    transaction_id: TransactionId
    commit: bool
    cause: Cause = Cause.OWNER
    client_id: str = ""
    client_host: str = ""


class AbandonHandles(Command, frozen=True, kw_only=True):
    """Note that the connection is closed over which these handles were begun."""

    promises: ClassVar[Promise] = Promise.NOTHING

    transactions: tuple[TransactionId, ...]


class AbortByMarker(Command, frozen=True, kw_only=True):
    """Abort the transaction that this producer has open in the partition (WriteTxnMarkers, KIP-664)."""

    promises: ClassVar[Promise] = Promise.END

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    topic: str
    partition: int
    client_id: str = ""
    client_host: str = ""


class ExpireTransaction(Command, frozen=True, kw_only=True):
    """Timer: abort this transaction if its time is up."""

    transaction_id: TransactionId
    early: bool = False
    """True: its time is up now, because a test says so."""


class FenceAfterLoss(Command, frozen=True, kw_only=True):
    """Recovery: fence the producer of this id, of whose transaction acknowledged writes may be missing; abort that."""

    transactional_id: str


class AbortAfterLoss(Command, frozen=True, kw_only=True):
    """Recovery: abort this transaction without an owner, of which acknowledged writes may be missing."""

    transaction_id: TransactionId


class ExpireTransactionalIds(Command, frozen=True, kw_only=True):
    """Timer: forget transactional ids that have been idle for too long."""


class ExpireProducers(Command, frozen=True, kw_only=True):
    """Timer: let partitions forget producers that have been idle for too long."""
