"""The numbers that bound the semantics."""

from msgspec import Struct

from exacta.core.values.transaction_buffer import MARKER


class Limits(Struct, frozen=True, kw_only=True):
    """The numbers that bound the semantics. They are parameters, so that tests reach them in a few steps."""

    highest_epoch: int = 32766
    """The highest producer epoch that a client is given (Kafka's Short.MAX_VALUE - 1); then the producer id rotates."""
    sequence_modulus: int = 2**31
    """Sequences go from 0 to this, exclusive, and begin again at 0."""
    retained_batches: int = 5
    """Batches remembered per producer and partition to recognise repeats (KIP-98); clients have at most 5 in flight."""
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    """An idle transactional id is remembered for so long, and never forgotten while its transaction is open."""
    producer_id_expiration_ms: int = 86_400_000
    """A partition remembers an idle producer for so long."""
    transactional_id_expiry_interval_ms: int = 3_600_000
    """The interval at which idle transactional ids are looked for."""
    producer_id_expiry_interval_ms: int = 600_000
    max_expired_at_once: int = 1_000
    """The most that one step forgets, which bounds how long everybody else waits for it."""
    max_incidents_per_id: int = 8
    max_ids_with_incidents: int = 2_000
    """Reasons of fencings and aborts are remembered for this many transactional ids: those with the latest ones."""
    max_transactions_ended_at_once: int = 10_000
    """The most that one command ends (EndTransactions). Together with the bound on their partitions it bounds how long
    everybody else waits for it."""
    max_partitions_ended_at_once: int = 20_000
    max_open_handles: int = 10_000
    """This many transactions without a transactional id may be open. A further one is refused."""
    max_participants_per_handle: int = 20_000
    """Partitions, groups and subscriptions of one open transaction without a transactional id. What would take part as
    a further one is refused. An end holds up everybody else while it goes through all of them."""
    max_participants_of_handles: int = 1_000_000
    """The same of all open transactions without a transactional id together."""
    flush_interval_ms: int = 20
    """Writes into open transactions, and acknowledgements without an answer, stay unsynced for so long at most.
    Readers of uncommitted records may not see such a write for so long."""
    max_ended_handles: int = 10_000
    """This many ended transactions without a transactional id are remembered, so that a repeat of an end is answered
    like the first."""
    ended_handle_retention_ms: int = 900_000
    """An ended transaction without a transactional id is remembered for so long at most."""
    transaction_buffer: str = MARKER
    """The value of `transaction.buffer` for topics that do not set it."""
    max_held_bytes_per_stream: int = 256 << 10
    """A staged stream of more bytes lies in the journal. A smaller one is written twice: when it is staged, and when it
    commits (decision 0041)."""
    max_held_batches_per_stream: int = 500
    """A staged stream of more batches lies in the journal, too: a commit lays out each held batch again."""
    max_held_bytes: int = 32 << 20
    """The bytes of all staged streams that the state holds. They are in memory, and in each snapshot."""
    max_held_batches: int = 50_000
    """The batches of all staged streams that the state holds. A commit takes some microseconds for each, and nobody
    else gets a turn meanwhile."""
    small_held_bytes_per_stream: int = 16 << 10
    """Half of what may be held is kept for streams of at most this many bytes. A small stream that spills does as much
    harm as a large one: it is noted for as long as its partition keeps it, and nothing is compacted behind it."""
    max_staged_bytes: int = 100 << 30
    """The bytes of all that open transactions have staged. A further batch is refused."""
    offset_metadata_max_bytes: int = 4096
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    offsets_retention_ms: int = 604_800_000
    """A group that has no members, and whose offsets nobody commits, is remembered for so long."""
    group_expiry_interval_ms: int = 600_000
    """The interval at which such groups are looked for."""
    max_offsets_looked_at: int = 10_000
    """The most offsets that one step of this looks at, and one group more. Everybody else waits meanwhile."""
    max_pending_members: int = 1_000
    """This many member ids of one group may be given out and not used yet (KIP-394). Each waits for a session's time,
    and every join copies all of them."""
    group_initial_rebalance_delay_ms: int = 0
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The assignors by preference: the first is for groups whose members ask for none."""
    max_partitions_per_topic: int = 10_000
    max_partitions: int = 100_000
    """All topics together have this many partitions at most. Each costs memory and time at every start."""
    max_groups: int = 100_000
    """This many groups may have offsets, or have had members since the start. Each costs as much as a partition."""
    max_transactional_ids: int = 1_000_000
    """A further id is refused, and no old id is forgotten: a client that floods the broker with ids must not fence
    others."""
    max_producers_per_partition: int = 10_000
    """A further producer takes the place of the one that has been silent longest, if that is long enough."""
    max_named_writers: int = 100_000
    """All partitions together remember this many names of writers. When the limit is reached, those make room that have
    been idle for `producer_protected_ms`; if there is none, a new name is refused."""
    max_named_writers_per_partition: int = 10_000
    """Both limits hold for nameless writers as well, which are remembered as long as a transaction is open."""
    max_topic_bytes: int = 256 << 20
    """The weight of all topics and partitions with their configurations (`weights.py`; so do the following)."""
    max_member_bytes: int = 128 << 20
    """The members of all groups. A classic group counts twice: as it is, and as its last rebalance has left it."""
    member_metadata_max_bytes: int = 4 << 20
    """The bytes that one member says of itself, and that one member is assigned. In Apache Kafka all of a group fits
    into a record of 1 MiB."""
    max_protocols_per_member: int = 1_000
    """The protocols that one member of a classic group offers; each join compares those of all members."""
    max_offset_bytes: int = 256 << 20
    """The offsets of all groups, with their metadata."""
    max_transactional_id_bytes: int = 1 << 30
    transactional_id_max_bytes: int = 4_096
    """One transactional id, which is also kept where the outcomes and the incidents of the last transactions are."""
    max_transaction_bytes: int = 128 << 20
    """All open transactions, with what takes part in them."""
    max_producer_bytes: int = 256 << 20
    """The producers that all partitions remember."""
    max_aborted_bytes: int = 128 << 20
    """The places of the records of aborted transactions, and of open ones, which may abort."""
    max_staging_bytes: int = 128 << 20
    """The bytes of what is known of staged streams, and of those that have entered, besides the batches."""
    max_writer_bytes: int = 128 << 20
    """Named and nameless writers, with their sequences in partitions."""
    max_subscription_bytes: int = 256 << 20
    """Subscriptions, durable or not, with what is acknowledged."""
    max_delivery_bytes: int = 256 << 20
    """The entries that were delivered, and are not acknowledged, of all subscriptions. Delivery of new ones waits."""
    max_subscriptions: int = 100_000
    """Durable subscriptions of all partitions. A further one is refused."""
    max_non_durable_subscriptions: int = 100_000
    """Non-durable subscriptions of all partitions. A further one is refused."""
    non_durable_idle_ms: int = 60_000
    """A non-durable subscription that is new, or was moved, waits for a consumer so long at most."""
    subscription_name_max_bytes: int = 512
    subscription_properties_max_bytes: int = 4_096
    """Names and values of a subscription's properties together."""
    max_acknowledged_runs: int = 10_000
    """Runs of acknowledged messages of one subscription beyond its position. An acknowledgement that would make more
    is refused, unless the position moves by it."""
    max_acknowledged_runs_per_transaction: int = 100_000
    max_pending_runs: int = 1_000_000
    """Runs of messages that all open transactions together have acknowledged."""
    max_pending_transactions_per_subscription: int = 1_000
    """Open transactions that have acknowledged messages of one subscription one by one."""
    max_consumers_per_subscription: int = 1_000
    max_unacknowledged_per_consumer: int = 50_000
    """Messages that a consumer of a Shared or Key_Shared subscription may have; delivery to it waits then."""
    max_noted_entries: int = 200_000
    """Entries of one Shared or Key_Shared subscription that are not acknowledged; delivery of new ones waits then."""
    max_delayed_entries: int = 100_000
    """Entries of one Shared or Key_Shared subscription that are held back until their time comes. When there are this
    many, delivery of new ones waits."""
    max_look_ahead_entries: int = 2_000
    """Entries of a Key_Shared subscription that may wait for their key while delivery looks at later ones."""
    max_acl_bytes: int = 256 << 20
    """The access rules, with the index over them."""
    max_acls_deleted_at_once: int = 10_000
    """The most that one command deletes, as in Apache Kafka: all of them stand in one event."""
    max_user_bytes: int = 64 << 20
    """The users, with the keys by which they log in."""
    max_quota_bytes: int = 64 << 20
    """The quotas of users, clients and addresses."""
    producer_protected_ms: int = 600_000
    """A producer may repeat its last batch for so long, and must be known meanwhile. This is longer than any client's
    default delivery time-out. A client that floods a partition with producers is refused; it does not make others
    write twice."""
