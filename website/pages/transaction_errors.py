"""The answers to every request of a transactional client, in every state of its transactional id, to every caller.

Data beside the code that follows from it: `core/transactions/transaction.py` and `core/transactions/binding.py` have
the rules, `errors.py` their codes. The tests hold each cell against the broker, and against an Apache Kafka; the page
docs/reference/transaction-errors.md is made from here (`make docs`).

A request is named with a version at which an answer changes; it stands for the versions up to the next one that is
named. A state says how the transactional id came to be there; "by 1" and "by 2": ended by this version of the protocol.

A further table is of a *concluded* id: its joint transaction was ended by its TxnID (`transactions/conclusion.py`).
"""

from enum import Enum

from exacta.protocol.kafka.errors import ErrorCode
from website.pages.markdown import table

DONE = ErrorCode.NONE
STATE = ErrorCode.INVALID_TXN_STATE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE
EPOCH = ErrorCode.INVALID_PRODUCER_EPOCH
FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
GENERATION = ErrorCode.ILLEGAL_GENERATION
UNKNOWN = ErrorCode.UNKNOWN_PRODUCER_ID

Row = tuple[ErrorCode, ...]

STATES = (
    "empty",
    "ongoing",
    "committed by 1",
    "aborted by 1",
    "committed by 2",
    "aborted by 2",
    "prepared",
)

PRESENT: dict[str, Row] = {
    # what the holder of the id is answered
    # (the columns are `STATES`)
    "InitProducerId 3": (DONE, DONE, DONE, DONE, DONE, DONE, DONE),
    "InitProducerId 4": (DONE, DONE, DONE, DONE, DONE, DONE, DONE),
    "AddPartitionsToTxn 1": (DONE, DONE, DONE, DONE, DONE, DONE, STATE),
    "AddPartitionsToTxn 3": (DONE, DONE, DONE, DONE, DONE, DONE, STATE),
    "AddPartitionsToTxn 5": (DONE, DONE, DONE, DONE, DONE, DONE, STATE),
    "AddOffsetsToTxn 1": (DONE, DONE, DONE, DONE, DONE, DONE, STATE),
    "AddOffsetsToTxn 4": (DONE, DONE, DONE, DONE, DONE, DONE, STATE),
    "Produce 11": (ABORTABLE, DONE, ABORTABLE, ABORTABLE, ABORTABLE, ABORTABLE, STATE),
    "Produce 12": (DONE, DONE, ABORTABLE, ABORTABLE, DONE, DONE, STATE),
    "TxnOffsetCommit 3": (GENERATION, DONE, GENERATION, GENERATION, GENERATION, GENERATION, STATE),
    "TxnOffsetCommit 4": (ABORTABLE, DONE, ABORTABLE, ABORTABLE, ABORTABLE, ABORTABLE, STATE),
    "TxnOffsetCommit 5": (DONE, DONE, ABORTABLE, ABORTABLE, DONE, DONE, STATE),
    "EndTxn 1, commit": (STATE, DONE, DONE, STATE, DONE, STATE, DONE),
    "EndTxn 1, abort": (DONE, DONE, STATE, DONE, STATE, DONE, DONE),
    "EndTxn 4, commit": (STATE, DONE, DONE, STATE, DONE, STATE, DONE),
    "EndTxn 4, abort": (DONE, DONE, STATE, DONE, STATE, DONE, DONE),
    "EndTxn 5, commit": (STATE, DONE, DONE, STATE, STATE, STATE, DONE),
    "EndTxn 5, abort": (DONE, DONE, STATE, DONE, DONE, DONE, DONE),
}

BEFORE: dict[str, Row] = {
    # what is answered to who has the pair that was the id's before the present one
    "InitProducerId 3": (EPOCH, EPOCH, EPOCH, EPOCH, DONE, DONE, EPOCH),
    "InitProducerId 4": (FENCED, FENCED, FENCED, FENCED, DONE, DONE, FENCED),
    "AddPartitionsToTxn 1": (EPOCH,) * 7,
    "AddPartitionsToTxn 3": (FENCED,) * 7,
    "AddPartitionsToTxn 5": (FENCED,) * 7,
    "AddOffsetsToTxn 1": (EPOCH,) * 7,
    "AddOffsetsToTxn 4": (FENCED,) * 7,
    "Produce 11": (EPOCH,) * 7,
    "Produce 12": (EPOCH,) * 7,
    "TxnOffsetCommit 3": (EPOCH,) * 7,
    "TxnOffsetCommit 4": (EPOCH,) * 7,
    "TxnOffsetCommit 5": (EPOCH,) * 7,
    "EndTxn 1, commit": (EPOCH,) * 7,
    "EndTxn 1, abort": (EPOCH,) * 7,
    "EndTxn 4, commit": (FENCED,) * 7,
    "EndTxn 4, abort": (FENCED,) * 7,
    "EndTxn 5, commit": (FENCED, FENCED, FENCED, FENCED, DONE, STATE, FENCED),
    "EndTxn 5, abort": (FENCED, FENCED, FENCED, FENCED, STATE, DONE, FENCED),
}

STRANGER: dict[str, Row] = {
    # what is answered to who has another id's pair; and to everybody where nothing is known of the id, but that
    # InitProducerId then binds it
    name: (EPOCH if name == "InitProducerId 3" else FENCED if name == "InitProducerId 4" else MAPPING,) * 7
    for name in PRESENT
}


CONCLUDED_STATES = (
    "committed",
    "committed, nothing written",
    "aborted",
    "aborted, nothing written",
)
"""The end of the joint transaction by its TxnID, and whether the holder of the id had written anything into it."""

CONCLUDED: dict[str, Row] = {
    # what the holder of a concluded id is answered
    # (the columns are `CONCLUDED_STATES`)
    "InitProducerId 3": (DONE,) * 4,
    "InitProducerId 4": (DONE,) * 4,
    "AddPartitionsToTxn 1": (STATE, UNKNOWN, UNKNOWN, UNKNOWN),
    "AddPartitionsToTxn 3": (STATE, UNKNOWN, UNKNOWN, UNKNOWN),
    "AddPartitionsToTxn 5": (STATE, ABORTABLE, ABORTABLE, ABORTABLE),
    "AddOffsetsToTxn 1": (STATE, DONE, UNKNOWN, DONE),
    "AddOffsetsToTxn 4": (STATE, DONE, ABORTABLE, DONE),
    "Produce 11": (STATE, ABORTABLE, ABORTABLE, ABORTABLE),
    "Produce 12": (STATE, ABORTABLE, ABORTABLE, ABORTABLE),
    "TxnOffsetCommit 3": (STATE, GENERATION, GENERATION, GENERATION),
    "TxnOffsetCommit 4": (STATE, ABORTABLE, ABORTABLE, ABORTABLE),
    "TxnOffsetCommit 5": (STATE, ABORTABLE, ABORTABLE, ABORTABLE),
    "EndTxn 1, commit": (DONE, DONE, UNKNOWN, UNKNOWN),
    "EndTxn 1, abort": (STATE, DONE, DONE, DONE),
    "EndTxn 4, commit": (DONE, DONE, ABORTABLE, ABORTABLE),
    "EndTxn 4, abort": (STATE, DONE, DONE, DONE),
    "EndTxn 5, commit": (DONE, DONE, ABORTABLE, ABORTABLE),
    "EndTxn 5, abort": (STATE, DONE, DONE, DONE),
}


class ErrorClass(Enum):
    """The ways in which a client may go on after an error."""

    RETRIABLE = "ask again"
    ABORTABLE = "abort, and go on"
    FATAL = "close the producer"


CLASSES: dict[tuple[str, ErrorCode], ErrorClass] = {
    ("InitProducerId", EPOCH): ErrorClass.FATAL,
    ("InitProducerId", FENCED): ErrorClass.FATAL,
    ("AddPartitionsToTxn", STATE): ErrorClass.FATAL,
    ("AddPartitionsToTxn", EPOCH): ErrorClass.FATAL,
    ("AddPartitionsToTxn", FENCED): ErrorClass.FATAL,
    ("AddPartitionsToTxn", MAPPING): ErrorClass.FATAL,
    ("AddPartitionsToTxn", UNKNOWN): ErrorClass.ABORTABLE,
    ("AddPartitionsToTxn", ABORTABLE): ErrorClass.ABORTABLE,
    ("AddOffsetsToTxn", STATE): ErrorClass.FATAL,
    ("AddOffsetsToTxn", EPOCH): ErrorClass.FATAL,
    ("AddOffsetsToTxn", FENCED): ErrorClass.FATAL,
    ("AddOffsetsToTxn", MAPPING): ErrorClass.FATAL,
    ("AddOffsetsToTxn", UNKNOWN): ErrorClass.ABORTABLE,
    ("AddOffsetsToTxn", ABORTABLE): ErrorClass.ABORTABLE,
    ("Produce", STATE): ErrorClass.ABORTABLE,
    ("Produce", ABORTABLE): ErrorClass.ABORTABLE,
    ("Produce", EPOCH): ErrorClass.ABORTABLE,
    ("Produce", MAPPING): ErrorClass.FATAL,
    ("TxnOffsetCommit", STATE): ErrorClass.FATAL,
    ("TxnOffsetCommit", ABORTABLE): ErrorClass.ABORTABLE,
    ("TxnOffsetCommit", GENERATION): ErrorClass.ABORTABLE,
    ("TxnOffsetCommit", EPOCH): ErrorClass.FATAL,
    ("TxnOffsetCommit", MAPPING): ErrorClass.FATAL,
    ("EndTxn", STATE): ErrorClass.FATAL,
    ("EndTxn", UNKNOWN): ErrorClass.ABORTABLE,
    ("EndTxn", ABORTABLE): ErrorClass.ABORTABLE,
    ("EndTxn", EPOCH): ErrorClass.FATAL,
    ("EndTxn", FENCED): ErrorClass.FATAL,
    ("EndTxn", MAPPING): ErrorClass.FATAL,
}
"""The errors as Kafka's own client for Java takes them (KIP-1050; KAFKA-18019 for the mapping). Nothing here is
retriable: nobody is ever told to come again because a transaction is being ended."""

_HEAD = """# What transactional requests are answered

This page says what a transactional client is answered, for each request and each state of its transactional id. The
states are:

- *empty*: the id has had no transaction;
- *ongoing*: its transaction is open;
- *committed* or *aborted, by 1* or *by 2*: its last transaction was ended so, by this version of the transaction
  protocol;
- *prepared*: its transaction is open, and another holder of the id has taken it over (KIP-939).

A request is named with a version, which stands for those up to the next that is named. A transaction that has written
to a [sidecar topic](../explanation/sidecar-topics.md) is answered in the same way. Tests
(`tests/kafka/test_transaction_errors.py`) hold each answer against the broker, and say where Apache Kafka 4.4 answers
otherwise, and why.
"""


_CONCLUDED = """## The holder, after its joint transaction was ended by its TxnID

A [joint transaction](../explanation/one-log.md#one-transaction-over-both) may be ended by Pulsar's clients. The holder
of the transactional id hears of that by its next request. An end that is answered with success, or InitProducerId, lets
it go on. Whatever is refused changes nothing, and neither does AddOffsetsToTxn. Where that succeeds, TxnOffsetCommit is
refused after it; a client that was refused AddOffsetsToTxn itself would send no end. Each cell is held against the
broker, too (`tests/kafka/test_joint_transactions.py`). Only a commit is refused as abortable, and never an abort."""


def page() -> str:
    """Return the page."""
    parts = [_HEAD.rstrip()]
    for title, answers in (
        ("The holder of the transactional id", PRESENT),
        ("A client that has the pair before", BEFORE),
        ("A client that has another pair, and an id that is not known *", STRANGER),
    ):
        parts += [f"## {title}", _answers(answers)]
    parts += [
        "\\* InitProducerId binds an id that is not known.",
        _CONCLUDED,
        _answers(CONCLUDED, CONCLUDED_STATES),
        "## What clients make of it",
        table(("API", "code", ""), [(api, code.name, found.value) for (api, code), found in CLASSES.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _answers(answers: dict[str, Row], states: tuple[str, ...] = STATES) -> str:
    """Return one row for each request: the states in which it succeeds, and those in which it gets each error."""
    rows = []
    for name, row in answers.items():
        by_code: dict[ErrorCode, list[str]] = {}
        for state, code in zip(states, row, strict=True):
            by_code.setdefault(code, []).append(state)
        said = {
            code: "in every state" if len(found) == len(states) else "; ".join(found) for code, found in by_code.items()
        }
        refused = [f"{code.name}: {where}" for code, where in said.items() if code is not DONE]
        rows.append((name, said.get(DONE, "–"), "<br>".join(refused) or "–"))
    return table(("request", "succeeds", "is refused"), rows)
