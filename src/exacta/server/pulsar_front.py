"""The front for Apache Pulsar's clients as the server puts it together.

Imported only where an operator has asked for it: it loads `protobuf`, which not everybody has, and for the web front a
web server.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from exacta.front.broker import Identity
from exacta.kafka.broker import BrokerContext
from exacta.pulsar.addresses import Address, Addresses
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.connection import Connection
from exacta.server.listeners import Listener


class Listeners(Protocol):
    """The listeners for Pulsar's clients; None: nothing is listened on."""

    plain: Listener | None
    tls: Listener | None
    web: Listener | None
    web_tls: Listener | None


class PulsarFront:
    """Makes the connection of each client; it shares engine, memory and clock with Kafka's front."""

    def __init__(
        self,
        kafka: BrokerContext,
        listeners: Listeners,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[Any], bool | None],
        forget: Callable[[Any], None],
    ) -> None:
        self._loop = loop
        self._register = register
        self._forget = forget
        self._addresses = _addresses(listeners)
        first = self._addresses.broker or self._addresses.broker_tls
        assert first is not None
        identity = Identity(
            cluster_id=kafka.cluster_id,
            advertised_host=first.host,
            advertised_port=first.port,
            log_dir=kafka.log_dir,
        )
        self._broker = PulsarBroker(
            kafka.engine,
            kafka.configuration,
            identity,
            kafka.entropy,
            kafka.memory,
            kafka.authorizer,
            wall_clock=kafka.wall_ms,
            addresses=self._addresses,
        )

    def connection(self) -> asyncio.BaseProtocol:
        """Return the connection of a new client of Pulsar's protocol."""
        return Connection(self._broker, self._loop, self._register, self._forget)

    def web_connections(self) -> Callable[[], asyncio.BaseProtocol]:
        """Return what makes the connection of each client of the web front."""
        from exacta.pulsar.rest.application import application
        from exacta.web.server import WebServer

        addresses = self._addresses
        told = {address.host for address in (addresses.broker, addresses.broker_tls) if address is not None}
        server = WebServer(self._broker.configuration, self._loop, self._register, self._forget, names=told)
        server.serve(application(self._broker))
        return server.connection


def _addresses(listeners: Listeners) -> Addresses:
    """Return what clients are told; the web front is found by the name of the broker itself."""
    broker, broker_tls = _address(listeners.plain), _address(listeners.tls)
    first, first_tls = broker or broker_tls, broker_tls or broker
    return Addresses(
        broker=broker,
        broker_tls=broker_tls,
        web=_web_address(listeners.web, first),
        web_tls=_web_address(listeners.web_tls, first_tls),
    )


def _address(listener: Listener | None) -> Address | None:
    return None if listener is None else Address(listener.advertised.host, listener.advertised.port)


def _web_address(listener: Listener | None, broker: Address | None) -> Address | None:
    return None if listener is None or broker is None else Address(broker.host, listener.listening.port)
