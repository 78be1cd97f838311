"""The time of the event loop, shared out among all clients: long work is done in steps, and a turn has a budget.

Owns the budget of a turn, the two lines of those who wait for the next one, and the report of a turn that took long.

Theory of operation. The loop does one thing after another; while it works for one client, everybody else waits, also
the probe that asks whether the broker lives. So nobody takes more than a step before the clock is looked at:

- A connection begins frames as long as the turn has time (`is_used_up`), and otherwise waits in a line (`wait`).
- Work that may be long is a generator (`Steps`). It yields None where it may pause, at least after each
  `STEP_ELEMENTS` elements, a function where a thread shall do a part of it, and an `Until` where it waits.

In each turn the connections that wait go first, for half of the budget, so that a short request passes long ones. Then
come the jobs that wait, each until the turn is used up, and the one that was stopped goes to the end of its line.
At least one of either line goes on in each turn.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, TypeAlias

from exacta.front.conversions import Conversions
from exacta.ports.scheduler import Scheduler

logger = logging.getLogger("exacta.front")

TURN_SECONDS: Final = 0.02
LONG_TURN_SECONDS: Final = 0.1
"""A piece of work that keeps the loop for so long is told to the operator, with the client and what it asked for."""

STEP_ELEMENTS: Final = 1_000
"""The most elements of a request that are decoded, answered or decided between two looks at the clock."""


class Until:
    """A pause of unknown length, which `set` ends, with what the steps are sent."""

    def __init__(self) -> None:
        self._go_on: Callable[[Any], None] | None = None
        self._found: list[Any] = []

    def set(self, found: Any = None) -> None:
        """End the pause. It may have ended before it began."""
        if self._go_on is None:
            self._found.append(found)
        else:
            self._go_on(found)

    def then(self, go_on: Callable[[Any], None]) -> bool:
        """Call back when the pause ends; return False where it has ended."""
        self._go_on = go_on
        return not self._found

    @property
    def found(self) -> Any:
        """The outcome that `set` was given before the pause began."""
        return self._found[0]


Steps: TypeAlias = Generator[Callable[[], Any] | Until | None, Any, None]
"""Work in steps. None is a pause until there is time again. A function is called on a thread, and what comes of it is
sent back, an exception included. An `Until` is a pause that somebody else ends."""


class Turns:
    """The turns of one broker's loop. `clock` gives seconds from any moment on."""

    def __init__(
        self,
        scheduler: Scheduler,
        conversions: Conversions,
        clock: Callable[[], float] = time.perf_counter,
        processor_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`processor_clock` tells what the loop's thread has had of a processor: others may have kept it from one."""
        self.clock = clock
        self.took_long = 0
        """The number of times that a piece of work kept the loop for longer than `LONG_TURN_SECONDS`."""
        self.longest_seconds = 0.0
        self._scheduler = scheduler
        self._conversions = conversions
        self._ends_s = 0.0
        self._begun = False
        self._processor_clock = processor_clock
        self._processor_s = 0.0
        self._connections: deque[Callable[[], None]] = deque()
        self._jobs: deque[Callable[[], None]] = deque()

    def is_used_up(self) -> bool:
        """Return whether this turn has no time left for anybody."""
        now_s = self.clock()
        if not self._begun:
            self._begin(now_s)
            return False
        return now_s >= self._ends_s

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call back in one of the next turns, when it is this connection's."""
        self._connections.append(go_on)
        if not self._begun:
            self._begin(self.clock())

    def note(self, began_s: float, what: Callable[[], str]) -> None:
        """Note that a piece of work has ended, which began at that time; `what` describes it."""
        seconds = self.clock() - began_s
        if seconds > self.longest_seconds:
            self.longest_seconds = seconds
        if seconds >= LONG_TURN_SECONDS <= self._processor_clock() - self._processor_s:
            self.took_long += 1
            logger.warning("the event loop was kept for %.0f ms by %s", seconds * 1000, what())

    def take(
        self,
        steps: Steps,
        owner: str,
        is_wanted: Callable[[], bool],
        failed: Callable[[], None],
        ended: Callable[[], None],
        what: Callable[[], str],
    ) -> None:
        """Take steps as long as this turn has time, and the others later; then call `ended`.

        `owner` is the client's host: its long work is done one piece after another. Where the steps raise, `failed` is
        called while the exception is handled, and then `ended`. What is not wanted any more is closed, and `ended`.
        """

        def go_on(sent: Any = None) -> None:
            began_s = self.clock()
            try:
                while True:
                    if not is_wanted():
                        steps.close()
                        ended()
                        break
                    wanted = steps.send(sent)
                    sent = None
                    if isinstance(wanted, Until):
                        if wanted.then(found):
                            break
                        sent = wanted.found
                    elif wanted is not None:
                        self._conversions.on_thread(partial(_if_wanted, wanted, is_wanted), found, owner=owner)
                        break
                    if self.is_used_up():
                        self._jobs.append(partial(go_on, sent))
                        break
            except StopIteration:
                ended()
            except Exception:  # noqa: BLE001  # a bug in one handler must not end the server
                failed()
                ended()
            self.note(began_s, what)

        def found(outcome: Any) -> None:
            if self.is_used_up():
                self._jobs.append(partial(go_on, outcome))
            else:
                go_on(outcome)

        go_on()

    def _begin(self, now_s: float) -> None:
        self._begun = True
        self._processor_s = self._processor_clock()
        self._ends_s = now_s + TURN_SECONDS
        self._scheduler.call_soon(self._next)

    def _next(self) -> None:
        self._begun = False
        if not self._connections and not self._jobs:
            return
        now_s = self.clock()
        self._begin(now_s)
        self._go_on(self._connections, now_s + TURN_SECONDS / 2)
        self._go_on(self._jobs, self._ends_s)

    def _go_on(self, line: deque[Callable[[], None]], until_s: float) -> None:
        for _ in range(len(line)):  # those who come to the line meanwhile wait for the next turn
            line.popleft()()
            if self.clock() >= until_s:
                break


def _if_wanted(work: Callable[[], Any], is_wanted: Callable[[], bool]) -> Any:
    """Do work, on a thread, unless its client has gone while it waited: the steps are closed when they go on."""
    return work() if is_wanted() else None
