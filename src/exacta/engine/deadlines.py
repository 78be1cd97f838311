"""Deadlines: all of them in one heap, with one timer of the event loop for the earliest."""

import heapq
from collections.abc import Callable

from exacta.ports.scheduler import Scheduler, TimerHandle

LONGEST_SLEEP_MS = 60_000
"""The clock is looked at least this often: it goes on while the machine sleeps, and the loop's timers may not."""


MOST_CANCELLED = 100
"""This many cancelled deadlines are borne, and more while they are not the larger part, so that each costs little."""


class Deadline:
    """One time that is waited for, and its callback; None: it is cancelled, or was called."""

    __slots__ = ("at_ms", "callback")

    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback: Callable[[], None] | None = callback


class Deadlines:
    """Calls back when times have come.

    A cancelled deadline stays in the heap until its time comes, or until most of the heap is cancelled. Otherwise a
    broker that ends thousands of transactions a second would keep the time-outs of a minute.
    """

    def __init__(self, scheduler: Scheduler, clock: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._heap: list[tuple[int, int, Deadline]] = []
        self._count = 0
        self._cancelled = 0
        self._armed_ms: int | None = None
        self._timer: TimerHandle | None = None
        self._closed = False

    def add(self, at_ms: int, callback: Callable[[], None]) -> Deadline:
        """Call back once, at `at_ms` (milliseconds since 1970) or soon after.

        Callbacks are called in order of time, then of addition.
        """
        deadline = Deadline(at_ms, callback)
        if self._closed:
            return deadline
        self._count += 1
        heapq.heappush(self._heap, (at_ms, self._count, deadline))
        if self._armed_ms is None or at_ms < self._armed_ms:
            self._arm()
        return deadline

    def after(self, wait_ms: int, callback: Callable[[], None]) -> Deadline:
        """Call back once, this many milliseconds from now."""
        return self.add(self._clock() + wait_ms, callback)

    def cancel(self, deadline: Deadline) -> None:
        """Do not call back at this time any more."""
        if deadline.callback is None:
            return
        deadline.callback = None
        self._cancelled += 1
        if self._cancelled > MOST_CANCELLED and self._cancelled > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def clock_was_moved(self) -> None:
        """Call back what has become due, and wait again for the rest: the clock has not only passed."""
        if self._timer is not None:
            self._timer.cancel()
            self._fire()

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
                deadline = heapq.heappop(self._heap)[2]
                callback, deadline.callback = deadline.callback, None
                if callback is None:
                    self._cancelled -= 1
                else:
                    callback()
        finally:
            self._armed_ms = None
            if self._heap:
                self._arm()
