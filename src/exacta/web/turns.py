"""Work of many connections, a little in each turn of the event loop.

A request by HTTP costs ten times as much as one of Kafka's: hundreds that come at once must not hold up the loop.
"""

from collections import deque
from collections.abc import Callable

from exacta.ports.scheduler import Scheduler

MOST_A_TURN = 4
"""They take two or three milliseconds with their answers."""


class WorkLine:
    """A line of pieces of work, of which few are done in one turn of the loop. A piece must raise nothing."""

    def __init__(self, scheduler: Scheduler, most_a_turn: int = MOST_A_TURN) -> None:
        self._scheduler = scheduler
        self._most_a_turn = most_a_turn
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, work: Callable[[], None]) -> None:
        """Do a piece of work in one of the next turns, after those that came before it."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._scheduler.call_soon(self._do)

    def _do(self) -> None:
        for _ in range(min(self._most_a_turn, len(self._waiting))):
            self._waiting[0]()
            self._waiting.popleft()  # after it, so that what it adds finds the line begun
        if self._waiting:
            self._scheduler.call_soon(self._do)
