"""The lag of the event loop: how late it calls what is due."""

import asyncio

from exacta.histogram import SECONDS, Histogram

INTERVAL_SECONDS = 0.5


class LoopLag:
    """Measures from `start` on, for as long as the loop runs."""

    def __init__(self) -> None:
        self.seconds = Histogram(SECONDS)
        self._measures = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to measure, unless that was done."""
        if not self._measures:
            self._measures = True
            self._wait(loop)

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + INTERVAL_SECONDS

        def look() -> None:
            self.seconds.add(max(0.0, loop.time() - due))
            self._wait(loop)

        loop.call_at(due, look)
