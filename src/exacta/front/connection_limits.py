"""Which connections are let in: bounds on all of them, and on those of one host.

Owns the counting and what is logged of it. A connection beyond a bound is closed at once: its client tries again after
its back-off, which is the only answer that needs no room. (Apache Kafka does so where one host has too many; where all
have, it lets further ones wait in the backlog, unanswered until their requests time out.)
"""

import logging
from collections import Counter
from collections.abc import Callable

logger = logging.getLogger("exacta.front")

QUIET_SECONDS = 10.0
"""Between two lines of the log about connections that were not let in."""


class Admission:
    """Counts connections by host. `clock` gives seconds; of which moment on does not matter."""

    def __init__(self, most: int, most_per_host: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._most_per_host = most_per_host
        self._clock = clock
        self._hosts: Counter[str] = Counter()
        self._count = 0
        self._quiet_until = -QUIET_SECONDS
        self._unsaid = 0

    def admit(self, host: str) -> bool:
        """Count a connection from this host, or say in the log why not."""
        if self._count >= self._most:
            self._refuse(host, f"there are {self._most} already (max.connections, or half of the files)")
        elif self._hosts[host] >= self._most_per_host:
            self._refuse(host, f"it has max.connections.per.ip={self._most_per_host} already")
        else:
            self._count += 1
            self._hosts[host] += 1
            return True
        return False

    def leave(self, host: str) -> None:
        """Count a connection that was let in no more."""
        self._count -= 1
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def _refuse(self, host: str, reason: str) -> None:
        self._unsaid += 1
        now = self._clock()
        if now < self._quiet_until:
            return
        more = f", and {self._unsaid - 1} more since the last such line" if self._unsaid > 1 else ""
        logger.warning("closing a connection of %s%s: %s", host, more, reason)
        self._quiet_until = now + QUIET_SECONDS
        self._unsaid = 0
