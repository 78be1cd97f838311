"""The front for Apache Pulsar's clients as the server puts it together.

Imported only where an operator has asked for it: it loads `protobuf`, which not everybody has.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from exacta.front.broker import Identity
from exacta.kafka.broker import BrokerContext
from exacta.pulsar.broker import PulsarBroker
from exacta.pulsar.connection import Connection
from exacta.server.listeners import Endpoint


def pulsar_connections(
    kafka: BrokerContext,
    advertised: Endpoint,
    loop: asyncio.AbstractEventLoop,
    register: Callable[[Any], bool | None],
    forget: Callable[[Any], None],
) -> Callable[[], asyncio.BaseProtocol]:
    """Return what makes the connection of each client; it shares engine, memory and clock with Kafka's front."""
    identity = Identity(
        cluster_id=kafka.cluster_id,
        advertised_host=advertised.host,
        advertised_port=advertised.port,
        log_dir=kafka.log_dir,
    )
    broker = PulsarBroker(
        kafka.engine,
        kafka.configuration,
        identity,
        kafka.entropy,
        kafka.memory,
        kafka.authorizer,
        wall_clock=kafka.wall_ms,
    )
    return lambda: Connection(broker, loop, register, forget)
