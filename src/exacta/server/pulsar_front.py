"""The front for Apache Pulsar's clients as the server puts it together.

Imported only where an operator has asked for it: it loads `protobuf`, which not everybody has.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from exacta.front.broker import Broker
from exacta.front.doors import Endpoint
from exacta.pulsar.addresses import Addresses
from exacta.pulsar.front import PulsarFront
from exacta.server.listeners import Listener


class Listeners(Protocol):
    """The listeners of one front; None: nothing is listened on."""

    plain: Listener | None
    tls: Listener | None


def pulsar_front(
    broker: Broker,
    listeners: Listeners,
    web: Listeners,
    loop: asyncio.AbstractEventLoop,
    register: Callable[[Any], bool],
    forget: Callable[[Any], None],
) -> PulsarFront:
    """Return the front, which shares the broker with Kafka's."""
    return PulsarFront(broker, _addresses(listeners, web), loop, register, forget)


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


def _address(listener: Listener | None) -> Endpoint | None:
    return None if listener is None else listener.advertised


def _web_address(listener: Listener | None, broker: Endpoint | None) -> Endpoint | None:
    return None if listener is None or broker is None else Endpoint(broker.host, listener.listening.port)
