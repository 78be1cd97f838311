"""The count of lags: what has been counted is remembered, what is too much is said, and markers count for nothing."""

import asyncio
from typing import Any

import pytest

from exacta.core.commands import CommitOffsets, DeleteTopic, OffsetToCommit
from exacta.metrics import lag as lag_module
from exacta.metrics.lag import Lags
from exacta.metrics.measured import Labels
from exacta.metrics.transactions import LATE_BUFFER_MS, measure
from tests.engine.producer import Producer
from tests.engine.rig import Rig

MOST_TIMEOUT_MS = 900_000


@pytest.fixture
def rig() -> Rig:
    """Return a rig whose topic `t` has three committed records, one marker, and a position of each of two groups."""
    rig = Rig()
    rig.topic()
    producer = Producer(rig)
    producer.add(0)
    for _ in range(3):
        producer.write(b"x")
    producer.end()
    rig.settle()
    for group, offset in (("a", 1), ("b", 3)):
        place = OffsetToCommit(topic="t", partition=0, offset=offset, leader_epoch=-1, metadata="")
        rig.ask(CommitOffsets(group_id=group, offsets=(place,)))
    return rig


def lags(counting: Lags) -> tuple[dict[Labels, float], float]:
    """Return the lag by group and topic, and how many partitions were left out."""
    found = {each.family.name: each.values for each in asyncio.run(counting.measure())}
    return dict(found["exacta_group_lag_records"]), found["exacta_lag_uncounted_partitions"][()]  # type: ignore[return-value,arg-type]


def test_markers_are_no_lag(rig: Rig) -> None:
    assert lags(Lags(rig.engine, 10)) == ({("a", "t"): 2, ("b", "t"): 0}, 0)


def test_what_has_not_moved_is_not_counted_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Lags(rig.engine, 10)
    counted: list[object] = []
    count = rig.engine.lookups.count_unaborted

    def noted(*args: Any) -> int:
        counted.append(args)
        return count(*args)

    monkeypatch.setattr(rig.engine.lookups, "count_unaborted", noted)
    first = lags(counting)
    assert len(counted) == 2  # one for each group: nothing is held back
    assert lags(counting) == first
    assert len(counted) == 2
    rig.append(b"y")
    rig.settle()
    assert lags(counting)[0] == {("a", "t"): 3, ("b", "t"): 1}


def test_what_is_too_much_is_left_out_and_said_and_counted_next_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_module, "MOST_COUNTED", 1)
    counting = Lags(rig.engine, 10)
    assert lags(counting) == ({("a", "t"): 2}, 1)
    assert lags(counting) == ({("a", "t"): 2, ("b", "t"): 0}, 0)


def test_the_groups_with_the_least_lag_are_one_series(rig: Rig) -> None:
    assert lags(Lags(rig.engine, 1))[0] == {("a", "t"): 2, ("(others)", "(others)"): 0}


def test_a_group_of_a_topic_that_is_gone_has_no_lag(rig: Rig) -> None:
    rig.ask(DeleteTopic(topic="t"))
    assert lags(Lags(rig.engine, 10)) == ({}, 0)


def test_late_transactions_are_counted_as_kafka_counts_them(rig: Rig) -> None:
    def value(name: str) -> object:
        found = asyncio.run(measure(rig.engine, MOST_TIMEOUT_MS, 10))
        [metric] = [each for each in found if each.family.name == name]
        return dict(metric.values)

    late = "exacta_partitions_with_late_transactions"
    producer = Producer(rig, "prepared", two_phase=True)
    producer.add(0, 1)
    producer.write(b"x", 0)
    rig.settle()
    rig.loop.pass_time(MOST_TIMEOUT_MS + LATE_BUFFER_MS)
    assert value(late) == {(): 0}
    rig.loop.pass_time(1)
    assert value(late) == {(): 1}  # nothing was written to the other partition
    assert value("exacta_topic_transactions_oldest_seconds") == {("t",): 1200.001}
    assert value("exacta_topic_held_back_offsets") == {("t",): 1}
