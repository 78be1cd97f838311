"""The judge of the campaign finds a stale read and a fractured one, and takes nothing else for one."""

from exacta.verify.analysis.ledger import fold
from exacta.verify.history import FORMAT, Begin, Isolation, Op, Poll, ReadTo, Run, Workload
from tests.cluster.observing import ToldOffsets, fractured_reads, stale_reads

ONE, OTHER = ("t", 0), ("t", 1)


def test_an_answer_behind_one_that_was_there_before_it_was_asked_is_stale() -> None:
    found = stale_reads([ToldOffsets(2, "high", 30, 40, {ONE: 9}), ToldOffsets(1, "high", 10, 20, {ONE: 10})])
    assert len(found) == 1
    assert "broker 2 told 9, asked at 30 us; broker 1 had told 10 by 20 us" in found[0]


def test_an_offset_that_was_forgotten_is_stale() -> None:
    assert stale_reads([ToldOffsets(1, "group", 10, 20, {ONE: 3}), ToldOffsets(2, "group", 30, 40, {ONE: -1})])


def test_answers_that_overlap_and_answers_about_something_else_are_not_stale() -> None:
    answers = [
        ToldOffsets(1, "high", 10, 30, {ONE: 10}),
        ToldOffsets(2, "high", 20, 40, {ONE: 9}),
        ToldOffsets(2, "stable", 50, 60, {ONE: 5}),
        ToldOffsets(2, "high", 50, 60, {OTHER: 1}),
        ToldOffsets(2, "high", 70, 80, {ONE: 10}),
    ]
    assert stale_reads(answers) == []


def test_a_follower_that_lags_is_not_stale_and_one_that_shows_half_of_a_transaction_is_fractured() -> None:
    values = [("t", 0, "transfer-0.1/0 -5"), ("t", 1, "transfer-0.1/1 5")]
    history: list[Op] = [
        Run(
            format=FORMAT, run="r", version="v", started="", cluster="", seed=1, workloads=[Workload.TRANSFER],
            topics={"t": 2},
        ),
        Begin(
            process="transfer-0", producer="p", transactional_id="i", transaction="transfer-0.1", at_us=1,
            records=values,
        ),
        *(
            Poll(
                process="final", isolation=Isolation.COMMITTED, start_us=90, end_us=95, topic=topic,
                partition=partition, records=[(7, value)], session="final", final=True,
            )
            for topic, partition, value in values
        ),
        *(
            ReadTo(isolation=Isolation.COMMITTED, topic="t", partition=each, next_offset=8, whole=True, process="final")
            for each in (0, 1)
        ),
    ]  # fmt: skip
    whole, before, half = {ONE: 8, OTHER: 8}, {ONE: 7, OTHER: 7}, {ONE: 8, OTHER: 7}
    followed = [ToldOffsets(1, "fetched", 10, 20, whole), ToldOffsets(2, "fetched", 30, 40, before)]
    assert stale_reads(followed) == []
    assert fractured_reads(followed, fold(history)) == []
    (found,) = fractured_reads([ToldOffsets(2, "fetched", 30, 40, half)], fold(history))
    assert found.startswith("transfer-0.1: broker 2 showed t-0 up to 8")
