"""The connections of one server: who is let in, how many there may be, and when the last one has left."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import ClassVar, Protocol

from exacta.config.configuration import Configuration
from exacta.front.broker import Broker
from exacta.front.connection_limits import Admission
from exacta.front.revocation import RevocableConnection, Revocation
from exacta.server.open_files import files_allowed

TOO_SOON = "its address makes connections faster than its quota lets it (connection_creation_rate)"


class ServedConnection(RevocableConnection, Protocol):
    """A client's connection of any front, as the server sees it."""

    front: ClassVar[str]
    peer_host: str

    def stop_taking_requests(self) -> None:
        """Begin to work on no further request."""

    def close(self) -> None:
        """Close once everything that is ready has been sent."""

    def hand_over(self) -> None:
        """Close as well, and tell the client who leads now where its protocol has a word for that."""

    def abort(self) -> None:
        """Close at once."""


class Connections(Collection[ServedConnection]):
    """All connections of a server. `stays` says of which fronts they outlive the broker that they were let in to."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, configuration: Configuration, stays: Callable[[str], bool]
    ) -> None:
        self._loop = loop
        self._configuration = configuration
        self._stays = stays
        self._all: set[ServedConnection] = set()
        self._broker: Broker | None = None
        self._revocation: Revocation | None = None
        self.admission = Admission(self._most, loop.time)
        self.is_open = True
        """False: only those are let in that outlive a broker."""
        self._deserted = asyncio.Event()
        self._deserted.set()

    def __contains__(self, connection: object) -> bool:
        return connection in self._all

    def __iter__(self) -> Iterator[ServedConnection]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def belong_to(self, broker: Broker, revocation: Revocation) -> None:
        """Go by the options and the quotas of this broker from now on, and tell its revocation of who has left."""
        self._broker, self._revocation = broker, revocation

    def register(self, connection: ServedConnection) -> bool:
        """Let a connection in; False: it is to be closed at once."""
        if not self.is_open and not self._stays(connection.front):
            return False
        if not self.admission.admit(connection.peer_host):
            return False
        self._all.add(connection)
        self._deserted.clear()
        self._look_at_quota(connection)
        return True

    def forget(self, connection: ServedConnection) -> None:
        """Note that a connection that was let in has ended."""
        self._all.discard(connection)
        if self._revocation is not None:
            self._revocation.left(connection)
        self.admission.leave(connection.peer_host)
        if not self._all:
            self._deserted.set()

    def _look_at_quota(self, connection: ServedConnection) -> None:
        """Read nothing of a connection that came too soon, and close it later: its client would come again at once."""
        quotas = None if self._broker is None else self._broker.quotas
        if quotas is None or not quotas.held:
            return
        throttle_ms = quotas.connected(connection.peer_host, self._loop.time() * 1000)
        if throttle_ms:
            self.admission.refuse(connection.peer_host, TOO_SOON)
            connection.stop_taking_requests()
            self._loop.call_later(throttle_ms / 1000, connection.abort)

    def _most(self) -> tuple[int, int]:
        now = self._configuration if self._broker is None else self._broker.configuration
        return min(now.max_connections, files_allowed() // 2), now.max_connections_per_ip

    # --- the end ------------------------------------------------------------------------------------------------------

    def stop_taking_requests(self) -> None:
        """Let no connection begin to work on a further request."""
        for connection in self._all:
            connection.stop_taking_requests()

    async def close(self, within_s: float) -> None:
        """Close all once everything that is ready has been sent; those that take longer are closed then."""
        for connection in list(self._all):
            connection.close()
        try:
            await asyncio.wait_for(self._deserted.wait(), within_s)
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        """Close all at once."""
        for connection in list(self._all):
            connection.abort()

    def part(self, end: Callable[[ServedConnection], None]) -> None:
        """End, in this way, all that do not outlive the broker."""
        for connection in list(self._all):
            if not self._stays(connection.front):
                end(connection)
