"""Bounded parallelism: one request has many pieces of work, and few of them run at a time.

Each piece may hold a whole batch in memory until it ends.
"""

from collections import deque
from collections.abc import Callable, Iterable

from exacta.front.turns import Steps, Until

Ended = Callable[[], None]


def few_at_once(work: Iterable[Callable[[Ended], None]], most: int, done: Ended) -> None:
    """Begin up to `most` pieces, the next when one has ended; call back when all have.

    A piece calls what it is given, once, when it has ended; it may do so before it returns.
    """
    waiting = iter(work)
    in_flight = 0
    beginning = False

    def begin() -> None:
        nonlocal in_flight, beginning
        if beginning:  # a piece has ended before it returned: the loop below goes on, however many do so
            return
        beginning = True
        while in_flight < most and (piece := next(waiting, None)) is not None:
            in_flight += 1
            piece(ended)
        beginning = False
        if in_flight == 0:
            done()

    def ended() -> None:
        nonlocal in_flight
        in_flight -= 1
        begin()

    begin()


def few_in_steps(work: Iterable[Callable[[Ended], None]], most: int, done: Ended) -> Steps:
    """Do the same with a pause after each piece: for pieces that are many, and mostly end before they return."""
    waiting: deque[Until] = deque()
    for piece in work:
        ended = Until()
        waiting.append(ended)
        piece(ended.set)
        yield waiting.popleft() if len(waiting) == most else None
    while waiting:
        yield waiting.popleft()
    done()
