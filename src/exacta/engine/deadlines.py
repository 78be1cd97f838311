"""Deadlines: all of them in one heap, with one timer of the event loop for the earliest."""

import heapq
from collections.abc import Callable

from exacta.ports.scheduler import Scheduler, TimerHandle

LONGEST_SLEEP_MS = 60_000
"""The clock is looked at least this often: it goes on while the machine sleeps, and the loop's timers may not."""


class Deadlines:
    """Calls back when times have come. No deadline is cancelled: a callback checks whether it still applies."""

    def __init__(self, scheduler: Scheduler, clock: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._armed_ms: int | None = None
        self._timer: TimerHandle | None = None
        self._closed = False

    def add(self, at_ms: int, callback: Callable[[], None]) -> None:
        """Call back once, at `at_ms` (milliseconds since 1970) or soon after.

        Callbacks are called in order of time, then of addition.
        """
        if self._closed:
            return
        self._count += 1
        heapq.heappush(self._heap, (at_ms, self._count, callback))
        if self._armed_ms is None or at_ms < self._armed_ms:
            self._arm()

    def close(self) -> None:
        """Forget all deadlines, also those that are added later."""
        self._closed = True
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        now_ms = self._clock()
        self._armed_ms = min(self._heap[0][0], now_ms + LONGEST_SLEEP_MS)
        self._timer = self._scheduler.call_later(max(0, self._armed_ms - now_ms) / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        # Anything earlier than "never" must arm again; what the callbacks add is armed once, below.
        self._armed_ms = -1
        now_ms = self._clock()
        try:
            while self._heap and self._heap[0][0] <= now_ms:
                heapq.heappop(self._heap)[2]()
        finally:
            self._armed_ms = None
            if self._heap:
                self._arm()
