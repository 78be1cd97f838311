"""The calls that are made in each turn of a loop that is turned by hand, in which each look at the clock ends a turn.

What a thread would do is not counted.
"""

from collections.abc import Callable
from cProfile import Profile
from typing import Any, NamedTuple

from exacta.front.memory import Memory
from exacta.front.turns import TURN_SECONDS
from tests.front.transport import Loop


class Work(NamedTuple):
    """The calls of all turns, and those of the turn that made most of them."""

    total: int
    most: int


class Counter:
    """Counts what the broker of this loop and this memory does."""

    def __init__(self, loop: Loop, memory: Memory) -> None:
        self._loop = loop
        self._now_s = 0.0
        self._profile: Profile | None = None
        memory.turns.clock = self._look
        memory.conversions._start = self._on_thread

    def _look(self) -> float:
        self._now_s += TURN_SECONDS
        return self._now_s

    def _on_thread(self, call: Callable[[], Any], done: Callable[[Any], Any]) -> None:
        def work() -> None:
            if self._profile is not None:
                self._profile.disable()
            try:
                found = call()
            except Exception as error:  # noqa: BLE001  # as from a thread
                found = error
            if self._profile is not None:
                self._profile.enable()
            done(found)

        self._loop.call_soon(work)

    def work(self) -> Work:
        """Let the loop turn until nothing happens any more."""
        total = most = 0
        while self._loop.ready:
            self._profile = Profile(subcalls=False, builtins=False)
            self._profile.enable()
            self._loop.turn()
            self._profile.disable()
            calls = sum(each.callcount for each in self._profile.getstats())
            total, most = total + calls, max(most, calls)
        self._profile = None
        return Work(total, most)
