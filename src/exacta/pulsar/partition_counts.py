"""The number of partitions that Pulsar's clients are told (decision 0032)."""

from typing import Final

from exacta.front.broker import Broker
from exacta.protocol.pulsar.topic_names import TopicName
from exacta.pulsar.topic_names import coordinator_partition

COORDINATORS: Final = 1
"""There is one coordinator of transactions, which stands as a partition of a topic of its own."""


def partitions_of_name(name: TopicName) -> int | None:
    """Return the number for a name that says it by itself: the coordinators', or a partition's. None: it does not."""
    if name.partition is not None:
        return 0
    return COORDINATORS if coordinator_partition(name) else None


def partitions_told(broker: Broker, topic: str) -> int:
    """Return the number for a topic, by its name in the log: 0 if it has one partition."""
    count = broker.engine.advice.partition_count(topic)
    return count if count > 1 else 0
