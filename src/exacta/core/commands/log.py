"""The commands to topics, partitions and named writers, and to the broker."""

from typing import ClassVar

from msgspec import field

from exacta.core.command import Command
from exacta.core.ids import (
    NO_PRODUCER_ID,
    Body,
    PartitionId,
    ProducerId,
    TransactionId,
)
from exacta.core.promises import Promise
from exacta.core.rejections import Rejection
from exacta.core.state.disk_room import DiskRoom
from exacta.core.writers import Writer

HIGH_WATERMARK = -1
"""This stands for the high watermark where DeleteRecords names an offset."""


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

    promises: ClassVar[Promise] = Promise.INSIDE

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


class AppendBatch(Command, frozen=True, kw_only=True):
    """Append one record batch, validated as bytes by the wire protocol, which keeps the bytes beside the command.

    `writer` is None where nobody can tell a repeat of the batch. `transaction` names the handle that the batch is
    written into, and its writer is no idempotent one then. `handle_producer_id` is what its bytes say: by that
    readers find out which transaction they belong to.

    A writer that was opened names its partition by `partition_id`, since a topic that was created again has others, and
    says by `closings` how often the partition had closed its writers by then (`exacta.core.log.closing`). Kafka's
    producers are not opened: both are None.
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
    partition_id: PartitionId | None = None
    closings: int | None = None
    takes_append_time: bool = False
    """Its timestamps are the log's, so in a batch that is staged they become the time of the commit."""


class TakePartition(Command, frozen=True, kw_only=True):
    """Give one writer a partition for itself. `topic_epoch` is what it got before; None: it comes for the first time.

    The front sees to it that nobody else writes there.
    """

    topic: str
    partition: int
    topic_epoch: int | None = None


class TakeLead(Command, frozen=True, kw_only=True):
    """Let this node lead the log from now on, under an epoch of its own (KIP-101)."""

    node_id: int


class ExpireProducers(Command, frozen=True, kw_only=True):
    """Timer: let partitions forget producers that have been idle for too long."""


class SetDiskRoom(Command, frozen=True, kw_only=True):
    """Go by this room on the disk from now on; None: there is plenty."""

    promises: ClassVar[Promise] = Promise.INSIDE

    room: DiskRoom | None
