"""The doors of a server while it lives: bound, opened to clients with the connections of their fronts, and closed.

A door that other machines reach is closed unless it was opened: its clients log in, or `allow.anonymous` names it.

Theory of operation. `bind` binds all ports, so that one that is taken, or a package that is missing, fails before the
log is read. `start_early` makes the fronts that answer while it is being read, and `start` the others, which hold the
broker. The early ones learn the broker before any client of the others is let in.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from exacta.config.configuration import Configuration
from exacta.config.errors import ConfigurationError
from exacta.front.broker import Broker
from exacta.front.doors import Door, TransportSecurity
from exacta.server.errors import ServerError
from exacta.server.fronts import FrontRow
from exacta.server.host import Host
from exacta.server.listeners import Listener
from exacta.server.logins import check_keys, check_logins, clear_text, with_login

if TYPE_CHECKING:
    from exacta.front.front import EarlyFront, Front
    from exacta.security.tls import TlsSettings
    from exacta.server.tls import Certificate


class Reception:
    """All doors of one server."""

    def __init__(self, doors: Sequence[Door], fronts: Sequence[FrontRow], configuration: Configuration) -> None:
        names = {each.front for each in doors}
        self._fronts = [each for each in fronts if each.name in names]
        self._configuration = configuration
        self._listeners = [Listener(with_login(each, configuration)) for each in doors]
        self._certificates: dict[TlsSettings, Certificate] = {}
        """The certificates of the doors with TLS: one at most for each door."""
        self._early: dict[str, EarlyFront] = {}

    @property
    def doors(self) -> list[Door]:
        """The doors, once they are bound: with the real ports."""
        return [each.door for each in self._listeners]

    @property
    def open_to_all(self) -> list[Door]:
        """The doors by which clients of other machines come in without a login, once they are bound."""
        return [each.door for each in self._listeners if each.is_for_all and not each.has_login]

    @property
    def has_early(self) -> bool:
        """True if a front answers while the log is being read."""
        return any(row.make_early is not None for row in self._fronts)

    def is_early(self, name: str) -> bool:
        """Return whether a front answers while the log is being read."""
        return any(row.name == name and row.make_early is not None for row in self._fronts)

    def clients_at(self, door: Door) -> str:
        """Return the words for those who come in by a door."""
        [row] = (each for each in self._fronts if each.name == door.front)
        same = [each for each in self.doors if (each.front, each.security) == (door.front, door.security)]
        return row.clients[door.security] + (f" at the door {door.name}" if len(same) > 1 else "")

    def check(self) -> None:
        """Raise ServerError where a start would before it reads the log; no port is bound, and no address is asked."""
        self._prepare()
        for listener in self._listeners:
            listener.look_up()
        self._require_security()
        check_keys(self.doors, self._configuration)

    def bind(self) -> None:
        """Bind all ports. Raises ServerError."""
        self._prepare()
        for listener in self._listeners:
            listener.open()
        self._require_security()

    def _prepare(self) -> None:
        for row in self._fronts:
            row.check()
        check_logins(self.doors, self._configuration)
        self._secure()

    def _require_security(self) -> None:
        self._require_logins()
        self._require_encryption()

    def _secure(self) -> None:
        """Give the doors that speak TLS their certificates, which are read; doors of equal settings have one."""
        for place, door in enumerate(self.doors):
            if door.security is TransportSecurity.TLS:
                self._listeners[place] = self._listener_with_tls(door)

    def _listener_with_tls(self, door: Door) -> Listener:
        from exacta.server.tls import Certificate, TlsListener  # a server without such doors does not load it

        settings = self._settings(door)
        certificate = self._certificates.get(settings)
        if certificate is None:
            certificate = self._certificates[settings] = Certificate(settings)
            certificate.read(time.monotonic())
        return TlsListener(door, certificate)

    def _settings(self, door: Door) -> "TlsSettings":
        from exacta.security.tls import tls_settings

        try:
            return tls_settings(replace(self._configuration, **door.options), door.front)  # type: ignore[arg-type]
        except ConfigurationError as error:
            raise ServerError(f"the door {door.name}: {error}") from error

    def _require_logins(self) -> None:
        allowed = {each.upper() for each in self._configuration.allow_anonymous.split(",") if each}
        names = [each.door.name for each in self._listeners]
        for name in sorted(allowed.difference(names)):
            raise ServerError(f"allow.anonymous: there is no door {name}; the doors are {', '.join(names)}")
        closed = [each for each in self.open_to_all if each.name not in allowed]
        if closed:
            where = " and ".join(f"{each.name} on {each.endpoint}" for each in closed)
            names = [each.name for each in self.open_to_all]
            raise ServerError(
                f"other machines reach {where}, where clients need no login: listen on 127.0.0.1, ask for certificates "
                "(SSL with ssl.client.auth=required), let clients log in (Kafka: SASL_SSL; Pulsar and "
                "HTTP: authenticationEnabled), or let everybody in by "
                f"--set allow.anonymous={','.join(names)}"
            )

    def _require_encryption(self) -> None:
        """Refuse passwords and tokens that other machines would send in clear text."""
        for listener in self._listeners:
            mechanism = clear_text(listener.door, self._configuration)
            if mechanism is not None and listener.is_for_all:
                remedy = (
                    "make it SASL_SSL in listener.security.protocol.map, or offer SCRAM alone (sasl.enabled.mechanisms)"
                    if listener.door.front == "kafka"
                    else "listen on 127.0.0.1 there, and give other machines a door with TLS"
                )
                raise ServerError(
                    f"the door {listener.door.name} on {listener.door.endpoint} could be reached from other machines, "
                    f"and {mechanism} would send secrets over it unencrypted: {remedy}"
                )

    def read_certificates_again(self, now_s: float) -> None:
        """Read the files of all certificates again for the connections that come; nothing where there are none."""
        for certificate in self._certificates.values():
            certificate.read_again(now_s)

    @property
    def asks_for_certificates(self) -> bool:
        """True if clients of a door are asked for certificates."""
        return any(each.asks for each in self._certificates.values())

    @property
    def trust_losses(self) -> int:
        """The number of times that certificates were gone from a truststore."""
        return sum(each.trust_losses for each in self._certificates.values())

    def look_at_certificates(self, now_s: float) -> None:
        """Read the files of certificates again that have changed."""
        for certificate in self._certificates.values():
            certificate.look(now_s)

    async def start_early(self, host: Host) -> None:
        """Let clients in whose fronts need no broker yet, unless that is done. Raises ServerError."""
        for row in self._fronts:
            if row.make_early is not None and row.name not in self._early:
                early = self._early[row.name] = row.make_early(host)
                for listener in self._lead_to(row.name, early):
                    await listener.start()

    async def start(self, host: Host, broker: Broker) -> None:
        """Let all clients in. Raises ServerError."""
        await self.start_early(host)
        fronts = self.serve(host, broker)
        for listener in self._listeners:
            if listener.door.front in fronts:
                await listener.start()

    def serve(self, host: Host, broker: Broker) -> "dict[str, Front]":
        """Let this broker have the clients that come from now on; return its fronts by name."""
        fronts = {row.name: row.make(host, broker) for row in self._fronts if row.make is not None}
        if self._early:
            routes = [route for front in fronts.values() for route in front.routes()]
            for early in self._early.values():
                early.serve(broker, routes)
        for name, front in fronts.items():
            self._lead_to(name, front)
        return fronts

    def withdraw(self) -> None:
        """Let the fronts that answer without a broker forget the one that they have; the others are given another."""
        for early in self._early.values():
            early.withdraw()

    def _lead_to(self, name: str, front: "Front") -> list[Listener]:
        """Let the clients of all doors of this name be the front's; return the doors' listeners."""
        found = [each for each in self._listeners if each.door.front == name]
        for listener in found:
            listener.connect = partial(front.connection, listener.door)
        return found

    def close(self) -> None:
        """Let nobody in any more; harmless if nothing is bound."""
        for listener in self._listeners:
            listener.close()
