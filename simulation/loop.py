"""An event loop whose time is virtual: it jumps to the next timer when nothing is ready.

Owns time and order. asyncio's own loop does the rest: callbacks run in the order in which they were scheduled, timers
in the order of their times, so that every order that is seen here can be seen in production. There is no thread, no
socket and no file to wait for; a loop on which nothing can ever happen again is an error (`NothingHappens`).
"""

import asyncio
from collections.abc import Callable
from typing import Any

# What is below the resolution of virtual time counts as now.
RESOLUTION_SECONDS = 1e-9


class NothingHappens(Exception):
    """Everybody waits, and nobody for a time: a deadlock."""


class _Selector:
    """A selector that lets virtual time pass where a real loop waits for sockets."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise NothingHappens
        self._loop.pass_time(timeout)
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """One world's loop."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._clock_resolution = RESOLUTION_SECONDS
        self._selector = _Selector(self)

    def time(self) -> float:
        """Return the seconds since the world began."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Let this time pass while everybody waits."""
        self._now += max(0.0, seconds)

    def call_soon_threadsafe(  # type: ignore[override]  # it is said with more types there
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """There are no threads."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # it is said with more types there
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """There are no threads: what a thread does would take real time."""
        raise AssertionError(f"{func} is to run on a thread")

    def _process_events(self, event_list: list[object]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nobody has to wake the loop."""
