"""All that is listened on for Apache Pulsar's protocol, plain and by TLS; `web_listeners.py` has what is asked by HTTP.

It does not load `protobuf` before that is needed (`pulsar_front.py` does).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from exacta.front.broker import Broker
from exacta.server.listeners import Doors, Listener, ListenerPair
from exacta.server.requirement import require
from exacta.server.tls import Certificate, TlsListener
from exacta.server.web_listeners import WebListeners

if TYPE_CHECKING:
    from exacta.web.application import Routes


class PulsarListeners(ListenerPair):
    """The listeners of Pulsar's front, which needs to know those of the web front."""

    def __init__(self, doors: Doors, certificate: Certificate, web: WebListeners) -> None:
        listen, listen_tls = doors.pulsar_listen, doors.pulsar_tls_listen
        advertise, advertise_tls = doors.pulsar_advertise, doors.pulsar_tls_advertise
        super().__init__(
            "pulsar",
            None if listen is None else Listener(listen, advertise),
            None if listen_tls is None else TlsListener(listen_tls, advertise_tls, certificate=certificate),
        )
        self._web = web

    def check(self) -> None:
        """Raise ServerError where something is missing, before a port is bound."""
        if self.all:
            require("google.protobuf.message", "Pulsar's clients need protobuf", extra="pulsar")

    async def start(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: Broker,
        register: Callable[[Any], bool],
        forget: Callable[[Any], None],
    ) -> "Routes":
        """Accept clients; return the routes of what they ask by HTTP. Raises ServerError."""
        if not self.all:
            return ()
        from exacta.server.pulsar_front import pulsar_front  # loads protobuf

        front = pulsar_front(broker, self, self._web, loop, register, forget)
        for listener in self.all:
            await listener.start(loop, partial(front.connection, listener.door("pulsar")))
        return front.routes() if self._web.all else ()
