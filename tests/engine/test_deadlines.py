"""Deadlines: in order of time, and those that are cancelled are neither called nor kept for long."""

from functools import partial

import pytest

from exacta.engine.deadlines import MOST_CANCELLED, Deadlines
from tests.engine.rig import ManualLoop


@pytest.fixture
def loop() -> ManualLoop:
    return ManualLoop()


@pytest.fixture
def deadlines(loop: ManualLoop) -> Deadlines:
    return Deadlines(loop, lambda: loop.now_ms)


def test_a_cancelled_one_is_not_called_and_the_others_are_in_order(loop: ManualLoop, deadlines: Deadlines) -> None:
    called: list[int] = []
    added = [deadlines.add(loop.now_ms + at_ms, partial(called.append, at_ms)) for at_ms in (30, 10, 20, 10)]
    deadlines.cancel(added[2])
    deadlines.cancel(added[2])
    loop.pass_time(100)
    assert called == [10, 10, 30]
    deadlines.cancel(added[0])
    assert not deadlines._heap


def test_cancelled_ones_are_dropped_once_they_are_most(loop: ManualLoop, deadlines: Deadlines) -> None:
    called: list[int] = []
    kept = [deadlines.add(loop.now_ms + number, partial(called.append, number)) for number in range(50)]
    for _ in range(10):
        for each in [deadlines.add(loop.now_ms + 60_000, lambda: called.append(-1)) for _ in range(MOST_CANCELLED)]:
            deadlines.cancel(each)
        assert len(deadlines._heap) <= len(kept) + 2 * MOST_CANCELLED
    loop.pass_time(100)
    assert called == list(range(50))
    loop.pass_time(60_000)
    assert called == list(range(50))
    assert not deadlines._heap


def test_one_may_cancel_another_while_it_is_called(loop: ManualLoop, deadlines: Deadlines) -> None:
    called: list[str] = []
    later = deadlines.add(loop.now_ms + 10, lambda: called.append("later"))
    deadlines.add(loop.now_ms + 5, lambda: deadlines.cancel(later))
    loop.pass_time(100)
    assert called == []
