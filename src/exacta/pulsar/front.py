"""Pulsar's front: the connections of Pulsar's clients over one broker, and what they ask by HTTP."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from exacta.front.broker import Broker
from exacta.front.doors import Door
from exacta.pulsar.addresses import Addresses
from exacta.pulsar.connection import PulsarClientConnection
from exacta.pulsar.shared import PulsarShared


class PulsarFront:
    """Implement `Front`. Importing it loads `protobuf`, which not everybody has."""

    def __init__(
        self,
        broker: Broker,
        addresses: Addresses,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[Any], bool],
        forget: Callable[[Any], None],
    ) -> None:
        self._shared = PulsarShared(broker, addresses)
        self._loop = loop
        self._register = register
        self._forget = forget

    def connection(self, door: Door) -> asyncio.BaseProtocol:
        """See `Front`."""
        return PulsarClientConnection(self._shared, door, self._loop, self._register, self._forget)

    def routes(self) -> Sequence[Any]:
        """See `Front`."""
        from exacta.pulsar.rest.application import routes  # loads a web framework

        return routes(self._shared)
