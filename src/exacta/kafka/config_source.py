"""Where a configuration's value comes from, in Kafka's numbers (KIP-226)."""

from enum import IntEnum


class ConfigSource(IntEnum):
    """Names are ours; Kafka calls them DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG and DEFAULT_CONFIG."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5
