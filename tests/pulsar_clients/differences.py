"""What Exacta does otherwise than Apache Pulsar 4.2.4 in these scenarios, and why; whatever else differs fails.

A scenario asks `told` what the broker under test must do, so that both sides of each line are tested.
"""

from typing import Any, NamedTuple

from tests.pulsar_clients.brokers import ON_PULSAR


class Difference(NamedTuple):
    """One thing that both do, each in its way."""

    pulsar: Any
    exacta: Any
    why: str


DIFFERENCES = {
    "the same end again": Difference(
        "TransactionNotFoundException",
        "done",
        "a client whose answer was lost asks again, and must learn that its transaction has ended as it wished; "
        "`pulsar.transaction.repeat=strict` answers as Apache Pulsar does",
    ),
    "the other end": Difference("TransactionNotFoundException", "?", "?"),
    "the same ack in its transaction again": Difference("TransactionConflictException", "?", "?"),
    "a cumulative ack at or below its transaction's own": Difference(["TransactionConflictException"] * 2, "?", "?"),
    "a cumulative ack over a pending one": Difference("done", "TransactionConflictException", "?"),
    "a cumulative ack below a pending one": Difference("TransactionConflictException", "done", "?"),
    "a commit after the time-out": Difference("TransactionNotFoundException", "?", "?"),
    "the latest message, inclusive, where a marker follows": Difference(
        [],
        ["2"],
        "a reader that wants the last message gets it, also where it was sent in a transaction; Apache Pulsar tells "
        "the client that the marker has been passed",
    ),
}


def told(name: str) -> Any:
    """Return what the broker under test does."""
    found = DIFFERENCES[name]
    return found.pulsar if ON_PULSAR else found.exacta
