"""The numbers that bound the semantics."""

from msgspec import Struct


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
    """An idle transactional id is remembered for so long, and never forgotten while its transaction is open."""
    producer_id_expiration_ms: int = 86_400_000
    """A partition remembers an idle producer for so long."""
    transactional_id_expiry_interval_ms: int = 3_600_000
    """Idle ones are looked for at this interval."""
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
    max_open_handles: int = 10_000
    """Open transactions without a transactional id. A further one is refused."""
    max_ended_handles: int = 10_000
    """So many ended ones of these are remembered, so that a repeat of their end is answered like the first."""
    ended_handle_retention_ms: int = 900_000
    """And how long they are remembered at most."""
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
    """The assignors by preference: the first is for groups whose members ask for none."""
    max_partitions_per_topic: int = 10_000
    max_partitions: int = 100_000
    """The partitions of all topics. Each costs memory and time at every start, whoever asked for it."""
    max_groups: int = 100_000
    """That have offsets, and that have had members since the last start; each costs what a partition does."""
    max_transactional_ids: int = 1_000_000
    """A further one is refused, not an old one forgotten: who floods the broker with them must not fence others."""
    max_producers_per_partition: int = 10_000
    """A further one is taken in for the one that has been silent longest, if that is long enough."""
    max_named_writers: int = 100_000
    """Names of writers in all partitions. When the limit is reached a new name is refused. A known one is forgotten
    only when it has been idle for `producer_id_expiration_ms`."""
    max_named_writers_per_partition: int = 10_000
    max_subscriptions: int = 100_000
    """Durable subscriptions of all partitions. A further one is refused."""
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
    producer_protected_ms: int = 600_000
    """So long after its last batch a producer may repeat it, and must be known: longer than any client's delivery
    time-out by default. Who floods a partition with producers is refused; he does not make others write twice."""
