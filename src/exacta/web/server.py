"""The web front as the server puts it together: uvicorn's parts under an application of ours, in the server's own loop.

Theory of operation. The listener takes the connections, plain or by TLS, as those of every other front, and the server
ends them with the others. uvicorn's own `Server` is not used: it would take the signals of the process, wake the loop
ten times a second and accept connections without counting them. What is used is `Config`, and the protocol that
`Config(http=...)` takes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import ServerState

from exacta.config.configuration import Configuration
from exacta.front.doors import Door
from exacta.front.hosts import share_of
from exacta.web.connection import IDLE_SECONDS, WebConnection
from exacta.web.guard import MOST_HEADER_BYTES, Guard
from exacta.web.turns import WorkLine

MOST_CONNECTIONS = 256
"""Clients ask by HTTP when they begin, and hardly ever again.

A further one takes the place of the connection that has waited longest without a whole request, of the host that has
most of them. So half requests shut nobody out, and least of all a supervisor that asks for the health.
"""


class WebServer:
    """The web front of one server. `names` are the hosts by which it may be called, besides those of the option."""

    config: Config

    def __init__(
        self,
        configuration: Configuration,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[WebConnection], bool],
        forget: Callable[[WebConnection], None],
        *,
        names: Iterable[str] = (),
    ) -> None:
        self.loop = loop
        self.turns = WorkLine(loop)
        self.state = ServerState()
        self.is_stopping = False
        """True: no request begins any more."""
        self._admitted: dict[WebConnection, None] = {}
        """The connections, in the order in which they came, or began to wait again."""
        self._register = register
        self._forget = forget
        self._names = {*filter(None, configuration.web_allowed_hosts.split(",")), *names}

    def serve(self, application: ASGIApp) -> None:
        """Answer requests by this application, behind the guard."""
        self.config = Config(
            Guard(self, application, self._names),
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        )
        self.config.load()

    def connection(self, door: Door) -> WebConnection:
        """Return the connection of a new client that comes in by this door."""
        return WebConnection(self, door)

    def register(self, connection: WebConnection) -> bool:
        """Let a connection in, and end one that only waits where there are too many; False: all of them are at work."""
        if self.is_stopping or (len(self._admitted) >= MOST_CONNECTIONS and not self._make_room()):
            return False
        if not self._register(connection):
            return False
        self._admitted[connection] = None
        return True

    def _make_room(self) -> bool:
        waiting = [each for each in self._admitted if each.only_waits]
        if not waiting:
            return False
        hosts = Counter(share_of(each.peer_host) for each in waiting)
        most = max(hosts.values())
        ended = next(each for each in waiting if hosts[share_of(each.peer_host)] == most)
        self.forget(ended)
        ended.abort()
        return True

    def begins_to_wait(self, connection: WebConnection) -> None:
        """Let a connection be the one that has waited least: its request is answered."""
        if connection in self._admitted:
            self._admitted[connection] = self._admitted.pop(connection)

    def forget(self, connection: WebConnection) -> None:
        """Count one connection less: it was let in, and has ended, or makes room for another one."""
        if connection in self._admitted:
            del self._admitted[connection]
            self._forget(connection)
