"""Differences that are meant in what is said to nonsense (see `differences.py`)."""

from __future__ import annotations

from tests.differential.answered import Answered, History
from tests.differential.calls import WAITS
from tests.differential.machine import Difference
from tests.differential.members import DescribeGroup, FetchOffsets
from tests.differential.odd import FaultyBatch
from tests.differential.reads import DescribeProducers, DescribeTransactions
from tests.differential.steps import Produce, ReadOffsets

_OF_BYTES = {
    "INVALID_RECORD",
    "CORRUPT_MESSAGE",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "INVALID_TIMESTAMP",
    "INVALID_REQUIRED_ACKS",
    "INVALID_REQUEST",
}
_DESCRIBES = FetchOffsets | ReadOffsets | DescribeGroup | DescribeProducers | DescribeTransactions
_OF_PRODUCERS = {
    "INVALID_TXN_STATE",
    "TRANSACTION_ABORTABLE",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_PRODUCER_EPOCH",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID",
}


def _is_wrong_twice(found: Answered, history: History) -> bool:
    kafkas, ours = found.codes
    return isinstance(found.step, Produce) and kafkas in _OF_PRODUCERS and ours in _OF_BYTES


def _has_an_unknown_codec(found: Answered, history: History) -> bool:
    failed = ("UNKNOWN_SERVER_ERROR", "UNSUPPORTED_COMPRESSION_TYPE")
    return isinstance(found.step, FaultyBatch) and found.step.fault.startswith("codec") and found.codes == failed


def _names_a_partition_twice(found: Answered, history: History) -> bool:
    twice = isinstance(found.step, FaultyBatch) and found.step.fault == "a partition twice"
    return twice and set(found.kafkas) == set(found.ours)


def _has_half_a_producer(found: Answered, history: History) -> bool:
    half = ("no epoch", "no producer id", "no producer at all")
    stored = ("NONE", "INVALID_RECORD")
    return isinstance(found.step, FaultyBatch) and found.step.fault in half and found.codes == stored


def _has_no_records(found: Answered, history: History) -> bool:
    return isinstance(found.step, Produce) and found.codes == (WAITS, "INVALID_RECORD")


def _asks_twice(found: Answered, history: History) -> bool:
    """Whether a spoilt frame, of which the codes are all that is told, has more answers from Kafka, and no others."""
    asks = isinstance(found.step, _DESCRIBES) and all(isinstance(code, str) for code in found.kafkas)
    return asks and len(found.kafkas) > len(found.ours) and set(found.kafkas) == set(found.ours)


ODD_DIFFERENCES = (
    Difference(
        "A codec that nobody knows is called so; Kafka fails with an unknown error, and its client tries again",
        _has_an_unknown_codec,
        parts=True,
    ),
    Difference(
        "Who names a partition twice is answered twice; Kafka takes one of the two, and is silent about the other",
        _names_a_partition_twice,
        parts=True,
    ),
    Difference(
        "Who asks twice for what is described is told once (docs/reference/limits.md); Kafka tells it twice",
        _asks_twice,
    ),
    Difference(
        "A batch with a producer id and no epoch, or of a transaction and without a producer, is refused; Kafka stores "
        "it, and no marker will ever end it",
        _has_half_a_producer,
        parts=True,
    ),
    Difference(
        "A Produce without records is refused; Kafka fails, and never answers",
        _has_no_records,
    ),
    Difference(
        "A batch that is wrong in itself, and has no business here either: its bytes are looked at first",
        _is_wrong_twice,
    ),
)
