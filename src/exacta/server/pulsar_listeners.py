"""All that is listened on for Apache Pulsar's protocol, plain and by TLS; `web_listeners.py` has what is asked by HTTP.

It does not load `protobuf` before that is needed (`pulsar_front.py` does).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exacta.kafka.broker import BrokerContext
from exacta.server.listeners import Doors, Endpoint, Listener
from exacta.server.requirement import require
from exacta.server.tls import Certificate, TlsListener
from exacta.server.web_listeners import WebListeners

if TYPE_CHECKING:
    from exacta.web.application import Routes


class PulsarListeners:
    """The listeners that an operator has asked for; the others are None."""

    def __init__(self, doors: Doors, certificate: Certificate, web: WebListeners) -> None:
        listen, listen_tls = doors.pulsar_listen, doors.pulsar_tls_listen
        self.plain = None if listen is None else Listener(listen, doors.pulsar_advertise)
        self.tls: Listener | None = None
        if listen_tls is not None:
            self.tls = TlsListener(listen_tls, doors.pulsar_tls_advertise, certificate=certificate)
        self._web = web

    @property
    def all(self) -> list[Listener]:
        """All listeners there are."""
        return [each for each in (self.plain, self.tls) if each is not None]

    @property
    def listening(self) -> dict[str, Endpoint]:
        """The endpoints where clients find it, once it is open, by their names in `Doors`."""
        found = {"pulsar_listen": self.plain, "pulsar_tls_listen": self.tls}
        return {name: listener.listening for name, listener in found.items() if listener is not None}

    def check(self) -> None:
        """Raise ServerError where something is missing, before a port is bound."""
        if self.all:
            require(
                "google.protobuf.message",
                "Pulsar's clients need protobuf: install it by pip install 'exacta-log[pulsar]'",
            )

    async def start(
        self,
        loop: asyncio.AbstractEventLoop,
        kafka: BrokerContext,
        register: Callable[[Any], bool | None],
        forget: Callable[[Any], None],
    ) -> "Routes":
        """Accept clients; return the routes of what they ask by HTTP. Raises ServerError."""
        if not self.all:
            return ()
        from exacta.server.pulsar_front import PulsarFront  # loads protobuf

        front = PulsarFront(kafka, self, self._web, loop, register, forget)
        for listener in self.all:
            await listener.start(loop, front.connection)
        return front.routes() if self._web.all else ()
