"""The table of all metrics: names, kinds, labels, and what they say. `docs/reference/metrics.md` is made of it.

Names follow Prometheus's rules: a prefix, the unit in base units at the end, `_total` for what only grows. A counter
begins at 0 with each start of the broker.
"""

from enum import Enum

from msgspec import Struct

OTHERS = "(others)"
"""The label of all that has no series of its own. No Kafka topic and no Kafka group has such a name."""


class MetricKind(Enum):
    """A kind of metric, in Prometheus's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(Struct, frozen=True):
    """One metric. The name is as it is scraped; a histogram has its suffixes behind it."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()


FAMILIES: dict[str, Family] = {}
"""All metrics by name, in the order of the page."""


def _family(kind: MetricKind, name: str, text: str, *labels: str) -> Family:
    family = FAMILIES[name] = Family(name, kind, text, labels)
    return family


def _counter(name: str, text: str, *labels: str) -> Family:
    return _family(MetricKind.COUNTER, name, text, *labels)


def _gauge(name: str, text: str, *labels: str) -> Family:
    return _family(MetricKind.GAUGE, name, text, *labels)


def _histogram(name: str, text: str, *labels: str) -> Family:
    return _family(MetricKind.HISTOGRAM, name, text, *labels)


# --- the broker -------------------------------------------------------------------------------------------------------

BUILD = _gauge("exacta_build_info", "Always 1; the label says which version runs.", "version")
READY = _gauge("exacta_ready", "1 if clients are served, 0 while the broker recovers.")
RECOVERY_SECONDS = _gauge(
    "exacta_recovery_seconds", "The time that the last recovery took; while it lasts, the time so far."
)
LOOP_LAG = _histogram(
    "exacta_event_loop_lag_seconds",
    "How late the event loop calls what is due, measured twice a second. All clients wait so long.",
)
LONG_TURNS = _counter(
    "exacta_event_loop_long_turns_total",
    "How often one piece of work kept the event loop for 100 ms or more. The log names the request and its client.",
)
CONNECTIONS = _gauge("exacta_connections", "The connections that are open.", "front")
CONNECTIONS_TOTAL = _counter("exacta_connections_accepted_total", "The connections that were let in.")
CONNECTIONS_REFUSED = _counter(
    "exacta_connections_refused_total",
    "The connections that were closed at once: max.connections, max.connections.per.ip or a quota was reached.",
)
MEMORY_USED = _gauge("exacta_memory_used_bytes", "The bytes that are held for clients, by budget.", "budget")
MEMORY_LIMIT = _gauge("exacta_memory_limit_bytes", "The most bytes that a budget may hold.", "budget")
MEMORY_WAITING = _gauge(
    "exacta_memory_waiting_connections", "The connections that wait for room in a budget.", "budget"
)
MEMORY_FILLED = _counter(
    "exacta_memory_filled_total", "How often a budget was full, so that connections began to wait.", "budget"
)
QUOTA_THROTTLED = _counter(
    "exacta_quota_throttled_total", "The requests, pushes and connections that went beyond a quota.", "quota"
)
QUOTA_THROTTLE_SECONDS = _counter(
    "exacta_quota_throttle_seconds_total", "The time that clients were told to wait, or had to, for a quota.", "quota"
)
QUOTA_BUCKETS = _gauge("exacta_quota_buckets", "The clients, and groups of clients, whose use of a quota is counted.")
REJECTIONS = _counter(
    "exacta_rejections_total", "The commands that were refused, by Exacta's own name of the reason.", "reason"
)

# --- several brokers --------------------------------------------------------------------------------------------------

CLUSTER_LEADS = _gauge("exacta_cluster_leads", "1 if this broker leads the log, 0 if it follows; none for one alone.")
CLUSTER_LEADS_TAKEN = _counter("exacta_cluster_leads_taken_total", "How often this broker has taken the lead.")
CLUSTER_IN_TOUCH = _gauge(
    "exacta_cluster_in_touch", "1 if this broker has heard from PostgreSQL within a second; else it serves nobody."
)
CLUSTER_BROKERS = _gauge("exacta_cluster_brokers", "The brokers that live, as this one sees them, itself included.")
CLUSTER_LAG = _gauge(
    "exacta_cluster_lag_bytes",
    "The bytes of the log by which another broker was behind this one when it last announced itself, each second.",
    "broker",
)
CLUSTER_TAIL = _gauge("exacta_cluster_tail_bytes", "The bytes of the log that PostgreSQL holds, and no object yet.")
CLUSTER_TAIL_AGE = _gauge(
    "exacta_cluster_tail_seconds", "The age of the oldest group in these bytes, as far as this broker has seen it come."
)

# --- APIs -------------------------------------------------------------------------------------------------------------

REQUESTS = _histogram(
    "exacta_request_duration_seconds",
    "The time from a whole request to its answer; for a fetch it includes its wait for records. Its _count is the "
    "number of requests.",
    "front",
    "api",
)
REQUEST_BYTES = _counter("exacta_request_bytes_total", "The bytes of requests that were answered.", "front", "api")
RESPONSE_BYTES = _counter(
    "exacta_response_bytes_total",
    "The bytes of answers. Messages that are pushed to Pulsar's consumers are none.",
    "front",
    "api",
)

# --- topics -----------------------------------------------------------------------------------------------------------

TOPICS = _gauge("exacta_topics", "The topics that there are.")
PARTITIONS = _gauge("exacta_partitions", "The partitions that there are.")
TOPIC_BYTES_IN = _counter("exacta_topic_in_bytes_total", "The bytes of batches that were appended, or staged.", "topic")
TOPIC_RECORDS_IN = _counter("exacta_topic_in_records_total", "The records in these batches.", "topic")
TOPIC_BATCHES_IN = _counter("exacta_topic_in_batches_total", "These batches.", "topic")
TOPIC_BYTES_OUT = _counter(
    "exacta_topic_out_bytes_total", "The bytes of batches that were read for consumers.", "topic"
)

# --- transactions -----------------------------------------------------------------------------------------------------

TRANSACTIONS_OPEN = _gauge("exacta_transactions_open", "The transactions that are open.")
TRANSACTIONS_OLDEST = _gauge(
    "exacta_transactions_oldest_seconds", "The age of the oldest open transaction; 0: none is open."
)
TRANSACTIONS_ENDED = _counter(
    "exacta_transactions_ended_total",
    "The transactions that have ended, by outcome (committed, aborted) and cause; the cause `owner` is their producer.",
    "outcome",
    "cause",
)
TOPIC_TRANSACTIONS_OPEN = _gauge(
    "exacta_topic_transactions_open", "The open transactions that have registered a topic.", "topic"
)
TOPIC_TRANSACTIONS_OLDEST = _gauge(
    "exacta_topic_transactions_oldest_seconds",
    "The age of the oldest of these. Readers of committed records wait behind its first record, except on a sidecar "
    "topic.",
    "topic",
)
TOPIC_HELD_BACK = _gauge(
    "exacta_topic_held_back_offsets",
    "The offsets between the last stable offset and the end of the log, of all partitions of a topic.",
    "topic",
)
LATE = _gauge(
    "exacta_partitions_with_late_transactions",
    "Kafka's own measure (PartitionsWithLateTransactionsCount): the partitions in which a transaction is open for "
    "longer than transaction.max.timeout.ms and five minutes.",
)
FENCED = _counter(
    "exacta_producers_fenced_total",
    "The producers whose transactional id was taken from them, by cause: new_instance, time_out, marker (an operator), "
    "idle (it was forgotten), loss (the machine stopped).",
    "cause",
)

# --- groups and subscriptions -----------------------------------------------------------------------------------------

GROUPS = _gauge("exacta_groups", "The consumer groups that have members or offsets.")
GROUP_MEMBERS = _gauge("exacta_group_members", "The members of a consumer group.", "group")
REBALANCES = _counter("exacta_rebalances_total", "The rebalances that have ended, of all consumer groups.")
GROUP_LAG = _gauge(
    "exacta_group_lag_records",
    "The committed records that a group has yet to read, as `exacta groups lag` counts them: without markers and "
    "aborted records, so that it becomes 0.",
    "group",
    "topic",
)
GROUP_HELD_BACK = _gauge(
    "exacta_group_held_back_records", "The records that open transactions hold back from a group.", "group", "topic"
)
SUBSCRIPTIONS = _gauge("exacta_subscriptions", "The durable subscriptions of Pulsar's consumers.")
SUBSCRIPTION_BACKLOG = _gauge(
    "exacta_subscription_backlog_messages",
    "The messages that a subscription has yet to acknowledge and that no open transaction holds back.",
    "topic",
    "subscription",
)
LAG_UNCOUNTED = _gauge(
    "exacta_lag_uncounted_partitions",
    "The partitions of groups and subscriptions whose lag this scrape has left out, since there are too many to count.",
)

# --- journal and disk -------------------------------------------------------------------------------------------------

SYNC_SECONDS = _histogram(
    "exacta_journal_sync_duration_seconds", "The time that the disk took to make a commit group durable (fdatasync)."
)
COMMIT_GROUP = _histogram("exacta_commit_group_events", "The events of a commit group, which one sync makes durable.")
TRIMMED = _counter("exacta_retention_deleted_records_total", "The offsets that retention has deleted.")
COMPACTIONS = _counter("exacta_compactions_total", "The runs of compaction, by outcome (done, failed).", "outcome")
FREED = _counter("exacta_journal_freed_bytes_total", "The bytes of the journal that were given back to the disk.")
JOURNAL_BYTES = _gauge("exacta_journal_bytes", "The bytes of the files of the journal.")
DISK_FREE = _gauge("exacta_disk_free_bytes", "The free bytes of the disk on which the data directory lies.")
DISK_BYTES = _gauge("exacta_disk_bytes", "The bytes of that disk.")
DISK_RESERVE = _gauge(
    "exacta_disk_reserve_bytes",
    "The bytes that the broker keeps of that disk for all but records. It gives them back on a disk that is full.",
)
DISK_FULL = _gauge(
    "exacta_disk_full",
    "0 while records are taken; 1 if the disk is full, and records are refused; 2 if the reserve is used up, too, and "
    "commits and acknowledgements are refused. A broker that cannot write at all ends with the exit code 3.",
)
