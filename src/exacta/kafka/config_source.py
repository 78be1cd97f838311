"""Kafka's numbers for the source of a configuration's value (KIP-226) and for kinds of resources."""

from enum import IntEnum

from exacta.config.topic_values import ConfigSource

SOURCE_NUMBERS = {ConfigSource.TOPIC: 1, ConfigSource.BROKER: 4, ConfigSource.DEFAULT: 5}
"""Kafka calls them DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG and DEFAULT_CONFIG."""


class ResourceType(IntEnum):
    """The kinds of resources that can have configurations of their own."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
