"""The bounds on the number of connections: of all clients together, and of one host.

This module owns the counting and its lines in the log. A connection beyond a bound is closed at once, and its client
tries again after its back-off: no other answer needs so little room. (Apache Kafka does the same where one host has too
many. Where there are too many in all, it lets further ones wait in the backlog until their requests time out.)

An operator must be able to connect when everybody else has taken all there is, in order to see who it is and to change
the bound. So the bounds leave a few connections more to the machine's own addresses.
"""

import logging
from collections import Counter
from collections.abc import Callable

from exacta.front.hosts import is_loopback, same_host

logger = logging.getLogger("exacta.front")

LOOPBACK_RESERVE = 8
"""The connections beyond each bound that the loopback addresses may have: a command needs two or three."""

QUIET_SECONDS = 10.0
"""So much time lies between two lines of the log about connections that were not let in."""


class Admission:
    """Counts connections by host. `clock` gives seconds from any moment on.

    `bounds` returns the most connections, and the most of one host, as they are at that moment. No connection is closed
    that was let in under a higher one.
    """

    def __init__(self, bounds: Callable[[], tuple[int, int]], clock: Callable[[], float]) -> None:
        self._bounds = bounds
        self._clock = clock
        self._hosts: Counter[str] = Counter()
        self._count = 0
        self._quiet_until = -QUIET_SECONDS
        self._unsaid = 0
        self.admitted = 0
        """The connections that were let in, in all."""
        self.refused = 0

    def admit(self, host: str) -> bool:
        """Count a connection from this host, or say in the log why not."""
        host = same_host(host)
        most, most_per_host = self._bounds()
        reserve = LOOPBACK_RESERVE if is_loopback(host) else 0
        if self._count >= most + reserve:
            self.refuse(host, f"there are {self._count} already (max.connections, or half of the files)")
        elif self._hosts[host] >= most_per_host + reserve:
            self.refuse(host, f"it has {self._hosts[host]} already (max.connections.per.ip={most_per_host})")
        else:
            self.admitted += 1
            self._count += 1
            self._hosts[host] += 1
            return True
        return False

    def leave(self, host: str) -> None:
        """Count one connection less: it was let in and has ended."""
        host = same_host(host)
        self._count -= 1
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def refuse(self, host: str, reason: str) -> None:
        """Count a connection that is closed before anything is read of it, and say so in the log, now and then."""
        self.refused += 1
        self._unsaid += 1
        now = self._clock()
        if now < self._quiet_until:
            return
        more = f", and {self._unsaid - 1} more since the last such line" if self._unsaid > 1 else ""
        logger.warning("closing a connection of %s%s: %s", host, more, reason)
        self._quiet_until = now + QUIET_SECONDS
        self._unsaid = 0
