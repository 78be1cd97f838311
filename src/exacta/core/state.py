"""The state: a fold of events, as plain mutable structs. Only `apply` changes it; everybody may read it.

What is durable lies in `State` itself and is what a snapshot holds (`snapshot.py`); what goes on in a group right now,
and what is derived (indexes over the rest), lies beside it in `Volatile` and is rebuilt after recovery.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct, field

from exacta.core.consumer_membership import ConsumerGroup
from exacta.core.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Offset,
    PartitionId,
    ProducerEpoch,
    ProducerId,
)
from exacta.core.incidents import Incident
from exacta.core.membership import Membership
from exacta.core.rejections import Rejection


class Limits(Struct, frozen=True, kw_only=True):
    """Numbers that bound the semantics; parameters, so that tests reach them in a few steps."""

    highest_epoch: int = 32766
    """The highest producer epoch that a client is given (Kafka's Short.MAX_VALUE - 1); then the producer id rotates."""
    sequence_modulus: int = 2**31
    """Sequences go from 0 to this, exclusive, and begin again at 0."""
    retained_batches: int = 5
    """Batches remembered per producer and partition to recognise repeats (KIP-98); clients have at most 5 in flight."""
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    """How long an idle transactional id is remembered; never forgotten while its transaction is open."""
    producer_id_expiration_ms: int = 86_400_000
    """How long a partition remembers an idle producer."""
    transactional_id_expiry_interval_ms: int = 3_600_000
    """How often idle ones are looked for."""
    producer_id_expiry_interval_ms: int = 600_000
    max_expired_at_once: int = 1_000
    """In one step: a bound on how long everybody else waits for it."""
    max_incidents_per_id: int = 8
    max_ids_with_incidents: int = 2_000
    """The reasons of fencings and aborts that are kept, of the transactional ids to which the last ones happened."""
    max_transactions_ended_at_once: int = 10_000
    """In one command (EndTransactions), together with the partitions that they hold: a bound on how long everybody else
    waits for it."""
    max_partitions_ended_at_once: int = 20_000
    offset_metadata_max_bytes: int = 4096
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    max_pending_members: int = 1_000
    """Ids of one group that are given out and not used yet (KIP-394): each waits for a session's time, and every join
    copies them all."""
    group_initial_rebalance_delay_ms: int = 0
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """By preference: the first is for groups whose members ask for none."""
    max_partitions_per_topic: int = 10_000
    max_partitions: int = 100_000
    """Of all topics. Each costs memory and time at every start, whoever asked for it."""
    max_groups: int = 100_000
    """That have offsets, and that have had members since the last start; each costs what a partition does."""
    max_transactional_ids: int = 1_000_000
    """A further one is refused, not an old one forgotten: who floods the broker with them must not fence others."""
    max_producers_per_partition: int = 10_000
    """A further one is taken in for the one that has been silent longest, if that is long enough."""
    producer_protected_ms: int = 600_000
    """So long after its last batch a producer may repeat it, and must be known: longer than any client's delivery
    time-out by default. Who floods a partition with producers is refused; he does not make others write twice."""


class RetainedBatch(Struct, array_like=True):
    """A batch as far as a repeat of it must be recognised. `last` is inclusive."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    max_timestamp_ms: int = -1
    transactional: bool = False


class ProducerState(Struct, array_like=True):
    """What a partition knows of one producer."""

    producer_epoch: ProducerEpoch
    batches: list[RetainedBatch]
    last_timestamp_ms: int = -1
    """Of its last batch, by the client's clock."""
    last_append_ms: int = -1
    """By ours; a partition's producers are in the order of it."""


class AbortedTransaction(Struct, frozen=True, array_like=True):
    """One producer's aborted records in one partition: from its first to its marker, inclusive."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    runs: tuple[Offset, ...] = ()
    """Where exactly its records lie, as `Partition.open_runs` says it."""
    last_stable_offset: Offset = Offset(-1)
    """Of the partition, once this was aborted: every transaction that began below it has ended by then."""


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
    """Where the records of open transactions lie: first and last offset of each run that no other writer broke."""

    @property
    def last_stable_offset(self) -> Offset:
        """Return the first offset of the oldest open transaction, or the next offset (invariant 4).

        Of a transaction whose first records were deleted, what is left counts.
        """
        for first_offset in self.open_transactions.values():
            return max(first_offset, self.log_start_offset)
        return self.next_offset


class Topic(Struct, array_like=True):
    """A topic. Its first partitions' ids follow one another, those of partitions added later are in `added`."""

    topic: str
    topic_id: bytes
    first_partition_id: PartitionId
    created_count: int
    """How many partitions it was created with."""
    configs: dict[str, str]
    added: list[PartitionId] = field(default_factory=list)

    @property
    def partition_count(self) -> int:
        """Return how many partitions there are now."""
        return self.created_count + len(self.added)

    @property
    def partition_ids(self) -> list[PartitionId]:
        """Return the ids of all partitions, in the order of their indexes."""
        first = self.first_partition_id
        return [*map(PartitionId, range(first, first + self.created_count)), *self.added]

    def partition_id(self, index: int) -> PartitionId | None:
        """Return the id of a partition; None if there is none of this index."""
        if 0 <= index < self.created_count:
            return PartitionId(self.first_partition_id + index)
        if 0 <= index < self.partition_count:
            return self.added[index - self.created_count]
        return None


class Phase(Enum):
    """Where a transactional id stands. Ending is one event, so nothing is ever half ended (DESIGN D2)."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


class KeptTransaction(Struct, frozen=True, array_like=True):
    """The pair and time-out with which an open transaction was begun, where its id has another holder by now."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction_timeout_ms: int


class Transactional(Struct, array_like=True):
    """A transactional id: who holds it, and its open or last transaction.

    The previous pair is valid for one more InitProducerId of the same client (KIP-360); -1 where a takeover happened.
    Where the end of a transaction made the present pair, and nothing has begun under that (`bumped_by_end`), it also
    names the transaction.

    A transaction that was kept when its id got another holder (KIP-939) has the pair of who wrote it until it ends.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    transaction_timeout_ms: int
    phase: Phase = Phase.EMPTY
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    previous_producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    start_ms: int = -1
    last_update_ms: int = -1
    partitions: set[PartitionId] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    bumped_by_end: bool = False
    kept: KeptTransaction | None = None
    client_id: str = ""
    """Whose it is, as that client said when it initialised; empty where nobody has noted it."""
    client_host: str = ""

    @property
    def open_pair(self) -> tuple[ProducerId, ProducerEpoch]:
        """Return the pair of the open transaction's records, which a kept one does not share with its holder."""
        if self.kept is not None:
            return self.kept.producer_id, self.kept.producer_epoch
        return self.producer_id, self.producer_epoch

    @property
    def open_timeout_ms(self) -> int:
        """Return the time-out of the open transaction."""
        return self.transaction_timeout_ms if self.kept is None else self.kept.transaction_timeout_ms

    @property
    def has_unused_pair(self) -> bool:
        """Whether nothing has begun or ended under the present pair yet."""
        return self.phase is Phase.EMPTY or self.bumped_by_end

    @property
    def deadline_ms(self) -> int | None:
        """Return when the open transaction is aborted; None: never, it takes part in a two-phase commit (KIP-939)."""
        if self.open_timeout_ms == NO_TIMEOUT_MS:
            return None
        return self.start_ms + self.open_timeout_ms


class CommittedOffset(Struct, frozen=True, array_like=True):
    """A group's position in a partition; `order` tells which of two commits came later."""

    offset: int
    leader_epoch: int
    metadata: str
    at_ms: int
    order: int


OffsetMap = dict[str, dict[int, CommittedOffset]]
"""Topic -> partition index -> offset."""


class Group(Struct, array_like=True):
    """A group's offsets: committed ones, and those that wait for their transaction, by producer id."""

    group_id: str
    offsets: OffsetMap = field(default_factory=dict)
    pending: dict[ProducerId, OffsetMap] = field(default_factory=dict)


class Volatile(Struct):
    """What a restart forgets or rebuilds."""

    topic_names: dict[bytes, str] = field(default_factory=dict)
    """By topic id: which topic it names now (KIP-516)."""
    memberships: dict[str, Membership] = field(default_factory=dict)
    """Groups as they are now; as `State.settled` has them after a restart."""
    consumer_groups: dict[str, ConsumerGroup] = field(default_factory=dict)
    """A group id is here, or in `memberships`, or in neither."""
    has_recovered: bool = False
    """There is a past, of which groups without members are forgotten."""
    least_group_epoch: int = 0
    """No group comes to an epoch or a generation below: one that the last crash has forgotten may have had it."""
    first_group_epoch: int = 1
    """Where a new group of the consumer protocol begins to count: no group has had a later epoch that is gone now."""
    member_deadlines_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    transactional_by_producer: dict[ProducerId, Transactional] = field(default_factory=dict)
    may_have_forgotten: set[str] = field(default_factory=set)
    """Transactional ids of which a stop of the machine may have forgotten an acknowledged AddPartitions or AddGroup."""


class State(Struct):
    """Everything that the core knows."""

    limits: Limits = field(default_factory=Limits)
    topics: dict[str, Topic] = field(default_factory=dict)
    partitions: dict[PartitionId, Partition] = field(default_factory=dict)
    transactionals: dict[str, Transactional] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    next_producer_id: ProducerId = ProducerId(0)
    next_partition_id: PartitionId = PartitionId(0)
    next_commit_order: int = 0
    incidents: dict[str, list[Incident]] = field(default_factory=dict)
    reserved_group_epoch: int = 0
    """All epochs and generations that groups have had are below (decision 0012)."""
    settled: dict[str, Membership] = field(default_factory=dict)
    """Groups of the classic protocol that have members, as their last rebalance has left them (decision 0025)."""
    settled_consumers: dict[str, ConsumerGroup] = field(default_factory=dict)
    """Groups of the consumer protocol that have members."""
    volatile: Volatile = field(default_factory=Volatile)

    def has_group(self, group_id: str) -> bool:
        """Whether there is a group of this name: it has offsets, or has had members since the last start."""
        volatile = self.volatile
        return group_id in self.groups or group_id in volatile.memberships or group_id in volatile.consumer_groups

    @property
    def unknown_group(self) -> Rejection:
        """Return what a member of a group is told that we do not know.

        After a restart it may have been one: groups without members are forgotten. Then it must join again, as clients
        do that are no members any more, while most give up where there is no group.
        """
        return Rejection.UNKNOWN_MEMBER_ID if self.volatile.has_recovered else Rejection.GROUP_ID_NOT_FOUND

    def has_room_for_group(self, group_id: str) -> bool:
        """Whether this group is there already or may begin."""
        members_of = len(self.volatile.memberships) + len(self.volatile.consumer_groups)
        most = max(len(self.groups), members_of)
        return most < self.limits.max_groups or self.has_group(group_id)

    def whose_transaction(self, producer_id: ProducerId) -> Transactional | None:
        """Return the transactional id whose open transaction has records under this producer id, if one has."""
        held = self.volatile.transactional_by_producer.get(producer_id)
        if held is None:  # maybe one that was kept, and whose holder has another producer id by now
            kept = (each for each in self.transactionals.values() if each.kept and each.open_pair[0] == producer_id)
            held = next(kept, None)
        return held if held is not None and held.phase is Phase.ONGOING else None

    def partition(self, topic: str, index: int) -> Partition | None:
        """Look up a partition by name and index."""
        entry = self.topics.get(topic)
        partition_id = None if entry is None else entry.partition_id(index)
        return None if partition_id is None else self.partitions[partition_id]
