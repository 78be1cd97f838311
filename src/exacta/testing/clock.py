"""The broker's time in a test: it can be moved on, and made to stand still.

Owns what is added to the machine's time, and what was stopped of it. The broker knows nothing of it: its own clock
(`exacta.adapters.clock`) is made from two functions, which come from here.

Theory of operation. By the broker's time go time-outs of transactions, sessions of group members and their rebalances,
retention, compaction, the expiry of transactional ids, producers and groups, and the timestamps that the broker gives
(LogAppendTime). By the machine's own time go what clients do, how long a fetch waits for records, and how long a
connection may be idle. `advance` returns when the broker has done what became due, and readers can see it. What it does
at intervals and step by step, such as retention, has begun then.

A move is made on the broker's thread, between two of its steps. While no broker runs, the time that is added counts for
the next start: the broker was down for so long.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exacta.adapters.clock import Clock, since_boot_s

LARGEST_S = 1e12
"""A broker's time is moved by less than this, which is 31,000 years."""

Move = Callable[[Callable[[], None]], None]
"""Runs a function on the broker's thread, lets the broker do what has become due, and returns then."""


class BrokerClock(Clock):
    """The clock of a broker whose time a test moves; fetches wait by the machine's time."""

    def __init__(self, wall_s: Callable[[], float], elapsed_s: Callable[[], float]) -> None:
        super().__init__(wall_s, elapsed_s)
        self._machine = Clock()

    def wait_ms(self) -> int:
        """See `Clock.wait_ms`."""
        return self._machine.now_ms()


class MovableClock:
    """The time of one embedded broker, over all its starts. Any thread but the broker's own may call the methods."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._added_s = 0.0
        self._stands_at: tuple[float, float] | None = None
        """The machine's two times, wall clock and elapsed, at which the broker's time was stopped; None: it passes."""
        self._lock = threading.RLock()

    def make(self) -> Clock:
        """Return the clock for a broker that starts."""
        return BrokerClock(
            lambda: self._added_s + (time.time() if self._stands_at is None else self._stands_at[0]),
            lambda: self._added_s + (since_boot_s() if self._stands_at is None else self._stands_at[1]),
        )

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Move the broker's time on, and return when the broker has done what has become due.

        Raises ValueError for a time that would go back, and for one that no timestamp holds.
        """
        by_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + ms / 1000
        if by_s < 0:
            raise ValueError(f"the broker's time cannot go back, here by {-by_s:g} s")

        def move() -> None:
            self._added_s += by_s

        with self._lock:
            if not self._added_s + by_s < LARGEST_S:  # nor is a NaN
                raise ValueError(f"the broker's time cannot be moved on by {by_s:g} s")
            self._move(move)

    @property
    def is_frozen(self) -> bool:
        """True while the broker's time stands still."""
        return self._stands_at is not None

    def freeze(self) -> None:
        """Let the broker's time stand still until `resume`; `advance` moves it nevertheless. Harmless if it does."""

        def stop() -> None:
            self._stands_at = time.time(), since_boot_s()

        with self._lock:
            if self._stands_at is None:
                self._move(stop)

    def resume(self) -> None:
        """Let the broker's time pass again, from where it stands. Harmless if it does."""

        def go_on() -> None:
            if self._stands_at is not None:
                self._added_s -= since_boot_s() - self._stands_at[1]
                self._stands_at = None

        with self._lock:
            self._move(go_on)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the broker's time stand still for the length of a `with`."""
        self.freeze()
        try:
            yield
        finally:
            self.resume()
