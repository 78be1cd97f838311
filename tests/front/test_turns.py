"""The turns of the loop: who goes on, in which order, and what becomes of work that is not wanted any more."""

from collections.abc import Callable
from typing import Any

import pytest

from exacta.front.conversions import Conversions
from exacta.front.turns import LONG_TURN_SECONDS, TURN_SECONDS, Steps, Turns, Until
from tests.engine.rig import ManualLoop


class Rig:
    """Turns on a loop that is turned by hand, with a clock that the test moves."""

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.now_s = 0.0
        self.log: list[str] = []
        self.threads: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.turns = Turns(
            self.loop,
            Conversions(lambda call, done: self.threads.append((call, done))),
            lambda: self.now_s,
            lambda: self.now_s,
        )
        self.is_wanted = True

    def take(self, name: str, steps: Steps) -> None:
        def failed() -> None:
            self.log.append(f"{name} failed")

        self.turns.take(
            steps, "host", lambda: self.is_wanted, failed, lambda: self.log.append(f"{name} ended"), lambda: name
        )

    def counted(self, name: str, count: int, cost_s: float = TURN_SECONDS) -> Steps:
        """Each step costs a turn, unless another cost is given."""
        for number in range(count):
            self.log.append(f"{name}{number}")
            self.now_s += cost_s
            yield None

    def end_thread(self) -> None:
        call, done = self.threads.pop(0)
        done(call())

    def logged(self) -> list[str]:
        found, self.log = self.log, []
        return found


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_steps_are_taken_at_once_as_long_as_the_turn_has_time(rig: Rig) -> None:
    rig.take("a", rig.counted("a", 5, TURN_SECONDS / 10))
    assert rig.logged() == ["a0", "a1", "a2", "a3", "a4", "a ended"]


def test_jobs_take_turns_and_a_connection_that_waits_passes_them(rig: Rig) -> None:
    rig.turns.is_used_up()
    rig.take("a", rig.counted("a", 3))
    rig.take("b", rig.counted("b", 2))
    rig.turns.wait(lambda: rig.log.append("short"))
    assert rig.logged() == ["a0", "b0"]
    rig.loop.turn()
    assert rig.logged() == ["short", "a1"], "at least one of either line, and no more than the budget"
    rig.loop.turn()
    assert rig.logged() == ["b1"]
    rig.loop.settle()
    assert rig.logged() == ["a2", "b ended", "a ended"]


def test_many_connections_that_wait_leave_half_of_a_turn_to_jobs(rig: Rig) -> None:
    rig.turns.is_used_up()

    def frame() -> None:
        rig.now_s += TURN_SECONDS / 4
        rig.log.append("frame")

    rig.take("a", rig.counted("a", 2))
    for _ in range(5):
        rig.turns.wait(frame)
    rig.logged()
    rig.loop.turn()
    assert rig.logged() == ["frame", "frame", "a1"]


def test_a_thread_does_what_it_is_given_and_its_outcome_is_sent_back(rig: Rig) -> None:
    def steps() -> Steps:
        found = yield lambda: 7
        rig.log.append(f"found {found}")

    rig.take("a", steps())
    assert rig.logged() == []
    rig.end_thread()
    assert rig.logged() == ["found 7", "a ended"]


def test_one_clients_long_work_is_done_one_piece_after_another(rig: Rig) -> None:
    def steps() -> Steps:
        yield lambda: None

    rig.take("a", steps())
    rig.take("b", steps())
    assert len(rig.threads) == 1
    rig.end_thread()
    assert len(rig.threads) == 1
    rig.end_thread()
    assert rig.logged() == ["a ended", "b ended"]


def test_a_pause_is_ended_by_somebody_else_before_or_after_it_begins(rig: Rig) -> None:
    early, late = Until(), Until()
    early.set("early")

    def steps() -> Steps:
        for pause in (early, late):
            found = yield pause
            rig.log.append(found)

    rig.take("a", steps())
    assert rig.logged() == ["early"]
    late.set("late")
    assert rig.logged() == ["late", "a ended"]


def test_a_bug_in_steps_ends_them_alone(rig: Rig) -> None:
    def steps() -> Steps:
        yield None
        raise ValueError("a bug")

    rig.take("a", steps())
    assert rig.logged() == ["a failed", "a ended"]


def test_what_is_not_wanted_any_more_is_closed_where_it_stands(rig: Rig) -> None:
    rig.turns.is_used_up()

    def steps() -> Steps:
        try:
            yield from rig.counted("a", 3)
        finally:
            rig.log.append("closed")

    rig.take("a", steps())
    rig.is_wanted = False
    rig.loop.settle()
    assert rig.logged() == ["a0", "closed", "a ended"]


def test_a_thread_is_not_kept_by_work_whose_client_has_gone(rig: Rig) -> None:
    """Guesses of passwords would pile up, and everybody of the same address would wait for them."""
    worked: list[str] = []

    def steps() -> Steps:
        yield lambda: worked.append("worked")

    rig.take("a", steps())
    rig.is_wanted = False
    rig.end_thread()
    assert (worked, rig.logged()) == ([], ["a ended"])


def test_work_that_keeps_the_loop_is_told(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.turns.is_used_up()
    rig.take("Metadata from 10.0.0.1", rig.counted("a", 1, LONG_TURN_SECONDS))
    assert rig.turns.took_long == 1
    assert rig.turns.longest_seconds >= LONG_TURN_SECONDS
    assert "the event loop was kept for 100 ms by Metadata from 10.0.0.1" in caplog.text
