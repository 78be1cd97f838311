"""The parts that all connections of Kafka's front share: the broker, and what only Kafka's protocol has."""

from collections.abc import Sequence
from importlib.util import find_spec

from exacta.front.broker import Broker
from exacta.kafka.fetch_sessions import FetchSessions
from exacta.kafka.lost_coordinators import LostCoordinators
from exacta.ports.record_format import Buffer

_SESSION_IDS = 2**31 - 1


class ToKafka:
    """The conversion of batches for Kafka's clients; the first call loads what that needs."""

    def convert(self, shares: Sequence[tuple[Sequence[Buffer], int]], *, zstd: bool) -> list[list[Buffer]]:
        """Return batches for Kafka's clients; each share has room for this many bytes.

        With `zstd` the client understands that codec.
        """
        from exacta.records.conversion.for_kafka import all_converted

        return all_converted(shares, zstd=zstd)

    def plain_bytes(self, batches: Sequence[Buffer]) -> int:
        """Return how many bytes are to be read for that, decompressed."""
        from exacta.records.conversion.for_kafka import plain_bytes

        return plain_bytes(batches)


class KafkaShared:
    """The broker with Kafka's parts; there is one per server."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.fetch_sessions = FetchSessions(
            broker.configuration.max_incremental_fetch_session_cache_slots,
            lambda: broker.entropy.below(_SESSION_IDS) + 1,
        )
        self.to_kafka = ToKafka() if _has_protobuf() else None
        """None: the batches of another protocol cannot be read, because the package for it is not installed."""
        self.lost_coordinators = LostCoordinators(broker.engine.scheduler)


def _has_protobuf() -> bool:
    """Return whether the package is installed that Pulsar's messages need; it is not loaded."""
    try:
        return find_spec("google.protobuf") is not None
    except ModuleNotFoundError:  # nothing is there that begins with `google`
        return False
