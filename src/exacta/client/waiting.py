"""Log once whom a client waits for, when it could reach nobody for a second.

This module owns the moment and the words. A thread of its own looks at the clock, because the client itself may be held
up by the operating system: by a name that is looked up, or by a host that does not answer. It lives from the first
attempt to connect to the first connection, a second at most.
"""

import logging
import threading

from exacta.client.deadline import Deadline

logger = logging.getLogger("exacta.client")

SILENT_S = 1.0


class Waiting:
    """The attempts to connect since the last connection; one thread makes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._said = False
        self._states: dict[str, str] = {}
        self._deadline = Deadline(0)

    def trying(self, address: str, deadline: Deadline) -> None:
        """Take note that a connection to `address` is tried, for a call that ends at `deadline`."""
        with self._lock:
            if self._timer is None or (self._said and deadline.whole is not self._deadline):
                self._begin()  # the first attempt, or the first one of a call after another that gave up
            self._states.setdefault(address, f"{address} has not answered yet")
            self._deadline = deadline.whole

    def failed(self, address: str, reason: Exception) -> None:
        """Take note of why `address` could not be reached."""
        with self._lock:
            self._states[address] = str(reason)

    def over(self) -> None:
        """Take note that somebody was reached, or that nobody is tried any more."""
        with self._lock:
            self._end()

    def _begin(self) -> None:
        self._end()
        self._timer = threading.Timer(SILENT_S, self._say)
        self._timer.daemon = True
        self._timer.start()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._said = False
        self._states.clear()

    def _say(self) -> None:
        with self._lock:
            if threading.current_thread() is not self._timer:
                return  # it was over when this began
            left_s = self._deadline.remaining_s
            if not left_s:
                self._end()
                return
            self._said = True
            told = "; ".join(self._states.values())
        logger.warning("%s; trying for %.0f s more", told, left_s)
