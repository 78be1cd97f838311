"""The lag of the event loop: how late it calls what is due."""

import asyncio

from exacta.histogram import SECONDS, Histogram

INTERVAL_SECONDS = 0.5


class LoopLag:
    """Measures from `start` on, for as long as the loop runs."""

    def __init__(self) -> None:
        self.seconds = Histogram(SECONDS)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to measure."""
        due = loop.time() + INTERVAL_SECONDS

        def look() -> None:
            self.seconds.add(max(0.0, loop.time() - due))
            self.start(loop)

        loop.call_at(due, look)
