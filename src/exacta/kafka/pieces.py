"""Long requests are worked on in steps, and their answers are encoded on a thread."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from exacta.front import pieces
from exacta.front.turns import STEP_ELEMENTS, Steps
from exacta.kafka.context import RequestContext

T = TypeVar("T")


def by_pieces(
    context: RequestContext, things: Sequence[T], work: Callable[[Sequence[T]], None], then: Callable[[], None]
) -> None:
    """Do work on all of these things, and then the rest: at once where they are few, and otherwise in steps."""
    if len(things) > STEP_ELEMENTS:
        context.is_long = True
    pieces.by_pieces(context.in_steps, things, work, then)


def run(context: RequestContext, steps: Steps) -> None:
    """Take steps that only pause: at once for a short request, and otherwise as there is time."""
    if context.is_long:
        context.in_steps(steps)
    else:
        deque(steps, maxlen=0)
