"""The budgets: who waits, who is woken, who is let on, who is given up."""

import pytest

from exacta.front.memory import LEAST_ANSWER_BYTES, LEAST_PROGRESS_BYTES, MemoryBudget
from tests.engine.rig import ManualLoop

STALL_MS = 1_000


class One:
    """A holder that notes what is done to it."""

    def __init__(self, *, half_read: bool = False) -> None:
        self.woken = 0
        self.moved: int | None = 0
        self.given_up = False
        self.half_read = half_read

    def room_again(self) -> None:
        self.woken += 1

    def moved_bytes(self, budget: MemoryBudget) -> int | None:
        return self.moved

    def is_half_read(self) -> bool:
        return self.half_read

    def give_up(self, budget: MemoryBudget) -> None:
        self.given_up = True
        budget.leave(self)


@pytest.fixture
def loop() -> ManualLoop:
    """Turned by hand."""
    return ManualLoop()


@pytest.fixture
def budget(loop: ManualLoop) -> MemoryBudget:
    """One that is full."""
    full = MemoryBudget("an.option", 10 << 20, STALL_MS, loop)
    full.used_bytes = 10 << 20
    return full


def test_those_who_wait_are_woken_in_their_order_one_a_turn(budget: MemoryBudget, loop: ManualLoop) -> None:
    many = [One() for _ in range(3)]
    for one in many:
        budget.wait(one)
    budget.wait(many[0])  # it keeps its place
    loop.turn()
    assert [one.woken for one in many] == [0, 0, 0]
    budget.give(1)
    for expected in ([1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]):
        loop.turn()
        assert [one.woken for one in many] == expected


def test_nobody_is_woken_when_the_one_before_has_taken_all(budget: MemoryBudget, loop: ManualLoop) -> None:
    first, second = One(), One()
    first.room_again = lambda: setattr(budget, "used_bytes", budget.most_bytes)  # type: ignore[method-assign]
    budget.wait(first)
    budget.wait(second)
    budget.give(5)
    loop.settle()
    assert second.woken == 0
    budget.give(5)
    loop.settle()
    assert second.woken == 1


def test_one_at_a_time_is_let_on_and_then_the_next_that_has_begun(budget: MemoryBudget, loop: ManualLoop) -> None:
    first, idle, second = One(half_read=True), One(), One(half_read=True)
    assert budget.lets_on(first)
    assert budget.lets_on(first)
    assert not budget.lets_on(second)
    budget.wait(idle)
    budget.wait(second)
    budget.leave(first)
    loop.settle()
    assert (idle.woken, second.woken) == (0, 1)
    assert budget.let_on is second
    budget.pass_on()
    assert budget.let_on is None


def test_an_answer_gets_a_part_of_what_is_left_but_never_nothing(budget: MemoryBudget) -> None:
    assert budget.share() == LEAST_ANSWER_BYTES
    budget.used_bytes = 0
    assert budget.share() == (10 << 20) // 4


def test_who_does_not_move_is_given_up_while_somebody_waits(budget: MemoryBudget, loop: ManualLoop) -> None:
    stands, goes, not_its_part, came_late = One(), One(), One(), One()
    not_its_part.moved = None
    for one in (stands, goes, not_its_part):
        budget.watch(one)
    loop.pass_time(10 * STALL_MS)
    assert not stands.given_up
    budget.wait(One())
    loop.pass_time(STALL_MS + STALL_MS // 2)
    budget.watch(came_late)
    assert not stands.given_up
    stands.moved, goes.moved = LEAST_PROGRESS_BYTES - 1, LEAST_PROGRESS_BYTES
    loop.pass_time(STALL_MS)
    assert [one.given_up for one in (stands, goes, not_its_part, came_late)] == [True, False, False, False]
    budget.unwatch(came_late)
    loop.pass_time(10 * STALL_MS)
    assert (goes.given_up, came_late.given_up) == (True, False)


def test_no_timer_runs_when_nobody_waits(budget: MemoryBudget, loop: ManualLoop) -> None:
    one = One()
    budget.wait(one)
    budget.leave(one)
    loop.pass_time(10 * STALL_MS)
    assert loop.later == []
