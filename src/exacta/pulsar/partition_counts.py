"""The number of partitions that Pulsar's clients are told (decision 0032)."""

from typing import Final

from exacta.pulsar.broker import PulsarBroker

COORDINATORS: Final = 1
"""There is one coordinator of transactions, which stands as a partition of a topic of its own."""


def partitions_told(broker: PulsarBroker, topic: str) -> int:
    """Return the number for a topic, by its name in the log: 0 if it has one partition."""
    count = broker.engine.partition_count(topic)
    return count if count > 1 else 0
