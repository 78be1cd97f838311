"""The subscriptions of Apache Pulsar clients as they are told."""

from msgspec import Struct

from exacta.readmodel.groups import BlockingTransaction
from exacta.readmodel.transactions import Run

Place = tuple[str, int, str]
"""The topic, the partition and the name of a subscription; pages are in this order."""


class ConsumerDescription(Struct, frozen=True, kw_only=True):
    """A consumer that is connected."""

    consumer_id: int
    name: str
    priority: int
    permits: int
    """The number of messages that it can take now; a batch may make it negative."""
    held: int
    """The messages that it has and has not acknowledged; 0 for Exclusive and Failover, which do not count."""
    is_active: bool
    """True: an Exclusive or Failover subscription delivers to it."""


class Pending(Struct, frozen=True, kw_only=True):
    """The messages that an open transaction has acknowledged."""

    transaction: str
    """The name of the transaction, like TxnID(0,17)."""
    before: int | None
    """The transaction has acknowledged all messages before this offset; None: it has not."""
    run_count: int
    runs: tuple[Run, ...]
    """The first 100 runs that it has acknowledged one by one."""


class Details(Struct, frozen=True, kw_only=True):
    """The parts of a subscription that a list does not have."""

    uncommitted: int
    """The messages that open transactions have written; they are among those that are held back."""
    acknowledged_runs: tuple[Run, ...]
    """The first 100 runs beyond the position."""
    pending: tuple[Pending, ...]
    """The first 100 open transactions that have acknowledged messages."""
    consumers: tuple[ConsumerDescription, ...]
    noted_entries: int
    """The entries of a Shared or Key_Shared subscription that were delivered and are not acknowledged."""
    waiting_entries: int
    """The number of them that wait to be delivered again."""
    redelivered_entries: int
    most_redeliveries: int
    waits: tuple[str, ...]
    """The reasons why messages are not delivered now; nothing is in the way where there is none."""
    properties: dict[str, str]
    held_by: tuple[BlockingTransaction, ...]
    """The oldest 100 open transactions that have written to the partition."""


class SubscriptionDescription(Struct, frozen=True, kw_only=True):
    """A subscription of one partition, and the ends of the partition."""

    topic: str
    partition: int
    name: str
    subscription_type: str
    is_durable: bool
    """False: it is a reader's, and gone with its last consumer and with a restart."""
    reads_uncommitted: bool
    """True: it also gets the messages of open and of aborted transactions."""
    created_ms: int
    position: int
    """Every message before this offset is acknowledged."""
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    is_over_quota: bool
    """True: nothing is appended, because more is kept for subscriptions than the topic's backlog quota allows."""
    consumer_count: int
    left: int
    """The backlog: the messages that it will get, and has not acknowledged."""
    pending: int
    """The messages that open transactions have acknowledged."""
    held_back: int
    """The messages that are behind an open transaction, or in one."""
    run_count: int
    """The number of runs of acknowledged messages beyond the position."""
    pending_count: int
    """The number of open transactions that have acknowledged messages."""
    details: Details | None = None

    @property
    def place(self) -> Place:
        """Its place in the order of pages."""
        return self.topic, self.partition, self.name

    @property
    def at(self) -> str:
        """The partition in words."""
        return f"{self.topic}-{self.partition}"


class AskSubscriptions(Struct, frozen=True, kw_only=True, tag="subscriptions"):
    """The question for a page of subscriptions, in the order of topics, partitions and names."""

    topics: tuple[str, ...] | None = None
    """None asks for those of all topics. A topic that is not there has no subscriptions."""
    partitions: tuple[int, ...] | None = None
    """None asks for all partitions."""
    names: tuple[str, ...] | None = None
    """None asks for subscriptions of any name."""
    has_details: bool = False
    most: int = 1000
    """The broker gives at most 1,000."""
    after: Place | None = None
    """The page begins after this subscription, whether it still exists or not."""


class Subscriptions(Struct, frozen=True, kw_only=True):
    """The answer to `AskSubscriptions`, of one state."""

    subscriptions: tuple[SubscriptionDescription, ...]
    version: int = 1
    end: Place | None = None
    """The next page begins after this place; None: this is the last one. A page may be empty, and not the last."""
