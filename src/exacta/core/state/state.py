"""The state: a fold of events, as plain mutable structs. Only `apply` changes it; everybody may read it.

What is durable lies in `State` itself and is what a snapshot holds (`snapshot.py`). What goes on in a group right now,
what is derived (indexes over the rest) and which ids come next lie beside it in `Volatile`. Recovery rebuilds those.
"""

from msgspec import Struct, field

from exacta.core.ids import PartitionId, ProducerId, SubscriptionKey, TransactionId, WriterId
from exacta.core.rejections import Rejection
from exacta.core.state.acl_index import AclIndex
from exacta.core.state.classic_membership import Membership
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.delivery import Delivery
from exacta.core.state.disk_room import DiskRoom
from exacta.core.state.group import Group
from exacta.core.state.incidents import Incident
from exacta.core.state.partition import Partition
from exacta.core.state.subscription import NonDurableSubscription, Subscription
from exacta.core.state.topic import Topic
from exacta.core.state.transaction import EndedHandle, Transaction, TransactionalId
from exacta.core.state.writer import KnownWriter
from exacta.core.values.acl import Acl
from exacta.core.values.leader_epochs import FIRST_EPOCH
from exacta.core.values.limits import Limits
from exacta.core.values.quotas import QuotaEntity, QuotaKey
from exacta.core.values.scram import ScramKey
from exacta.core.values.usage import Table, Usage, no_usage


class Volatile(Struct):
    """The part of the state that a restart forgets or rebuilds."""

    topic_names: dict[bytes, str] = field(default_factory=dict)
    """The topic that each topic id names now (KIP-516)."""
    memberships: dict[str, Membership] = field(default_factory=dict)
    """The groups as they are now. After a restart they are as `State.settled` has them."""
    consumer_groups: dict[str, ConsumerGroup] = field(default_factory=dict)
    """A group id is here, or in `memberships`, or in neither."""
    has_recovered: bool = False
    """True after a restart, which forgets groups without members."""
    least_group_epoch: int = 0
    """No group gets an epoch or a generation below this: a group that the last crash has forgotten may have had it."""
    first_group_epoch: int = 1
    """A new group of the consumer protocol begins to count here: no group has had a later epoch that is gone now."""
    emptied_ms: dict[str, int] = field(default_factory=dict)
    """The times at which groups have lost their last members, of those that had some since the last start."""
    member_deadlines_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    members_due_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    """The times until which members that speak the classic protocol in a group of the other one must join or sync."""
    writer_ids: dict[str, WriterId] = field(default_factory=dict)
    """Named writers by their names."""
    holder_by_producer: dict[ProducerId, TransactionalId] = field(default_factory=dict)
    """The transactional id whose present pair has this producer id."""
    transaction_by_producer: dict[ProducerId, Transaction] = field(default_factory=dict)
    """The open transaction whose records lie under this producer id."""
    open_handles: int = 0
    """The number of open transactions that are known by their ids: handles, and joint ones."""
    handle_participants: int = 0
    """The number of participants of all of these (`Transaction.participants`)."""
    deliveries: dict[SubscriptionKey, Delivery] = field(default_factory=dict)
    """The course of delivery of each subscription that has consumers, or has had some since the last start."""
    subscriptions: int = 0
    """The number of durable subscriptions of all partitions."""
    non_durable: dict[PartitionId, dict[str, NonDurableSubscription]] = field(default_factory=dict)
    """The non-durable subscriptions of each partition that has some. No durable one there has such a name."""
    non_durable_subscriptions: int = 0
    left_by_all: set[SubscriptionKey] = field(default_factory=set)
    """The durable subscriptions that all consumers have left since the last start: redeliveries are counted again."""
    uncommitted: set[SubscriptionKey] = field(default_factory=set)
    """The non-durable subscriptions that read uncommitted messages."""
    refusing: dict[PartitionId, Rejection] = field(default_factory=dict)
    """The partitions that take no batches now, because of what is kept for their subscriptions, and the reasons."""
    closings: dict[PartitionId, int] = field(default_factory=dict)
    """The number of times since the start that each partition has closed its writers (`core.log.closing`)."""
    disk_room: DiskRoom | None = None
    """The room on the disk; None: there is plenty."""
    pending_runs: int = 0
    """The sum of what open transactions have acknowledged (`Transaction.acknowledged_runs`)."""
    nameless_writers: int = 0
    """The number of nameless writers that partitions remember for open transactions."""
    next_producer_id: ProducerId = ProducerId(0)
    next_transaction_id: TransactionId = TransactionId(0)
    may_have_forgotten: set[str] = field(default_factory=set)
    """Transactional ids of which a stop of the machine may have forgotten an acknowledged AddPartitions or AddGroup."""
    held_bytes: int = 0
    """The bytes of the staged batches that the state holds."""
    held_batches: int = 0
    """The number of these batches."""
    staged_bytes: int = 0
    """The bytes of all that open transactions have staged."""
    streams_let_go: list[PartitionId] = field(default_factory=list)
    """Streams of the journal that no partition needs any more. The engine takes them out."""
    usage: dict[Table, Usage] = field(default_factory=no_usage)
    """The bytes of each table, and who they belong to."""
    quota_changes: int = 0
    """The number of changes of quotas since the start."""
    acl_index: AclIndex = field(default_factory=AclIndex)
    """The access rules, laid out for questions."""
    abandoned: dict[TransactionId, None] = field(default_factory=dict)
    """The open handles whose connections have closed, in the order in which they did, also those of before a restart.
    """


class State(Struct):
    """Everything that the core knows."""

    limits: Limits = field(default_factory=Limits)
    topics: dict[str, Topic] = field(default_factory=dict)
    partitions: dict[PartitionId, Partition] = field(default_factory=dict)
    transactional_ids: dict[str, TransactionalId] = field(default_factory=dict)
    transactions: dict[TransactionId, Transaction] = field(default_factory=dict)
    """The open transactions, in the order of their ids."""
    ended_handles: dict[TransactionId, EndedHandle] = field(default_factory=dict)
    """The ends of the last handles and joint transactions, in their order."""
    groups: dict[str, Group] = field(default_factory=dict)
    reserved_producer_id: ProducerId = ProducerId(0)
    """All producer ids that were given out are below (decision 0027)."""
    reserved_transaction_id: TransactionId = TransactionId(0)
    """All transaction ids that were given out are below."""
    next_partition_id: PartitionId = PartitionId(0)
    next_commit_order: int = 0
    incidents: dict[str, list[Incident]] = field(default_factory=dict)
    reserved_group_epoch: int = 0
    """All epochs and generations that groups have had are below (decision 0012)."""
    settled: dict[str, Membership] = field(default_factory=dict)
    """Groups of the classic protocol that have members, as their last rebalance has left them (decision 0025)."""
    settled_consumers: dict[str, ConsumerGroup] = field(default_factory=dict)
    """Groups of the consumer protocol that have members."""
    writers: dict[WriterId, KnownWriter] = field(default_factory=dict)
    """The named writers, in the order of their last appends."""
    next_writer_id: WriterId = WriterId(0)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """The options that were set while the broker ran, by the broker's id; by "" those of all brokers. None is empty.

    The fold replaces it, and changes none of it.
    """
    leader_epoch: int = FIRST_EPOCH
    """The epoch of the leader that has the log; FIRST_EPOCH: nobody has taken the lead (decision 0060)."""
    commit_number: int = 0
    """The number of the last commit: it counts committed transactions, and batches outside of one (decision 0058)."""
    acls: dict[Acl, None] = field(default_factory=dict)
    """The access rules, in the order in which they were made."""
    scram_keys: dict[str, tuple[ScramKey, ...]] = field(default_factory=dict)
    """The users that log in by a password of ours, with one key for each mechanism at most. None has no key."""
    client_quotas: dict[QuotaEntity, dict[QuotaKey, float]] = field(default_factory=dict)
    """The quotas of users, clients and addresses. None has no quota."""
    volatile: Volatile = field(default_factory=Volatile)

    def has_group(self, group_id: str) -> bool:
        """Return whether there is a group of this name: it has offsets, or has had members since the last start."""
        volatile = self.volatile
        return group_id in self.groups or group_id in volatile.memberships or group_id in volatile.consumer_groups

    def has_consumers(self, group_id: str) -> bool:
        """Return whether this is a group of the consumer protocol that has members, whichever protocol they speak."""
        group = self.volatile.consumer_groups.get(group_id)
        return group is not None and bool(group.members)

    @property
    def unknown_group(self) -> Rejection:
        """Return what a member of a group is told that we do not know.

        After a restart it may have been one: groups without members are forgotten. Then it must join again, as clients
        do that are no members any more, while most give up where there is no group.
        """
        return Rejection.UNKNOWN_MEMBER_ID if self.volatile.has_recovered else Rejection.GROUP_ID_NOT_FOUND

    def has_room_for_group(self, group_id: str) -> bool:
        """Return whether this group is there already or may begin."""
        members_of = len(self.volatile.memberships) + len(self.volatile.consumer_groups)
        most = max(len(self.groups), members_of)
        return most < self.limits.max_groups or self.has_group(group_id)

    def open_transaction(self, held: TransactionalId) -> Transaction | None:
        """Return the transaction that a transactional id has open, if it has one."""
        return None if held.open is None else self.transactions[held.open]

    def holder_of(self, transaction: Transaction) -> TransactionalId | None:
        """Return the transactional id that owns an open transaction; None: it is a handle."""
        return None if transaction.owner is None else self.transactional_ids[transaction.owner]

    def partition(self, topic: str, index: int) -> Partition | None:
        """Look up a partition by name and index."""
        entry = self.topics.get(topic)
        partition_id = None if entry is None else entry.partition_id(index)
        return None if partition_id is None else self.partitions[partition_id]

    def subscription(self, key: SubscriptionKey) -> Subscription | None:
        """Look up a subscription, durable or not, of a partition that exists."""
        durable = self.partitions[key[0]].subscriptions.get(key[1])
        return self.volatile.non_durable.get(key[0], {}).get(key[1]) if durable is None else durable

    def subscription_names(self, partition_id: PartitionId) -> list[str]:
        """Return the names of all subscriptions of a partition that exists, durable or not."""
        return [*self.partitions[partition_id].subscriptions, *self.volatile.non_durable.get(partition_id, ())]
