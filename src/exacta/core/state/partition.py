"""A partition: where its log ends, which producers it knows, and where transactions lie in it."""

from msgspec import Struct, field

from exacta.core.ids import Body, Offset, PartitionId, ProducerEpoch, ProducerId, WriterId
from exacta.core.state.staged import EnteredStream, Receipt, StagedStream
from exacta.core.state.subscription import Subscription
from exacta.core.values.leader_epochs import LeaderEpochs


class RetainedBatch(Struct, array_like=True):
    """A batch as far as a repeat of it must be recognised. `last` is inclusive."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    """The offset that its producer was told; of a staged batch it is provisional."""
    max_timestamp_ms: int = -1
    transactional: bool = False


class ProducerState(Struct, array_like=True):
    """A producer, as a partition knows it."""

    producer_epoch: ProducerEpoch
    batches: list[RetainedBatch]
    last_timestamp_ms: int = -1
    """The time of its last batch, by the client's clock."""
    last_append_ms: int = -1
    """The time of its last batch by our clock; a partition's producers are in the order of it."""


class AbortedTransaction(Struct, frozen=True, array_like=True):
    """One producer's aborted records in one partition: from its first to its marker, inclusive."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    runs: tuple[Offset, ...] = ()
    """The exact places of its records, as `Partition.open_runs` has them."""
    last_stable_offset: Offset = Offset(-1)
    """The partition's, once this was aborted: every transaction that began below it has ended by then."""


class Partition(Struct, array_like=True):
    """One partition. `open_transactions` maps producer id to first offset, in offset order (offsets only grow)."""

    partition_id: PartitionId
    topic: str
    index: int
    log_start_offset: Offset = Offset(0)
    next_offset: Offset = Offset(0)
    producers: dict[ProducerId, ProducerState] = field(default_factory=dict)
    open_transactions: dict[ProducerId, Offset] = field(default_factory=dict)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    open_runs: dict[ProducerId, list[Offset]] = field(default_factory=dict)
    """The places of the records of open transactions: first and last offset of each run that no other writer broke."""
    bodies: set[Body] = field(default_factory=set)
    """The encodings of all batches that were ever appended."""
    named_sequences: dict[WriterId, int] = field(default_factory=dict)
    """The highest sequence of each named writer."""
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    """The durable subscriptions of Apache Pulsar's consumers, by their names."""

    topic_epoch: int = -1
    """The epoch of the last writer that had the partition for itself; -1: there was none (`core.log.exclusive`)."""
    nameless_sequences: dict[ProducerId, dict[WriterId, int]] = field(default_factory=dict)
    """The highest sequence of each nameless writer, by the producer id of an open transaction."""
    staged: dict[ProducerId, StagedStream] = field(default_factory=dict)
    """The staged streams of open transactions, where the topic is a sidecar topic (`core.log.staging`)."""
    staged_count: int = 0
    """The number of records that were ever staged."""
    entered: list[EnteredStream] = field(default_factory=list)
    """The spilled streams whose transactions have committed, in the order of their offsets."""
    receipts: list[Receipt] = field(default_factory=list)
    """The offsets of Pulsar's messages that were staged, in the order in which they were staged."""
    leader_epochs: LeaderEpochs = ()
    """The first offset of each leader's epoch (`core.values.leader_epochs`)."""

    @property
    def nameless_writers(self) -> int:
        """Return how many nameless writers it remembers, in all transactions."""
        return sum(map(len, self.nameless_sequences.values()))

    @property
    def last_stable_offset(self) -> Offset:
        """Return the first offset of the oldest open transaction, or the next offset (invariant 4).

        Of a transaction whose first records were deleted, what is left counts.
        """
        for first_offset in self.open_transactions.values():
            return max(first_offset, self.log_start_offset)
        return self.next_offset

    def has_open(self, producer_id: ProducerId) -> bool:
        """Return whether an open transaction has written to the partition under this producer id."""
        return producer_id in self.open_transactions or producer_id in self.staged
