"""Kafka's numbers for the source of a configuration's value (KIP-226) and for the kinds of resources that have some."""

from enum import IntEnum
from typing import Any

from exacta.config.dynamic import ConfigSource
from exacta.ports.authorizer import ResourceKind

SOURCE_NUMBERS = {
    ConfigSource.TOPIC: 1,
    ConfigSource.DYNAMIC_BROKER: 2,
    ConfigSource.DYNAMIC_DEFAULT: 3,
    ConfigSource.STATIC: 4,
    ConfigSource.DEFAULT: 5,
}
"""Kafka calls them DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG, STATIC_BROKER_CONFIG and
DEFAULT_CONFIG."""

BROKER_LOGGER_SOURCE = 6
"""Kafka calls it DYNAMIC_BROKER_LOGGER_CONFIG."""


class ResourceType(IntEnum):
    """The kinds of resources that can have configurations of their own."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


SCOPES = {
    ResourceType.TOPIC: ("a topic", "the topic, at every broker; they are durable"),
    ResourceType.BROKER: (
        "a broker, or all brokers",
        "that broker or all of them, before what it was started with; they are durable",
    ),
    ResourceType.BROKER_LOGGER: ("a broker's loggers", "that broker, which is asked itself, until it ends"),
    ResourceType.CLIENT_METRICS: ("clients' metrics", "nothing: there are none"),
    ResourceType.GROUP: ("a group", "nothing: groups have no settings of their own"),
}
"""The things that have settings, and for what these count where several brokers share a log."""

_KINDS = {
    ResourceType.TOPIC: ResourceKind.TOPIC,
    ResourceType.GROUP: ResourceKind.GROUP,
    ResourceType.BROKER: ResourceKind.CLUSTER,
    ResourceType.BROKER_LOGGER: ResourceKind.CLUSTER,
    ResourceType.CLIENT_METRICS: ResourceKind.CLUSTER,
}


def configured(request: Any, resource: Any) -> ResourceKind | None:
    """Return the kind of resource whose configurations an element of a request names; None: there is no such kind."""
    return _KINDS.get(resource.resource_type)
