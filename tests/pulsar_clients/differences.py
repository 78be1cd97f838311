"""The differences from Apache Pulsar 4.2.4 that are meant in these scenarios, with their reasons; all others fail.

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
    "the other end": Difference(
        "TransactionNotFoundException",
        "InvalidTxnStatusException",
        "the outcome is remembered for a while, so that the client learns that it is the other one",
    ),
    "a commit after the time-out": Difference(
        "TransactionNotFoundException",
        "InvalidTxnStatusException",
        "the same: the transaction is known, and has ended in the other way",
    ),
    "a cumulative ack over a pending one": Difference(
        "done",
        "TransactionConflictException",
        "two transactions would both have acknowledged a message, and both could commit",
    ),
    "a cumulative ack below a pending one": Difference(
        "TransactionConflictException",
        "done",
        "it follows from the line before: here no other transaction holds a cumulative acknowledgement by then",
    ),
    "messages pending in a batch whose others were acknowledged are lost": Difference(
        True,
        False,
        "the client for Java acknowledges the whole batch once it has acknowledged what it got of it; an abort must "
        "bring back what it did not get",
    ),
    "batches in transactions on a shared subscription, when clients are killed": Difference(
        "some twice",
        "once each",
        "Apache Pulsar lets two transactions commit the acknowledgement of one message of a batch (its issue 25107 "
        "tells of duplicates after aborts); there the input is sent without batches, and then each is there once",
    ),
    "messages of an open transaction, where uncommitted ones are asked for": Difference(
        [],
        ["a", "b"],
        "Apache Pulsar has not built PIP-298, and takes the property `isolation.level` for one of the user's",
    ),
    "a durable subscription that asks for uncommitted messages": Difference(
        "done",
        "NotAllowedException",
        "the same; its cursor would hold acknowledgements of messages that an abort takes away",
    ),
    "a second consumer that asks for another isolation level": Difference(
        "done",
        "ConsumerBusyException",
        "the same; PIP-298 has one level for all consumers of a subscription",
    ),
    "the latest message, inclusive, where a marker follows": Difference(
        [],
        ["2"],
        "a reader that wants the last message gets it, also where it was sent in a transaction; Apache Pulsar tells "
        "the client that the marker has been passed",
    ),
    "unsubscribing while others are there": Difference(
        "BrokerMetadataException",
        "ConsumerBusyException",
        "the code of the protocol that says so; Apache Pulsar has its general one for metadata",
    ),
}


def told(name: str) -> Any:
    """Return what the broker under test does."""
    found = DIFFERENCES[name]
    return found.pulsar if ON_PULSAR else found.exacta
