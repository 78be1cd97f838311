"""The arithmetic of quotas: a bucket of tokens, of which the quota says how many come in each second.

What happens takes tokens, also more than there are. Then some are owed, and the throttle time is how long it takes
until nothing is owed. A bucket that is full keeps what a burst may take, and no more. So in any span of time a client
that keeps to its throttle times takes what comes in, one burst, and the last thing that went beyond.

Apache Kafka measures bytes and processor time over 10 to 11 windows of a second instead (`Rate`). There a client that
was silent may take ten seconds' worth at once, is then held for as long, and at the end of each window gets a throttle
time that is too short by a second. A bucket with a burst of one second keeps the rate over ten seconds within a tenth
of the quota, is exact, and needs two numbers instead of 22. Partitions are measured by a bucket in Apache Kafka, too
(KIP-599).

Time is given, in milliseconds from any moment on. Nothing here looks at a clock.
"""

from math import ceil
from typing import Final

ROUNDING_MS: Final = 1e-6
"""Adding and taking away of fractions may leave so little, which is no time."""


class TokenBucket:
    """The tokens of those who share a quota; there are `burst_s` seconds' worth of them at first, and at most."""

    __slots__ = ("_missing", "_told_ms", "burst_s")

    def __init__(self, burst_s: float, now_ms: float) -> None:
        self.burst_s = burst_s
        self._missing = 0.0
        """The tokens by which the bucket is not full."""
        self._told_ms = now_ms

    def tokens(self, limit: float, now_ms: float) -> float:
        """Return how many tokens there are, of which `limit` come in each second; below zero they are owed."""
        missing = self._missing - limit * (now_ms - self._told_ms) / 1000
        self._missing = missing if missing > 0 else 0.0
        self._told_ms = now_ms
        return limit * self.burst_s - self._missing

    def take(self, amount: float, limit: float, now_ms: float) -> int:
        """Take tokens, or give some back (below zero); return the throttle time that follows, in milliseconds."""
        self.tokens(limit, now_ms)
        missing = self._missing + amount
        self._missing = missing if missing > 0 else 0.0
        return self.throttle_ms(limit, now_ms)

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """Return how long it takes until nothing is owed, in whole milliseconds; 0: nothing is."""
        owed = -self.tokens(limit, now_ms)
        return max(0, ceil(owed / limit * 1000 - ROUNDING_MS))
