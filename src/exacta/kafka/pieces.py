"""Work on each of many things is done piece by piece, each in a step of its own (`front/turns.py`)."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from exacta.front.turns import STEP_ELEMENTS, Steps
from exacta.kafka.context import RequestContext

T = TypeVar("T")


def by_pieces(
    context: RequestContext, things: Sequence[T], work: Callable[[Sequence[T]], None], then: Callable[[], None]
) -> None:
    """Do work on all of these things, and then the rest: at once where they are few, and otherwise in steps.

    The answer to a request about many things is encoded on a thread.
    """
    if len(things) <= STEP_ELEMENTS:
        work(things)
        then()
        return

    def steps() -> Steps:
        for begin in range(0, len(things), STEP_ELEMENTS):
            work(things[begin : begin + STEP_ELEMENTS])
            yield None
        then()

    context.is_long = True
    context.in_steps(steps())


def run(context: RequestContext, steps: Steps) -> None:
    """Take steps that only pause: at once for a short request, and otherwise as there is time."""
    if context.is_long:
        context.in_steps(steps)
    else:
        deque(steps, maxlen=0)
