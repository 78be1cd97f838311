"""All that is listened on for Apache Pulsar's clients: their protocol and the web front, each plain and by TLS.

It loads neither `protobuf` nor a web server before they are needed (`pulsar_front.py` does).
"""

import asyncio
from collections.abc import Callable
from typing import Any

from exacta.config.configuration import Configuration
from exacta.kafka.broker import BrokerContext
from exacta.server.errors import ServerError
from exacta.server.listeners import Doors, Endpoint, Listener
from exacta.server.tls import Certificate, TlsListener


class PulsarListeners:
    """The listeners that an operator has asked for; the others are None."""

    def __init__(self, doors: Doors, configuration: Configuration) -> None:
        self._configuration = configuration
        self._certificate = Certificate(configuration.pulsar_tls_certificate, configuration.pulsar_tls_key)
        self.plain = _plain(doors.pulsar_listen, doors.pulsar_advertise)
        self.tls = self._with_tls(doors.pulsar_tls_listen, doors.pulsar_tls_advertise)
        self.web = _plain(doors.web_listen)
        self.web_tls = self._with_tls(doors.web_tls_listen)

    def _with_tls(self, listen: Endpoint | None, advertise: Endpoint | None = None) -> Listener | None:
        return None if listen is None else TlsListener(listen, advertise, certificate=self._certificate)

    @property
    def all(self) -> list[Listener]:
        """All listeners there are."""
        return [each for each in (self.plain, self.tls, self.web, self.web_tls) if each is not None]

    @property
    def listening(self) -> dict[str, Endpoint]:
        """The endpoints where clients find it, once it is open, by their names in `Doors`."""
        found = {
            "pulsar_listen": self.plain,
            "pulsar_tls_listen": self.tls,
            "web_listen": self.web,
            "web_tls_listen": self.web_tls,
        }
        return {name: listener.listening for name, listener in found.items() if listener is not None}

    def check(self) -> None:
        """Raise ServerError where something is missing, before a port is bound."""
        if not self.all:
            return
        if self.plain is None and self.tls is None:
            raise ServerError(
                "the web front tells Pulsar's clients where to connect: give --pulsar-listen or --pulsar-tls-listen as "
                "well"
            )
        _require(
            "google.protobuf.message", "Pulsar's clients need protobuf: install it by pip install 'exacta[pulsar]'"
        )
        if self.web is not None or self.web_tls is not None:
            _require("starlette", "the web front needs starlette: install it by pip install 'exacta[web]'")
            _require("uvicorn", "the web front needs uvicorn: install it by pip install 'exacta[web]'")

    def check_open(self) -> None:
        """Raise ServerError where a bound port must not be: everybody would be let in."""
        if self._configuration.web_allow_anonymous:
            return
        for listener in (self.web, self.web_tls):
            if listener is not None and listener.is_for_all:
                raise ServerError(
                    f"the web front on {listener.listening} could be reached from other machines, and there are no "
                    "logins yet: listen on 127.0.0.1, or let everybody in by --set web.allow.anonymous=true"
                )

    async def start(
        self,
        loop: asyncio.AbstractEventLoop,
        kafka: BrokerContext,
        register: Callable[[Any], bool | None],
        forget: Callable[[Any], None],
    ) -> None:
        """Accept clients. Raises ServerError."""
        if not self.all:
            return
        from exacta.server.pulsar_front import PulsarFront  # loads protobuf

        front = PulsarFront(kafka, self, loop, register, forget)
        for listener in (self.plain, self.tls):
            if listener is not None:
                await listener.start(loop, front.connection)
        web_listeners = [each for each in (self.web, self.web_tls) if each is not None]
        if web_listeners:
            connect = front.web_connections()  # loads a web server
            for listener in web_listeners:
                await listener.start(loop, connect)


def _plain(listen: Endpoint | None, advertise: Endpoint | None = None) -> Listener | None:
    return None if listen is None else Listener(listen, advertise)


def _require(module: str, advice: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        raise ServerError(advice) from error
