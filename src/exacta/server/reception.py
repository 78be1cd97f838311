"""The doors of a server while it lives: bound, opened to clients with the connections of their fronts, and closed.

Theory of operation. `bind` binds all ports, so that one that is taken, or a package that is missing, fails before the
log is read. `start_early` makes the fronts that answer while it is being read, and `start` the others, which hold the
broker. The early ones learn the broker before any client of the others is let in.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from exacta.config.configuration import Configuration
from exacta.front.broker import Broker
from exacta.front.doors import Door, Endpoint, Security
from exacta.server.errors import ServerError
from exacta.server.fronts import FrontRow
from exacta.server.host import Host
from exacta.server.listeners import Listener
from exacta.server.logins import check_logins, clear_text
from exacta.server.tls import Certificate, TlsListener

if TYPE_CHECKING:
    from exacta.front.front import EarlyFront, Front


class Reception:
    """All doors of one server."""

    def __init__(
        self, doors: Sequence[Door], fronts: Sequence[FrontRow], configuration: Configuration, certificate: Certificate
    ) -> None:
        names = {each.front for each in doors}
        self._fronts = [each for each in fronts if each.name in names]
        self._configuration = configuration
        self._listeners = [
            TlsListener(each, certificate) if each.security is Security.TLS else Listener(each) for each in doors
        ]
        self._early: dict[str, EarlyFront] = {}

    @property
    def doors(self) -> list[Door]:
        """The doors, once they are bound: with the real ports."""
        return [each.door for each in self._listeners]

    @property
    def reachable(self) -> list[Endpoint]:
        """The endpoints to which other machines can connect, once the doors are bound."""
        return [each.door.endpoint for each in self._listeners if each.is_for_all]

    @property
    def has_early(self) -> bool:
        """True if a front answers while the log is being read."""
        return any(row.make_early is not None for row in self._fronts)

    def clients_at(self, door: Door) -> str:
        """Return the words for those who come in by a door."""
        [row] = (each for each in self._fronts if each.name == door.front)
        same = [each for each in self.doors if (each.front, each.security) == (door.front, door.security)]
        return row.clients[door.security] + (f" at the door {door.name}" if len(same) > 1 else "")

    def bind(self) -> None:
        """Bind all ports. Raises ServerError."""
        for row in self._fronts:
            row.check()
        check_logins(self.doors, self._configuration)
        for listener in self._listeners:
            listener.open()
        for row in self._fronts:
            why = row.only_here(self._configuration)
            for listener in self._listeners:
                if why and listener.is_for_all and listener.door.front == row.name:
                    raise ServerError(why.format(listener.door.endpoint))
        for listener in self._listeners:
            mechanism = clear_text(listener.door, self._configuration)
            if mechanism is not None and listener.is_for_all:
                raise ServerError(
                    f"the door {listener.door.name} on {listener.door.endpoint} could be reached from other machines, "
                    f"and {mechanism} would send secrets over it unencrypted: make it SASL_SSL in "
                    "listener.security.protocol.map, or offer SCRAM alone (sasl.enabled.mechanisms)"
                )

    async def start_early(self, host: Host) -> None:
        """Let clients in whose fronts need no broker yet, unless that is done. Raises ServerError."""
        for row in self._fronts:
            if row.make_early is not None and row.name not in self._early:
                self._early[row.name] = row.make_early(host)
                await self._let_in(row.name, self._early[row.name])

    async def start(self, host: Host, broker: Broker) -> None:
        """Let all clients in. Raises ServerError."""
        await self.start_early(host)
        fronts = {row.name: row.make(host, broker) for row in self._fronts if row.make is not None}
        if self._early:
            routes = [route for front in fronts.values() for route in front.routes()]
            for early in self._early.values():
                early.serve(broker, routes)
        for name, front in fronts.items():
            await self._let_in(name, front)

    async def _let_in(self, name: str, front: "Front") -> None:
        for listener in self._listeners:
            if listener.door.front == name:
                await listener.start(partial(front.connection, listener.door))

    def close(self) -> None:
        """Let nobody in any more; harmless if nothing is bound."""
        for listener in self._listeners:
            listener.close()
