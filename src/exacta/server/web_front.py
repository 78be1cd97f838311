"""The web front as the server puts it together: health and metrics at once, and later what other fronts' clients ask.

Imported only where an operator has asked for it: it loads a web server and prometheus-client.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from exacta.front.broker import Broker
from exacta.front.doors import Door
from exacta.metrics import exposition
from exacta.metrics.sources import Sources
from exacta.server.host import Host
from exacta.web import health
from exacta.web.access import ServerRights
from exacta.web.application import Application
from exacta.web.login import LoginGuard
from exacta.web.server import WebServer


class WebFront:
    """Implement `EarlyFront`. Clients may call it by the names of all other doors."""

    def __init__(self, host: Host) -> None:
        self._loop = host.loop
        self._sources = Sources(host.configuration, host.data, host.progress, host.admission, host.connections)
        self._access = ServerRights(is_closed=bool(host.configuration.authorizer_class_name))
        first = [*health.routes(host.progress, self._access), *exposition.routes(self._sources, self._access)]
        self._application = Application(first)
        names = {each.told.host for each in host.doors if each.front != "web"}
        self._server = WebServer(host.configuration, host.loop, host.register, host.forget, names=names)
        self._server.serve(LoginGuard(self._application, self._access))

    def connection(self, door: Door) -> asyncio.BaseProtocol:
        """See `Front`."""
        return self._server.connection(door)

    def routes(self) -> Sequence[Any]:
        """Return none: what it serves itself it serves from the beginning."""
        return ()

    def serve(self, broker: Broker, routes: Sequence[Any]) -> None:
        """See `EarlyFront`."""
        self._sources.broker, broker.meter = broker, self._sources.meter
        self._access.broker = broker
        self._sources.loop_lag.start(self._loop)
        self._application.serve(routes)

    def withdraw(self) -> None:
        """See `EarlyFront`."""
        self._sources.broker = self._access.broker = None
        self._application.withdraw()
