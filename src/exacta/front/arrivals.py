"""The connections that must log in and have not: for how long each may take, and how many there may be.

A connection that says nothing would hold its place among `max.connections` for `connections.max.idle.ms`. So a login
must be over in `LOGIN_SECONDS`. Where `MOST_ARRIVALS` are there, a new one closes the oldest of the host that has most
of them, as with handshakes of TLS (`server/tls.py`): silent connections keep nobody out.

Apache Kafka has neither.
"""

import logging
from collections import Counter
from typing import Final, Protocol

from exacta.front.hosts import share_of
from exacta.ports.scheduler import Scheduler, TimerHandle

logger = logging.getLogger("exacta.front")

LOGIN_SECONDS: Final = 30.0
"""A refusal waits for five seconds, and attempts of an address for one another."""
MOST_ARRIVALS: Final = 1_000
"""They hold 64 MiB at most, with the default of `sasl.server.max.receive.size`. After a restart clients come back in
hundreds, and a login takes some milliseconds."""


class Arrival(Protocol):
    """A connection that must log in, as this sees it."""

    peer_host: str

    def refuse(self, reason: str) -> None:
        """Close the connection, with a line in the log."""


class Arrivals:
    """Keeps the arrivals of one server, at all doors."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._coming: dict[Arrival, TimerHandle] = {}
        """The connections that have not logged in, the oldest first, and when each is closed."""

    def comes(self, connection: Arrival) -> None:
        """Let a connection log in from now on."""
        if len(self._coming) >= MOST_ARRIVALS:
            self._make_room()
        reason = f"it has not logged in within {LOGIN_SECONDS:g} s"
        self._coming[connection] = self._scheduler.call_later(LOGIN_SECONDS, connection.refuse, reason)

    def leaves(self, connection: Arrival) -> None:
        """Note that a connection has logged in, or has ended; harmless where that is known."""
        timer = self._coming.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _make_room(self) -> None:
        shares = Counter(share_of(each.peer_host) for each in self._coming)
        most = max(shares.values())
        ended = next(each for each in self._coming if shares[share_of(each.peer_host)] == most)
        self.leaves(ended)
        ended.refuse(f"{MOST_ARRIVALS} others have not logged in either, and most of them are of its host")
