"""A clock with two times: one that never jumps, by which the broker decides, and the wall clock's, for records.

Theory of operation. The first time is the wall clock's at the start, and then only passes. Deadlines, time-outs and
ages of what the broker itself has noted go by it. So if somebody sets the machine's clock, no member is thrown out of
its group, no transaction lives an hour longer, and nothing that was given a time gets another order. The timestamps of
records, and the timestamps that producers may send, go by the wall clock. The age of a record goes by the one of the
two times that makes it younger, so that a clock that jumps ahead deletes nothing. A restart begins with the wall clock
again, but never before a time that was noted in an earlier life
(`exacta.core.transactions.expiry.latest_noted_ms`).
"""

import logging
import time
from collections.abc import Callable

NOTED_JUMP_MS = 60_000
"""The operator is told of a jump of the wall clock that is at least so large."""

logger = logging.getLogger(__name__)


class Clock:
    """The time in milliseconds since 1970, in two ways."""

    def __init__(self, wall_s: Callable[[], float] = time.time, elapsed_s: Callable[[], float] | None = None) -> None:
        """Begin at the wall clock's time.

        `elapsed_s` gives seconds that only pass; by default also while the machine sleeps, where it can tell.
        """
        self._wall_s = wall_s
        self._elapsed_s = elapsed_s or since_boot_s
        self._begin_s = wall_s() - self._elapsed_s()
        self._noted_ms = 0

    def now_ms(self) -> int:
        """Return the time that never jumps."""
        return int((self._begin_s + self._elapsed_s()) * 1000)

    def wait_ms(self) -> int:
        """Return the time by which clients wait for records; it may pass while `now_ms` stands still, in a test."""
        return self.now_ms()

    def wall_ms(self) -> int:
        """Return the wall clock's time."""
        return int(self._wall_s() * 1000)

    def least_ms(self) -> int:
        """Return the lesser of the two times; tell the operator when they have come apart."""
        now_ms, wall_ms = self.now_ms(), self.wall_ms()
        if abs(wall_ms - now_ms - self._noted_ms) >= NOTED_JUMP_MS:
            self._noted_ms = wall_ms - now_ms
            logger.warning(
                "the machine's clock was set by %+d seconds since the start; deadlines go on as if it had not been, "
                "and records are taken to be as young as either time has them, until a restart",
                self._noted_ms // 1000,
            )
        return min(now_ms, wall_ms)


def since_boot_s() -> float:
    """Return seconds that only pass: since the machine was started where it can tell, also while it slept."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
