"""Transactions as they are told: whose they are, what they hold, and what befell them.

Times are milliseconds since 1970 by the broker's clock, and None where there is none.
"""

from msgspec import Struct

from exacta.readmodel.clients import client_in_words

ONGOING = "Ongoing"
ABORTED = "aborted"

Run = tuple[int, int]
"""The first and the last offset of consecutive messages."""


class IncidentDescription(Struct, frozen=True, kw_only=True):
    """An event that befell a producer id and epoch, its reason, and the client that asked for it."""

    what: str
    """fenced, aborted or forgotten."""
    cause: str
    at_ms: int
    producer_id: int
    producer_epoch: int
    client_id: str = ""
    client_host: str = ""

    @property
    def client(self) -> str:
        """The client in words; empty: no client asked for it."""
        return client_in_words(self.client_id, self.client_host)


class HeldPartition(Struct, frozen=True, kw_only=True):
    """A partition that takes part in an open transaction."""

    topic: str
    partition: int
    first_offset: int | None = None
    """The offset at which readers of committed data wait.

    It is None if the transaction has written nothing there yet, or to a sidecar topic, where nobody waits, and if the
    cluster does not say.
    """
    staged_records: int = 0
    """The records that lie aside in a partition of a sidecar topic until the commit."""
    staged_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PendingMessages(Struct, frozen=True, kw_only=True):
    """The messages of one Pulsar subscription that an open transaction has acknowledged.

    They are pending, and come again if it aborts.
    """

    topic: str
    partition: int
    subscription: str
    before: int | None
    """All messages before this offset are among them; None: only those of the runs."""
    run_count: int
    runs: tuple[Run, ...]
    """The first 100 runs."""


class Explanation(Struct, frozen=True, kw_only=True):
    """A transactional id, or a transaction without one; `state` is empty if it is unknown."""

    transactional_id: str
    """The name of a transaction without a transactional id is like TxnID(0,17)."""
    state: str
    """The state as Kafka's DescribeTransactions has it."""
    producer_id: int
    producer_epoch: int
    """The producer that holds the transactional id."""
    client_id: str = ""
    client_host: str = ""
    timeout_ms: int | None = None
    last_update_ms: int | None = None
    open_producer_id: int | None = None
    open_producer_epoch: int | None = None
    """The pair in the open transaction's records, which is not its holder's after a takeover (KIP-939)."""
    start_ms: int | None = None
    """The time at which the open transaction began, or the last one that there was."""
    deadline_ms: int | None = None
    """The time at which the open transaction is aborted; None while one is open: it never is (KIP-939)."""
    partitions: tuple[HeldPartition, ...] = ()
    """The partitions that the open transaction has registered or written to."""
    groups: tuple[str, ...] = ()
    """The groups whose offsets are part of it."""
    incidents: tuple[IncidentDescription, ...] = ()
    """The last incidents, oldest first."""
    gives_reasons: bool = True
    """False: the cluster does not tell incidents."""
    is_handle: bool = False
    """True: it is a transaction that has no transactional id, and `transactional_id` is its name."""
    is_joint: bool = False
    """True: it is of a transactional id, and Pulsar clients know it by its transaction id."""
    transaction_id: int | None = None
    acknowledged: tuple[PendingMessages, ...] = ()
    """The first 100 subscriptions of which the open transaction has acknowledged messages."""
    subscription_count: int = 0
    """The number of all of them, of those that are gone, too."""

    @property
    def is_open(self) -> bool:
        """True if a transaction is open."""
        return self.state == ONGOING

    @property
    def client(self) -> str:
        """The client that initialised the transactional id last, or that began the transaction, in words."""
        return client_in_words(self.client_id, self.client_host)


class AskTransactions(Struct, frozen=True, kw_only=True, tag="transactions"):
    """The question for transactions: those that are named, or all that are open."""

    transactional_ids: tuple[str, ...] | None = None
    """None asks for everything that is open. The name of a handle means the handle, unless an id has it."""
    handles: tuple[int, ...] = ()
    """Handles by their ids, 17 of TxnID(0,17)."""


class Transactions(Struct, frozen=True, kw_only=True):
    """The answer to `AskTransactions`; each transaction is told as it is at a moment of its own."""

    transactions: tuple[Explanation, ...]
    version: int = 1
