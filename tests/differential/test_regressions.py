"""What the differential test has found, as short as it got, with what Apache Kafka answers; needs no Kafka."""

from typing import Any

import pytest

import tests.differential.members
import tests.differential.transactions  # noqa: F401  # how steps are sent
from tests.differential.side import Side
from tests.differential.steps import CommitOffsets, End, Init, PlainOffsets, Produce, Step
from tests.kafka.wire import front

FOUND: dict[str, list[tuple[Step, str]]] = {
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
}


@pytest.mark.parametrize("sequence", FOUND.values(), ids=FOUND.keys())
def test_answers_as_kafka_does(sequence: list[tuple[Step, str]]) -> None:
    with front(num_partitions=2) as broker:
        side = Side(broker.address)
        side.begin()
        answers: list[Any] = [side.run(step)[0] for step, _ in sequence]
        side.finish()
        side.close()
    assert answers == [kafkas for _, kafkas in sequence]
