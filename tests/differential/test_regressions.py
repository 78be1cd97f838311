"""What the differential test has found, as short as it got, with what Apache Kafka answers; needs no Kafka.

An answer is compared as far as it is written down here: its error code, or more of it.
"""

import pytest

import tests.differential.membership
import tests.differential.transactions  # noqa: F401  # how steps are sent
from tests.differential.calls import WAITS, Answer
from tests.differential.members import (
    CommitAsMember,
    CommitInTransactionAsMember,
    DeleteOffsets,
    DescribeGroup,
    FetchOffsets,
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from tests.differential.odd import FaultyBatch
from tests.differential.reads import (
    AddPartitionsOfSeveral,
    DescribeTransactions,
    Fetch,
    ListOffsets,
    ListTransactions,
)
from tests.differential.side import Side
from tests.differential.steps import CommitOffsets, End, Init, PlainOffsets, Produce, Step
from tests.kafka.wire import front

FOUND: dict[str, list[tuple[Step, str | Answer]]] = {
    "an id of nobody's is no mapping before it is unknown": [
        (Produce(client="a", age=1, version=3, partition=0, count=1), "INVALID_PRODUCER_ID_MAPPING"),
    ],
    "a sequence is looked at before whether a plain write may be": [
        (Produce(client="a", version=12, partition=1, count=1), "NONE"),
        (
            Produce(client="a", version=3, partition=1, count=1, skip=1, transactional=False),
            "OUT_OF_ORDER_SEQUENCE_NUMBER",
        ),
        (Produce(client="a", version=3, partition=1, count=1, transactional=False), "INVALID_TXN_STATE"),
    ],
    "a group that does not exist has no generation": [
        (CommitOffsets(client="a", version=5, group="g", offset=0, stale=True), "ILLEGAL_GENERATION"),
        (PlainOffsets(client="a", version=6, group="g", offset=10), "NONE"),
        (CommitOffsets(client="a", version=5, group="g", offset=0, stale=True), "UNKNOWN_MEMBER_ID"),
    ],
    "a transaction is looked at before its member": [
        (PlainOffsets(client="a", version=6, group="g", offset=10), "NONE"),
        (CommitOffsets(client="a", version=4, group="g", offset=0, stale=True), "TRANSACTION_ABORTABLE"),
    ],
    "who initialises again does not repeat an end": [
        (End(client="b", version=5, commit=False), "NONE"),
        (Init(client="b", age=1, version=3, presents=True), "NONE"),
        (End(client="b", version=5, age=1, commit=False), "PRODUCER_FENCED"),
        (End(client="b", version=4, commit=True), "INVALID_TXN_STATE"),
    ],
    "the pair before repeats an end in version 2 only": [
        (Produce(client="a", version=12, partition=0, count=1), "NONE"),
        (End(client="a", version=5, commit=True), "NONE"),
        (End(client="a", version=4, age=1, commit=True), "PRODUCER_FENCED"),
        (End(client="a", version=5, age=1, commit=True), "NONE"),
        (End(client="a", version=5, age=1, commit=False), "INVALID_TXN_STATE"),
    ],
    "an unknown partition is told so before its group is looked at": [
        (Join(client="m", version=2, group="g"), "NONE"),
        (CommitAsMember(client="m", version=2, group="g", partition=7, offset=20), "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
    "an empty group takes offsets of whoever names no generation": [
        (CommitInTransactionAsMember(client="a", version=5, group="g", offset=0, member="m", member_age=1), "NONE"),
    ],
    "nobody changes over to what only he knows": [
        (Join(client="m", version=2, group="g"), "NONE"),
        (Join(client="m", version=2, group="g", protocol_type="connect"), "INCONSISTENT_GROUP_PROTOCOL"),
        (Join(client="m", version=2, group="g", protocols=("sticky",)), "INCONSISTENT_GROUP_PROTOCOL"),
    ],
    "a group that has become empty keeps its type": [
        (Join(client="m", version=2, group="g"), "NONE"),
        (Leave(client="m", version=0, group="g"), "NONE"),
        (DescribeGroup(client="m", version=0, group="g"), ("NONE", "Empty", "consumer", "")),
    ],
    "an assignment is shown until the next one": [
        (Join(client="m", version=2, group="g"), "NONE"),
        (Sync(client="m", version=0, group="g"), ("NONE", b"m in 1 by m")),
        (Join(client="m", version=2, group="g"), ("NONE", 2)),
        (
            DescribeGroup(client="m", version=0, group="g"),
            ("NONE", "CompletingRebalance", "consumer", "", ("m0", "", "m", "/127.0.0.1", 0, b"m in 1 by m")),
        ),
    ],
    "a static member stays one, also where it does not say so again": [
        (Join(client="m", version=7, age=-1, group="g", instance="i"), "NONE"),
        (Sync(client="m", version=3, group="g", instance="i"), "NONE"),
        (Join(client="m", version=5, group="g"), "NONE"),
        (Join(client="n", version=7, age=-1, group="g", instance="i"), "NONE"),
        (Heartbeat(client="m", version=3, group="g"), "UNKNOWN_MEMBER_ID"),
    ],
    "while members join again, it is still what they read in their last generation": [
        (Join(client="n", version=2, group="g", topics="u"), "NONE"),
        (Join(client="m", version=2, group="g"), WAITS),
        (DeleteOffsets(client="m", version=0, group="g", partitions=(0,)), ("NONE", (0, "NONE"))),
    ],
    "what is pending is not known to who does not ask for stable offsets": [
        (CommitOffsets(client="a", version=5, group="g", offset=0), "NONE"),
        (FetchOffsets(client="m", version=2, group="g", stable=False, everything=True), ("NONE", ())),
    ],
    "an unknown partition is told so before its transaction is looked at": [
        (
            AddPartitionsOfSeveral(client="a", version=4, age=1, others=(("a", (7,), False),)),
            ("NONE", ("n0-a", (7, "UNKNOWN_TOPIC_OR_PARTITION"))),
        ),
    ],
    "out of range, there are no offsets": [
        (
            Fetch(client="a", version=4, partition=0, of="end", plus=1, committed=False),
            ("OFFSET_OUT_OF_RANGE", -1, -1, -1),
        ),
    ],
    "a special timestamp is unsupported before its partition is unknown": [
        (ListOffsets(client="a", version=1, partition=7, committed=False, timestamp=-3), "UNSUPPORTED_VERSION"),
    ],
    "an abort of nothing began and ended now": [
        (DescribeTransactions(client="a", version=0), ("NONE", "Empty", 60_000, False, 0)),
        (End(client="a", version=5, commit=False), "NONE"),
        (DescribeTransactions(client="a", version=0), ("NONE", "CompleteAbort", 60_000, True, 0)),
    ],
    "what has never begun is older than anything": [
        (
            ListTransactions(client="a", version=1, open_for_ms=10**9, pattern="n0-a"),
            ("NONE", (), ("n0-a", "a", "Empty")),
        ),
    ],
    "a partition is unknown before its leader epoch is": [
        (
            Fetch(client="a", version=9, partition=7, of="start", plus=0, committed=False, leader_epoch=1),
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ],
    "a batch that is cut off is none": [
        (FaultyBatch(client="a", version=12, fault="half a batch"), "INVALID_RECORD"),
        (FaultyBatch(client="a", version=12, fault="a length that is long"), "INVALID_RECORD"),
        (FaultyBatch(client="a", version=12, fault="some bytes"), "INVALID_RECORD"),
    ],
    "the beginning of a batch behind another is nothing": [
        (FaultyBatch(client="a", version=12, fault="a length that is short"), "CORRUPT_MESSAGE"),
        (FaultyBatch(client="a", version=12, fault="half a batch behind"), "NONE"),
        (End(client="a", version=5, commit=True), "NONE"),
    ],
    "an empty transactional id is none": [
        (FaultyBatch(client="a", version=12, fault="an empty transactional id"), "INVALID_REQUEST"),
    ],
}


@pytest.mark.parametrize("sequence", FOUND.values(), ids=FOUND.keys())
def test_answers_as_kafka_does(sequence: list[tuple[Step, str | Answer]]) -> None:
    with front(num_partitions=2, group_initial_rebalance_delay_ms=0) as broker:
        side = Side(broker.address)
        side.begin()
        answers = [side.run(step) for step, _ in sequence]
        side.finish()
        side.close()
    expected = [(kafkas,) if isinstance(kafkas, str) else kafkas for _, kafkas in sequence]
    assert [answer[: len(kafkas)] for answer, kafkas in zip(answers, expected, strict=True)] == expected
