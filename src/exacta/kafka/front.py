"""Kafka's front: the connections of Kafka's clients over one broker."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from exacta.front.broker import Broker
from exacta.front.doors import Door
from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.shared import KafkaShared


class KafkaFront:
    """Implement `Front`."""

    def __init__(
        self,
        broker: Broker,
        loop: asyncio.AbstractEventLoop,
        register: Callable[[Any], bool],
        forget: Callable[[Any], None],
        *,
        make: Callable[..., KafkaClientConnection] = KafkaClientConnection,
    ) -> None:
        """`make` takes what `KafkaClientConnection` takes: a test kit's connections have faults."""
        self._shared = KafkaShared(broker)
        self._loop = loop
        self._register = register
        self._forget = forget
        self._make = make

    def connection(self, door: Door) -> asyncio.BaseProtocol:
        """See `Front`."""
        return self._make(self._shared, door, self._loop, self._register, self._forget)

    def routes(self) -> Sequence[Any]:
        """Return none: Kafka's clients ask nothing by HTTP."""
        return ()
