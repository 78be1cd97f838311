"""The alarm before the disk is full: records are refused then, and the operator hears of it in time.

Theory of operation. The disk is asked at intervals, on a thread. A line is written when less is free than the option
says, again as long as that lasts, and once more when there is room again.

    little is free   little was free         there was room
    yes              a warning, at times *   a warning
    no               there is room again     -

* It is written when the last one is `AGAIN_SECONDS` old.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from exacta.front.disk_space import DiskSpace, ask_disk_space

INTERVAL_SECONDS = 60.0
AGAIN_SECONDS = 3600.0

logger = logging.getLogger("exacta.server")


class FreeSpaceAlarm:
    """Watches one data directory; at 0 percent it never says anything. `clock` gives seconds from any moment on."""

    def __init__(self, data: Path, percent: int, clock: Callable[[], float]) -> None:
        self._data = data
        self._percent = percent
        self._clock = clock
        self._said_at: float | None = None
        """The time of the last warning; None: there is room."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look now, and at intervals for as long as the loop runs."""
        if not self._percent:
            return

        def look_later(space: DiskSpace) -> None:
            self.look(space)
            loop.call_later(INTERVAL_SECONDS, self.start, loop)

        ask_disk_space(self._data, look_later)

    def look(self, space: DiskSpace) -> None:
        """Say what is to be said of the bytes of the disk, and its free bytes; negative ones are not known."""
        total, free = space
        if total <= 0:
            return
        percent, now = 100 * free / total, self._clock()
        values = {"data": str(self._data), "percent": percent, "free_bytes": free, "least_percent": self._percent}
        if percent >= self._percent:
            if self._said_at is not None:
                logger.info("the disk of %(data)s has room again: %(percent).1f %% are free", values)
            self._said_at = None
        elif self._said_at is None or now - self._said_at >= AGAIN_SECONDS:
            self._said_at = now
            logger.warning(
                "the disk of %(data)s is almost full: %(percent).1f %% are free, %(free_bytes)d bytes "
                "(disk.free.alarm.percent=%(least_percent)d). A full disk takes no records: make room, or keep less by "
                "retention.ms and retention.bytes",
                values,
            )
