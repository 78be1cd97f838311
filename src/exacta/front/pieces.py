"""Work on each of many things is done piece by piece, each in a step of its own (`turns.py`)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from exacta.front.turns import STEP_ELEMENTS, Steps

T = TypeVar("T")


def by_pieces(
    in_steps: Callable[[Steps], None],
    things: Sequence[T],
    work: Callable[[Sequence[T]], None],
    then: Callable[[], None],
) -> None:
    """Do work on all of these things, and then the rest: at once where they are few, and otherwise in steps."""
    if len(things) <= STEP_ELEMENTS:
        work(things)
        then()
        return

    def steps() -> Steps:
        for begin in range(0, len(things), STEP_ELEMENTS):
            work(things[begin : begin + STEP_ELEMENTS])
            yield None
        then()

    in_steps(steps())
