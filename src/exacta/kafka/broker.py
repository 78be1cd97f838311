"""The broker as Kafka's handlers see it: the one behind all fronts, with what only Kafka's protocol has."""

import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

from exacta.config.configuration import Configuration
from exacta.engine.engine import Engine
from exacta.front.broker import Broker, Identity
from exacta.front.memory import Memory
from exacta.kafka.fetch_sessions import FetchSessions
from exacta.kafka.lost_coordinators import LostCoordinators
from exacta.ports.authorizer import Authorizer
from exacta.ports.entropy import Entropy
from exacta.ports.record_format import Buffer


class ToKafka(Protocol):
    """The conversion of batches for Kafka's clients."""

    def convert(self, shares: Sequence[tuple[Sequence[Buffer], int]], *, zstd: bool) -> list[list[Buffer]]:
        """Return batches for Kafka's clients; each share has room for so many bytes.

        With `zstd` the client understands that codec.
        """

    def plain_bytes(self, batches: Sequence[Buffer]) -> int:
        """Return how many bytes are to be read for that, decompressed."""


_SESSION_IDS = 2**31 - 1


class BrokerContext(Broker):
    """The broker with its Kafka-only parts; there is one per server."""

    def __init__(
        self,
        engine: Engine,
        configuration: Configuration,
        identity: Identity,
        entropy: Entropy,
        memory: Memory,
        authorizer: Authorizer,
        *,
        wall_clock: Callable[[], int] | None = None,
        to_kafka: ToKafka | None = None,
    ) -> None:
        super().__init__(engine, configuration, identity, entropy, memory, authorizer, wall_clock=wall_clock)
        self.node_id = configuration.node_id
        self.fetch_sessions = FetchSessions(
            configuration.max_incremental_fetch_session_cache_slots, lambda: entropy.below(_SESSION_IDS) + 1
        )
        self.to_kafka = to_kafka
        """None: the batches of another protocol cannot be read, because the package for it is not installed."""
        self.lost_coordinators = LostCoordinators(engine.scheduler)

    def new_uuid(self) -> uuid.UUID:
        """Return a fresh id for a topic or a member, which the core must be given."""
        return self.entropy.new_uuid()
