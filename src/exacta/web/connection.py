"""One client's connection of the web front: uvicorn's, with bounds on time, memory and turns.

uvicorn parses HTTP by h11 and runs the application. This module owns what uvicorn leaves open.

- Of a request's line and headers, where they do not come in one piece, at most `MOST_HEADER_BYTES` are taken: beyond it
  the client is answered 400, and the connection is closed.
- A connection is closed where more than `REQUEST_SECONDS` pass from a request's first byte to the end of its body and
  of its answer, or more than `IDLE_SECONDS` between two requests.
- Where there are too many connections (`server.py`), one that waits for its client makes room for the new one.
- Where the connection's share of a turn is used up (`WorkLine`), its bytes wait, and it is not read meanwhile.

A connection that has just been made must send its first request within `REQUEST_SECONDS`. uvicorn itself stops reading
while the application has not taken 64 KiB of a body, and while a request waits behind another one.

It reads bytes before a login.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import ClassVar, Protocol, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from exacta.front.doors import TLS_HANDSHAKE, Door
from exacta.front.hosts import same_host
from exacta.front.identity import NOBODY, Identify, Identity, NotIdentified, anonymous
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.web.requests import CALLER, PRINCIPAL, Caller
from exacta.web.turns import WorkLine

logger = logging.getLogger("exacta.web")

REQUEST_SECONDS = 30.0
IDLE_SECONDS = 60
"""Clients keep connections for their next request: Go's for 90 seconds, and it opens another one without a word."""


class WebShared(Protocol):
    """The part that all connections share, as one of them sees it."""

    config: Config
    state: ServerState
    loop: asyncio.AbstractEventLoop
    turns: WorkLine
    is_stopping: bool

    def register(self, connection: "WebConnection") -> bool:
        """Let a connection in; False: there are too many."""

    def begins_to_wait(self, connection: "WebConnection") -> None:
        """Let a connection be the one that has waited least: its request is answered."""

    def forget(self, connection: "WebConnection") -> None:
        """Count one connection less: it was let in, and has ended."""


class WebConnection(H11Protocol):
    """Created by the listener for each client."""

    front: ClassVar[str] = "web"

    def __init__(self, server: WebShared, door: Door) -> None:
        super().__init__(server.config, server.state, {}, server.loop)
        self.access_log = False
        self.logger = logger
        self.peer_host = ""
        self.principal: Principal = ANONYMOUS
        self.identify: Identify = anonymous
        """See `ClientConnection`."""
        self.caller = self.app_state[CALLER] = Caller(door)
        self.login_has_ended = False
        self._identity: Identity = NOBODY
        self._expiry: asyncio.TimerHandle | None = None
        self._web = server
        self._is_admitted = False
        self._received: list[bytes] = []
        """The bytes that have come, and wait for their turn."""
        self._timer: asyncio.TimerHandle | None = None

    # --- asyncio's side -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport over, or close it where there are too many connections."""
        super().connection_made(cast("asyncio.Transport", transport))
        if self.client is not None:
            self.client = same_host(self.client[0]), self.client[1]
            self.peer_host = self.caller.peer_host = self.client[0]
            self.caller.peer = f"{self.client[0]}:{self.client[1]}"
        if self.server is not None:
            self.server = same_host(self.server[0]), self.server[1]
        try:
            self._identity = self.identify(transport)
        except NotIdentified as error:
            logger.warning("closing the connection of %s: %s", self.peer_host, error)
            self.abort()
            return
        self.principal = self.app_state[PRINCIPAL] = self._identity.principal
        if self._identity.expires_in_s is not None:
            self._expiry = self.loop.call_later(self._identity.expires_in_s, self.end_login)
        self._is_admitted = self._web.register(self)
        if self._is_admitted:
            self._begin_to_wait()
        else:
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes until it is this connection's turn."""
        if not self._is_admitted or self._web.is_stopping or self.transport.is_closing():
            return
        self._received.append(data)
        if len(self._received) == 1:
            self.flow.pause_reading()
            self._web.turns.take(self._parse)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        self._received.clear()
        self._stop_waiting()
        if self._expiry is not None:
            self._expiry.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        if self._is_admitted:
            self._is_admitted = False
            self._web.forget(self)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: who asks for another protocol (h2c, WebSocket) is answered by HTTP, as HTTP allows.

        uvicorn would advise the operator to install a library for WebSocket, at every request of some clients.
        """

    @property
    def only_waits(self) -> bool:
        """Return whether it waits for its client, which owes a request, or the rest of one, or does not read.

        Who has not logged in yet with the request that has come is no better: so guesses shut nobody out.
        """
        owes = self.conn.their_state is not h11.DONE or self.flow.write_paused or self.caller.logins_begun > 0
        return not self._received and owes

    # --- turns --------------------------------------------------------------------------------------------------------

    def handle_events(self) -> None:
        """Begin the request that has come behind the one that was just answered, in a turn of its own."""
        self.flow.pause_reading()
        self._web.turns.take(self._go_on)

    def _parse(self) -> None:
        data = b"".join(self._received)
        self._received.clear()
        if data.startswith(TLS_HANDSHAKE):
            logger.warning(
                "closing the connection of %s: a TLS handshake came to a door for HTTP, which speaks no TLS: clients "
                "use http://, or the door of --web-tls-listen",
                self.peer_host,
            )
            self.abort()
            return
        if self._timer is None:
            self._begin_to_wait()
        self._unset_keepalive_if_required()
        self._go_on(data)

    def _go_on(self, data: bytes = b"") -> None:
        if self.transport.is_closing() or self._web.is_stopping:
            return
        try:
            self.flow.resume_reading()
            if data:
                self.conn.receive_data(data)
            super().handle_events()
        except Exception as error:  # noqa: BLE001  # h11 refuses to send an error after half an answer
            logger.warning("closing the connection of %s: %s", self.peer_host, error)
            self.abort()

    # --- time ---------------------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Look whether a request has begun behind the one that is answered."""
        self._stop_waiting()
        self._web.begins_to_wait(self)
        super().on_response_complete()
        is_between_requests = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if (self.transport.is_closing() or not is_between_requests) and self._timer is None:
            self._begin_to_wait()

    def _begin_to_wait(self) -> None:
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._has_waited)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _has_waited(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            logger.info("closing the connection of %s: no whole request in %d s", self.peer_host, REQUEST_SECONDS)
        self.abort()

    # --- the server's side --------------------------------------------------------------------------------------------

    def stop_taking_requests(self) -> None:
        """Read no more; the server says so to all connections at once (`WebServer.is_stopping`)."""
        self._web.is_stopping = True
        self._received.clear()

    def close(self) -> None:
        """Close once the answer that is being made has been sent."""
        with contextlib.suppress(h11.LocalProtocolError):  # half a request was refused
            self.shutdown()
            return
        self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()

    def login_holds(self) -> bool:
        """See `RevocableConnection`."""
        return self._identity.holds()

    def end_login(self) -> None:
        """See `RevocableConnection`."""
        if not self.login_has_ended:
            self.login_has_ended = True
            logger.warning("closing the connection of %s: its certificate holds no more", self.peer_host)
            self.abort()

    def let_go(self) -> Iterator[None]:
        """See `RevocableConnection`: each request is asked about, and none waits."""
        yield from ()
