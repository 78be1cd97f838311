"""The front for Apache Pulsar's clients as the server puts it together.

Imported only where an operator has asked for it: it loads `protobuf`, which not everybody has.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from exacta.front.broker import Identity
from exacta.kafka.broker import BrokerContext
from exacta.pulsar.addresses import Address, Addresses
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.connection import Connection
from exacta.server.listeners import Listener

if TYPE_CHECKING:
    from exacta.web.application import Routes


class Listeners(Protocol):
    """The listeners of one front; None: nothing is listened on."""

    plain: Listener | None
    tls: Listener | None


class PulsarFront:
    """Makes the connection of each client; it shares engine, memory and clock with Kafka's front."""

    def __init__(
        self,
        kafka: BrokerContext,
        listeners: Listeners,
        web: Listeners,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[Any], bool],
        forget: Callable[[Any], None],
    ) -> None:
        self._loop = loop
        self._register = register
        self._forget = forget
        addresses = _addresses(listeners, web)
        first = addresses.broker or addresses.broker_tls
        assert first is not None
        identity = Identity(
            cluster_id=kafka.cluster_id,
            advertised_host=first.host,
            advertised_port=first.port,
            log_dir=kafka.log_dir,
        )
        self._broker = PulsarBroker(
            kafka.engine,
            kafka.options.static,
            identity,
            kafka.entropy,
            kafka.memory,
            kafka.authorizer,
            wall_clock=kafka.wall_ms,
            addresses=addresses,
        )
        self._broker.meter = kafka.meter

    def connection(self) -> asyncio.BaseProtocol:
        """Return the connection of a new client of Pulsar's protocol."""
        return Connection(self._broker, self._loop, self._register, self._forget)

    def routes(self) -> "Routes":
        """Return the routes of what Pulsar's clients ask by HTTP."""
        from exacta.pulsar.rest.application import routes  # loads a web framework

        return routes(self._broker)


def _addresses(listeners: Listeners, web: Listeners) -> Addresses:
    """Return what clients are told; the web front is found by the name of the broker itself."""
    broker, broker_tls = _address(listeners.plain), _address(listeners.tls)
    first, first_tls = broker or broker_tls, broker_tls or broker
    return Addresses(
        broker=broker,
        broker_tls=broker_tls,
        web=_web_address(web.plain, first),
        web_tls=_web_address(web.tls, first_tls),
    )


def _address(listener: Listener | None) -> Address | None:
    return None if listener is None else Address(listener.advertised.host, listener.advertised.port)


def _web_address(listener: Listener | None, broker: Address | None) -> Address | None:
    return None if listener is None or broker is None else Address(broker.host, listener.listening.port)
