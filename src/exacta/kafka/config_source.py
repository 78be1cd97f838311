"""Where a configuration's value comes from, in Kafka's numbers (KIP-226), and what of configurations has values."""

from enum import IntEnum


class ConfigSource(IntEnum):
    """Names are ours; Kafka calls them DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG and DEFAULT_CONFIG."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5


class ResourceType(IntEnum):
    """What can have configurations of its own."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
