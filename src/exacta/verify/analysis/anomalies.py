"""Every kind of anomaly, with its definition: the one place that says what is wrong and what is only worth knowing.

Terms. A transaction is *committed* if its commit was acknowledged. It is *aborted* if its abort was acknowledged, if
its commit was never asked for, or if its commit was asked for after a successor had been given its transactional id (a
*zombie*'s). Else it is *unknown*. A *final read* is everything that a reader of one isolation got of a partition from
its first offset to its end, after all clients had ended and every transactional id had been taken over once more. A
Pulsar reader is a read_committed reader, too, if Pulsar's clients take part.

A kind that Kafka allows is information. Its transactions do not isolate writes from each other: two of them may
interleave in opposite orders in two partitions, which is a write cycle (Adya's G0) on every Kafka. And a transaction
may be read in one partition before it is in another. That is so on every Kafka, Exacta too, if a transaction is open
that began before it in the other partition. On Apache Kafka it is so at any time, since Apache Kafka gives each
partition a marker of its own.

On Exacta's sidecar topics a transaction enters its partitions whole and at one moment. So nothing of this is allowed
there, and there are two kinds more. A read_uncommitted reader gets committed records only, and is a read_committed
reader, too.
"""

from enum import Enum

from msgspec import Struct


class Kind(Enum):
    """Name of an anomaly: its definition, and whether it is only information."""

    LOST_WRITE = (
        "lost-write",
        "A record of a committed transaction is not in a final read that came past its place, or a record that a "
        "read_committed reader had got is in no final read_committed read.",
    )
    ABORTED_READ = (
        "aborted-read",
        "A read_committed reader, live or final, got a record of an aborted transaction (Adya's G1a).",
    )
    DIRTY_READ = (
        "dirty-read",
        "A read_committed reader got a record before the commit of its transaction had been asked for, and the "
        "transaction did not abort (Jepsen's precommitted read).",
    )
    TORN_TRANSACTION = (
        "torn-transaction",
        "A final read_committed read shows only a part of a transaction whose outcome its client does not know. "
        "(If the outcome is known, the wrong part is a lost write or an aborted read.)",
    )
    PROTOCOLS_APART = (
        "protocols-apart",
        "A record of a transaction whose outcome its client does not know is in the final read by one protocol's "
        "client, and not in that by the other one's. Kafka's is the read_committed one.",
    )
    ZOMBIE_COMMIT = (
        "zombie-commit",
        "A commit was acknowledged that was asked for after a successor had been given the transactional id (KIP-98).",
    )
    DUPLICATE = ("duplicate", "A value that was sent once lies at two offsets.")
    REORDERED = (
        "reordered",
        "In a partition, a record lies behind one that was sent later. The same producer sent that one, or another "
        "producer did in a transaction that began after the first record's transaction had ended. For etl: an output "
        "lies behind one that was made from a later record of the same input.",
    )
    INCONSISTENT_OFFSET = (
        "inconsistent-offset",
        "Two readers, or a reader and a delivery report, disagree about what lies at an offset.",
    )
    OFFSET_AND_DATA_APART = (
        "offset-and-data-apart",
        "A committed input below the group's committed offset has no committed output, or an input at or above that "
        "offset has one, or an input has two. So offsets and records of a transaction did not take effect together.",
    )
    NONMONOTONIC_POLL = (
        "nonmonotonic-poll",
        "A reader that reads a partition on got an offset again, or an earlier one.",
    )
    SKIPPED = (
        "skipped",
        "A reader that reads a partition from its start passed over a record that the final read of its isolation has.",
    )
    LSO_MOVED_BACK = (
        "lso-moved-back",
        "A last stable offset or a high watermark is lower than one that had been listed before.",
    )
    HANGING_TRANSACTION = (
        "hanging-transaction",
        "Every transactional id was taken over, every Pulsar transaction had its time, and a last stable offset "
        "still is below its high watermark.",
    )
    UNEXPECTED_VALUE = (
        "unexpected-value",
        "A reader got a value that nobody sent, or from a partition that it was not sent to.",
    )
    NOT_CONTIGUOUS = (
        "not-contiguous",
        "On sidecar topics: in a partition, a record of another transaction lies between two records of a transaction.",
    )
    NOT_IN_COMMIT_ORDER = (
        "not-in-commit-order",
        "On sidecar topics: in a partition, a transaction lies behind another one, although its commit was "
        "acknowledged before the commit of the other one was asked for.",
    )
    G1C = (
        "g1c",
        "A cycle of committed transactions, each of which read what the next one wrote (Adya's G1c, by reads alone: "
        "Kafka shows no record before its transaction is committed).",
    )
    G0 = (
        "g0",
        "A cycle of committed transactions, each of which wrote right behind the next one in some partition (Adya's "
        "G0). Kafka does not isolate writes.",
        True,
    )
    G1C_BY_WRITES = (
        "g1c-by-writes",
        "A cycle of committed transactions by reads and at least one order of writes. Kafka does not isolate writes.",
        True,
    )
    PARTLY_VISIBLE = (
        "partly-visible",
        "A read_committed reader had got a record of a transaction when, in another partition, the last stable offset "
        "was still at or below another record of it. On every Kafka an open transaction holds back the records behind "
        "its own first record in a partition until it ends. Besides, Apache Kafka writes the markers of an end one "
        "partition after the other.",
        True,
    )

    def __init__(self, title: str, definition: str, information: bool = False) -> None:
        self.title = title
        self.definition = definition
        self.information = information


class Anomaly(Struct, frozen=True, kw_only=True):
    """One case: what it is in one line, and who and where was involved, for the page that shows it."""

    kind: Kind
    message: str
    at_us: int = 0
    transactions: tuple[str, ...] = ()
    partitions: tuple[tuple[str, int], ...] = ()
    processes: tuple[str, ...] = ()
