"""The tables of the state, as clients fill them: what is in each, what bounds it, and what becomes of more.

Each container of the state, and each text in it, stands here with its bound, or in `DERIVED` with the reason why it
needs none. `tests/core/state/test_tables_have_bounds.py` walks over all of them, and fails where one is missing.
`docs/reference/limits.md` shows this list.

Only what costs no promise is forgotten. Offsets, subscriptions, transactional ids, open transactions and what Spark
remembers are refused beyond their bounds, and never forgotten before their time.
"""

from msgspec import Struct

from exacta.core.values.usage import Table


class Bound(Struct, frozen=True, kw_only=True):
    """One table. Its fields are `Struct.field`; `counts` are further bounds of `Limits`."""

    name: str
    fields: tuple[str, ...]
    table: Table | None = None
    """The table whose bytes are counted. None: numbers and sizes of entries are bounded, and so are the bytes."""
    counts: tuple[str, ...] = ()
    forgets: str = ""
    """The thing that makes room; empty: nothing is forgotten before its time."""
    beyond: str
    """The fate of a further entry that finds no room."""


REFUSED = "POLICY_VIOLATION, and TooManyRequests or NotAllowedError from Pulsar's side"

BOUNDS: tuple[Bound, ...] = (
    Bound(
        name="topics, partitions and configurations",
        fields=(
            "State.topics",
            "State.partitions",
            "State.broker_configs",
            "Topic.topic",
            "Topic.topic_id",
            "Topic.configs",
            "Topic.added",
            "Topic.buffers",
        ),
        table=Table.TOPICS,
        counts=("max_partitions", "max_partitions_per_topic"),
        beyond="POLICY_VIOLATION",
    ),
    Bound(
        name="members of groups: what they say of themselves, and their assignments",
        fields=(
            "State.settled",
            "State.settled_consumers",
            "Volatile.memberships",
            "Volatile.consumer_groups",
            "Membership.members",
            "Membership.pending",
            "Membership.subscribed",
            "Membership.protocol_type",
            "Membership.protocol",
            "Membership.leader",
            "Member.member_id",
            "Member.instance_id",
            "Member.protocols",
            "Member.subscription",
            "Member.assignment",
            "ConsumerGroup.members",
            "ConsumerGroup.target",
            "ConsumerGroup.topics",
            "ConsumerGroup.matched",
            "ConsumerMember.member_id",
            "ConsumerMember.instance_id",
            "ConsumerMember.rack_id",
            "ConsumerMember.pattern",
            "ConsumerMember.topics",
            "ConsumerMember.assigned",
            "ConsumerMember.revoking",
            "ClassicTerms.protocols",
        ),
        table=Table.MEMBERS,
        counts=(
            "member_metadata_max_bytes",
            "max_protocols_per_member",
            "max_groups",
            "group_max_size",
            "group_consumer_max_size",
            "max_pending_members",
        ),
        beyond="JoinGroup, SyncGroup and ConsumerGroupHeartbeat get POLICY_VIOLATION. A member stays what it was.",
    ),
    Bound(
        name="offsets of groups, with their metadata",
        fields=("State.groups", "Group.group_id", "Group.offsets", "Group.pending", "CommittedOffset.metadata"),
        table=Table.OFFSETS,
        counts=("max_groups", "offset_metadata_max_bytes"),
        beyond="OffsetCommit and TxnOffsetCommit get POLICY_VIOLATION. Offsets of partitions that the group has "
        "already are taken, unless their metadata are longer.",
    ),
    Bound(
        name="transactional ids",
        fields=("State.transactional_ids", "TransactionalId.transactional_id"),
        table=Table.TRANSACTIONAL_IDS,
        counts=("max_transactional_ids", "transactional_id_max_bytes"),
        beyond="InitProducerId of a further id gets POLICY_VIOLATION, and of a longer one INVALID_REQUEST.",
    ),
    Bound(
        name="open transactions, with the partitions, groups and subscriptions that take part",
        fields=("State.transactions", "Transaction.partitions", "Transaction.groups", "Transaction.subscriptions"),
        table=Table.TRANSACTIONS,
        counts=("max_participants_per_handle", "max_participants_of_handles"),
        beyond=f"What would begin a transaction or take part in one gets {REFUSED}. The transaction goes on.",
    ),
    Bound(
        name="open transactions without a transactional id",
        fields=("Volatile.abandoned",),
        table=Table.HANDLES,
        forgets="From half of the bound on, each new one aborts the one whose connection was closed first, if nothing "
        "takes part in it.",
        beyond="NEW_TXN gets TooManyRequests.",
    ),
    Bound(
        name="outcomes of transactions without a transactional id",
        fields=("State.ended_handles",),
        counts=("max_ended_handles", "ended_handle_retention_ms", "transactional_id_max_bytes"),
        forgets="The oldest outcome.",
        beyond="Nothing is refused.",
    ),
    Bound(
        name="incidents: why producers were fenced, and transactions aborted",
        fields=("State.incidents",),
        counts=("max_ids_with_incidents", "max_incidents_per_id", "transactional_id_max_bytes"),
        forgets="The oldest incident.",
        beyond="Nothing is refused.",
    ),
    Bound(
        name="producers of partitions",
        fields=("Partition.producers", "ProducerState.batches"),
        table=Table.PRODUCERS,
        counts=("max_producers_per_partition", "retained_batches"),
        forgets="Producers that have been silent for a day; for ten minutes, if the partition has as many as it may, "
        "or the table is more than half full.",
        beyond="The batch of a new producer gets POLICY_VIOLATION.",
    ),
    Bound(
        name="places of the records of aborted and open transactions",
        fields=("Partition.aborted", "Partition.open_transactions", "Partition.open_runs", "AbortedTransaction.runs"),
        table=Table.ABORTED,
        beyond=f"A batch that would be a further run of its transaction's records gets {REFUSED}. Retention, "
        "compaction and DeleteRecords make room, and so does a commit.",
    ),
    Bound(
        name="staged streams of sidecar topics, and receipts",
        fields=("Partition.staged", "Partition.entered", "Partition.receipts", "StagedStream.places"),
        table=Table.STAGED,
        counts=("max_staged_bytes",),
        forgets="The oldest receipts of a partition beyond 100,000, and beyond 1,000 while the table is more than half "
        "full.",
        beyond=f"A further batch gets {REFUSED}.",
    ),
    Bound(
        name="staged batches that are held in memory",
        fields=("StagedStream.held", "HeldBatch.batch"),
        counts=("max_held_bytes", "max_held_batches", "max_held_bytes_per_stream", "max_held_batches_per_stream"),
        beyond="Nothing is refused: the stream lies in the journal.",
    ),
    Bound(
        name="names of Pulsar's producers, and their sequences",
        fields=(
            "State.writers",
            "KnownWriter.name",
            "KnownWriter.partitions",
            "Partition.named_sequences",
            "Partition.nameless_sequences",
        ),
        table=Table.WRITERS,
        counts=("max_named_writers", "max_named_writers_per_partition"),
        forgets="Names that have been idle for a day; for ten minutes, if the table is more than half full, or a new "
        "name finds no room.",
        beyond="The batch of a new name gets NotAllowedError.",
    ),
    Bound(
        name="subscriptions, with what is acknowledged beyond their positions",
        fields=(
            "Partition.subscriptions",
            "Volatile.non_durable",
            "Subscription.name",
            "Subscription.properties",
            "Subscription.acknowledged",
            "Subscription.pending",
            "Subscription.redelivered",
            "NonDurableSubscription.name",
            "NonDurableSubscription.properties",
            "NonDurableSubscription.acknowledged",
            "NonDurableSubscription.pending",
            "NonDurableSubscription.redelivered",
        ),
        table=Table.SUBSCRIPTIONS,
        counts=(
            "max_subscriptions",
            "max_non_durable_subscriptions",
            "subscription_name_max_bytes",
            "subscription_properties_max_bytes",
            "max_acknowledged_runs",
            "max_pending_runs",
        ),
        beyond="A further subscription, and an acknowledgement that would make a further run, get TooManyRequests. An "
        "acknowledgement that moves the position, or fills a gap, is taken.",
    ),
    Bound(
        name="consumers of subscriptions, and entries that were delivered and are not acknowledged",
        fields=(
            "Volatile.deliveries",
            "Delivery.consumers",
            "Delivery.ranges",
            "Delivery.entries",
            "Delivery.order",
            "Delivery.waiting",
            "Delivery.delayed",
            "Delivery.key_holders",
            "Delivery.passed",
        ),
        table=Table.DELIVERIES,
        counts=("max_consumers_per_subscription", "max_noted_entries"),
        beyond="A further consumer gets TooManyRequests. Delivery of new entries of Shared and Key_Shared "
        "subscriptions waits until others are acknowledged.",
    ),
    Bound(
        name="access rules",
        fields=(
            "State.acls",
            "Acl.name",
            "Acl.principal",
            "Acl.host",
            "AclIndex.kinds",
            "KindIndex.literal",
            "KindIndex.prefixed",
            "KindIndex.lengths",
            "KindIndex.allowed",
            "KindIndex.denied",
        ),
        table=Table.ACLS,
        beyond="A further rule gets POLICY_VIOLATION.",
    ),
    Bound(
        name="users, with the keys by which they log in",
        fields=("State.scram_keys", "ScramKey.salt"),
        table=Table.USERS,
        beyond="A further key gets POLICY_VIOLATION.",
    ),
    Bound(
        name="quotas of users, clients and addresses",
        fields=("State.client_quotas", "QuotaEntity.parts"),
        table=Table.QUOTAS,
        beyond="A further quota gets POLICY_VIOLATION.",
    ),
)

DERIVED: dict[str, str] = {
    "State.limits": "the bounds",
    "State.volatile": "the part that a restart forgets",
    "Limits.transaction_buffer": "an option",
    "Limits.group_consumer_assignors": "an option",
    "Partition.topic": "one copy is the topic's",
    "Partition.leader_epochs": "two numbers for each of the last 1,000 leaders that have written",
    "Partition.bodies": "a set of the values of an enum",
    "TransactionalId.client_id": "255 characters are kept",
    "TransactionalId.client_host": "an address",
    "Transaction.client_id": "255 characters are kept",
    "Transaction.client_host": "an address",
    "TransactionalId.principal": "the name of a login",
    "Transaction.principal": "the name of a login",
    "Transaction.owner": "a transactional id",
    "Transaction.producer_ids": "two at most",
    "EndedHandle.client_id": "255 characters are kept",
    "EndedHandle.client_host": "an address",
    "EndedHandle.owner": "a transactional id",
    "EndedHandle.producer_ids": "two at most",
    "Incident.client_id": "255 characters are kept",
    "Incident.client_host": "an address",
    "Membership.static": "the instance ids of members",
    "Member.client_id": "255 characters are kept",
    "Member.client_host": "an address",
    "Member.principal": "the name of a login",
    "ConsumerMember.client_id": "255 characters are kept",
    "ConsumerMember.client_host": "an address",
    "ConsumerMember.principal": "the name of a login",
    "Subscription.principal": "the name of a login",
    "NonDurableSubscription.principal": "the name of a login",
    "KnownWriter.principal": "the name of a login",
    "ConsumerMember.assignor": "one of the broker's assignors",
    "ConsumerGroup.assignor": "one of the broker's assignors",
    "ConsumerGroup.static": "the instance ids of members",
    "ConsumerGroup.topics_version": "two numbers",
    "SubscribedTopic.topic_id": "16 bytes",
    "ConnectedConsumer.name": "512 characters are kept",
    "Volatile.topic_names": "an index over topics",
    "Volatile.emptied_ms": "one number of a group",
    "Volatile.member_deadlines_ms": "one number of a member",
    "Volatile.members_due_ms": "one number of a member",
    "Volatile.writer_ids": "an index over the names of writers",
    "Volatile.holder_by_producer": "an index over transactional ids",
    "Volatile.transaction_by_producer": "an index over transactions",
    "Delivery.unwritten": "the names of some entries",
    "Volatile.left_by_all": "the keys of some subscriptions",
    "Volatile.uncommitted": "the keys of some non-durable subscriptions",
    "Volatile.refusing": "one value of a partition",
    "Volatile.closings": "one number of a partition",
    "Volatile.may_have_forgotten": "some transactional ids",
    "Volatile.streams_let_go": "the engine empties it in the same step",
    "Volatile.usage": "the count of all this",
    "Usage.owned": "one number of a host that has an entry",
    "Usage.charges": "one host and one number of an entry",
    "Charge.owner": "an address",
}
"""The tables that need no bound of their own, and the reason."""
