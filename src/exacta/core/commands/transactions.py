"""The commands to transactional ids, transactions and handles."""

from typing import ClassVar

from msgspec import Struct

from exacta.core.command import Command
from exacta.core.ids import (
    NO_PRINCIPAL,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Cause,
    PrincipalName,
    ProducerEpoch,
    ProducerId,
    TransactionId,
    TransactionVersion,
)
from exacta.core.promises import Promise


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
    principal: PrincipalName = NO_PRINCIPAL


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
    principal: PrincipalName = NO_PRINCIPAL


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

    The cause `MARKER` stands for an operator, who aborts a joint one as any transaction of a transactional id. A client
    that is `strict` hears of no outcome that is remembered: once the transaction has ended, its id is not found.
    """

    promises: ClassVar[Promise] = Promise.END

    transaction_id: TransactionId
    commit: bool
    cause: Cause = Cause.OWNER
    strict: bool = False
    client_id: str = ""
    client_host: str = ""


class AbandonHandles(Command, frozen=True, kw_only=True):
    """Note that the connection is closed over which these handles were begun."""

    promises: ClassVar[Promise] = Promise.INSIDE

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
