"""The answers to accepted commands. A wire protocol turns these into its own responses."""

from msgspec import Struct

from exacta.core.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ConsumerId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TransactionId,
)
from exacta.core.rejections import Rejection
from exacta.core.values.acl import Acl
from exacta.core.values.runs import Run


class Reply(Struct, frozen=True, kw_only=True):
    """Base of all replies."""


class Done(Reply, frozen=True, kw_only=True):
    """The command took effect, or had already; there is nothing more to say."""


DONE = Done()


class Appended(Reply, frozen=True, kw_only=True):
    """A batch is in the log, now or since an earlier try, from `base_offset` on; its timestamp is told in a repeat."""

    base_offset: Offset
    repeated: bool = False
    max_timestamp_ms: int = -1


class AlreadyStored(Reply, frozen=True, kw_only=True):
    """An earlier try of the batch is in the log, at an offset that nobody remembers."""


ALREADY_STORED = AlreadyStored()


class ProducerBoundReply(Reply, frozen=True, kw_only=True):
    """The producer id and epoch that the client uses from now on."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    open_producer_id: ProducerId = NO_PRODUCER_ID
    open_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    """The pair of a prepared transaction, which stays open (KIP-939)."""


class PartitionsVerified(Reply, frozen=True, kw_only=True):
    """The answer whether each partition, in the command's order, is part of the producer's open transaction."""

    registered: tuple[bool, ...]


class TransactionEndedReply(Reply, frozen=True, kw_only=True):
    """The transaction ended as asked; the pair is what the client uses next (changes under KIP-890)."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch


class TransactionBegunReply(Reply, frozen=True, kw_only=True):
    """A handle is open: its id, and the producer id under which its records lie, at epoch 0."""

    transaction_id: TransactionId
    producer_id: ProducerId


class TransactionJoinedReply(Reply, frozen=True, kw_only=True):
    """The transaction is joint: the other side names it by this id."""

    transaction_id: TransactionId


class LeadTakenReply(Reply, frozen=True, kw_only=True):
    """The epoch of the leader."""

    leader_epoch: int


class PartitionTaken(Reply, frozen=True, kw_only=True):
    """The writer has the partition for itself, under this epoch."""

    topic_epoch: int


class TransactionsRefused(Reply, frozen=True, kw_only=True):
    """None of a set of transactions was ended: `rejections`, in the command's order, say which stood in the way."""

    rejections: tuple[Rejection | None, ...]


class TopicCreatedReply(Reply, frozen=True, kw_only=True):
    """A topic exists now."""

    topic_id: bytes
    partition_count: int


class TopicDeletedReply(Reply, frozen=True, kw_only=True):
    """The topic that this was is gone."""

    topic: str
    topic_id: bytes


class RecordsDeleted(Reply, frozen=True, kw_only=True):
    """The partition's records begin here, or where they have been before."""

    log_start_offset: Offset


class OffsetsTaken(Reply, frozen=True, kw_only=True):
    """The offsets without a rejection are committed; the rejections are in the command's order."""

    rejections: tuple[Rejection | None, ...]


class OffsetsDeletedReply(Reply, frozen=True, kw_only=True):
    """The partitions without a rejection, in the command's order, have no offset in the group any more."""

    rejections: tuple[Rejection | None, ...]


class MemberIdRequired(Reply, frozen=True, kw_only=True):
    """Join again under this member id (KIP-394)."""

    member_id: str


class Joined(Reply, frozen=True, kw_only=True):
    """A rebalance is complete; only the leader is told the members: id, instance id, metadata.

    `skip_assignment`: they have their assignments already (KIP-814).
    """

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


class MembersLeft(Reply, frozen=True, kw_only=True):
    """The members without a rejection, in the command's order, are in the group no more."""

    rejections: tuple[Rejection | None, ...]


class ConsumerHeartbeatDone(Reply, frozen=True, kw_only=True):
    """The member's epoch, and what it shall own: topic ids and partitions; None where it knows."""

    member_id: str
    member_epoch: int
    assignment: frozenset[tuple[bytes, int]] | None = None


class Synced(Reply, frozen=True, kw_only=True):
    """The member's assignment in this generation."""

    protocol_type: str
    protocol: str
    assignment: bytes


class Subscribed(Reply, frozen=True, kw_only=True):
    """There is a subscription; its first message that is not acknowledged is at the position, or comes after it."""

    position: Offset
    is_new: bool


class Delivering(Struct, frozen=True, kw_only=True):
    """An entry that a consumer is to be sent; of its messages these are free, and the others are not for it."""

    consumer_id: ConsumerId
    base: Offset
    count: int
    redeliveries: int
    free: tuple[Run, ...]


class Delivered(Reply, frozen=True, kw_only=True):
    """Consumers have these entries from now on."""

    entries: tuple[Delivering, ...] = ()


class AclsDeletedReply(Reply, frozen=True, kw_only=True):
    """The access rules that each filter, in the command's order, has matched; they are gone."""

    deleted: tuple[tuple[Acl, ...], ...]


class ScramKeysAltered(Reply, frozen=True, kw_only=True):
    """Each user, once, in the order in which the command names them first; those without a rejection are altered."""

    rejections: tuple[tuple[str, Rejection | None], ...]
