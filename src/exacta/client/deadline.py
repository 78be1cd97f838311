"""Deadlines and back-off. This is the only place of the client that waits."""

import random
import time

from exacta.client.errors import DeadlineExceeded

REQUEST_TIMEOUT_MS = 30_000
"""A reply must come within this time; a broker silent for longer is treated as lost."""


class Deadline:
    """A point in monotonic time until which a call may try, each of its requests for at most `request_timeout_ms`."""

    __slots__ = ("_at_s", "_whole", "request_timeout_ms", "timeout_ms")

    def __init__(
        self, timeout_ms: float, request_timeout_ms: float = REQUEST_TIMEOUT_MS, whole: "Deadline | None" = None
    ) -> None:
        self.timeout_ms = timeout_ms
        self.request_timeout_ms = request_timeout_ms
        self._whole = whole
        self._at_s = time.monotonic() + timeout_ms / 1000

    def part(self, timeout_ms: float) -> "Deadline":
        """Return the deadline of a part of the call, `timeout_ms` from now."""
        return Deadline(timeout_ms, self.request_timeout_ms, self.whole)

    @property
    def whole(self) -> "Deadline":
        """Return the deadline of the whole call, of which this one may be a part."""
        return self._whole or self

    @property
    def remaining_s(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self._at_s - time.monotonic())

    @property
    def passed(self) -> bool:
        """Return whether no time is left."""
        return self.remaining_s == 0.0


class Backoff:
    """Waits that grow from `first_ms` to `most_ms`, with jitter, and never beyond a deadline.

    The first wait is short: after CONCURRENT_TRANSACTIONS the broker needs a moment, not a pause; a broker that is
    being started again needs seconds, and gets there in seven steps.
    """

    __slots__ = ("_first_ms", "_most_ms", "_next_ms")

    def __init__(self, first_ms: float = 4, most_ms: float = 250) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._next_ms = first_ms

    def reset(self) -> None:
        """Begin again with the shortest wait, after something succeeded."""
        self._next_ms = self._first_ms

    def wait(self, deadline: Deadline, cause: Exception) -> None:
        """Wait for the next step; raise `DeadlineExceeded` from `cause` where no time is left for another attempt."""
        wait_s = self._next_ms * random.uniform(0.75, 1.25) / 1000
        self._next_ms = min(self._next_ms * 2, self._most_ms)
        if deadline.remaining_s <= wait_s:
            raise DeadlineExceeded(f"gave up after {deadline.timeout_ms / 1000:g} s: {cause}") from cause
        time.sleep(wait_s)


def for_one_request(deadline: Deadline) -> "Deadline":
    """Return the deadline of one request: the call's, but no later than a silent broker is given up."""
    timeout_ms = deadline.request_timeout_ms
    return deadline if deadline.remaining_s * 1000 <= timeout_ms else deadline.part(timeout_ms)
