"""Read the settings of brokers, topics and groups, as far as they are told, and change them (KIP-133, KIP-339)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.routing import Anyone, Client, Controller, Node, Route
from exacta.client.topic_administration import ask
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from exacta.protocol.kafka.messages.k17784_end_transactions import EndTransactionsRequest

_TOPIC, _BROKER, _BROKER_LOGGER = 2, 4, 8
KINDS = {"topic": _TOPIC, "broker": _BROKER, "broker-logger": _BROKER_LOGGER, "group": 32}
"""The kinds of resources that have settings, by Kafka's numbers."""

SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "all brokers, dynamic",
    4: "broker, static",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
"""The origin of a value, by Kafka's numbers (KIP-226)."""

_SET, _DELETE = 0, 1


class Resource(NamedTuple):
    """A thing that has settings: a topic, a broker, its loggers, a group. A broker without a name is all brokers."""

    kind: str
    name: str

    @property
    def route(self) -> Route:
        """Return whom to ask: a broker itself about its own settings, anybody else about all others."""
        is_of_broker = KINDS[self.kind] in (_BROKER, _BROKER_LOGGER) and self.name
        return Node(int(self.name)) if is_of_broker else Anyone()

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else "all brokers"


class Setting(NamedTuple):
    """A setting. `value` is None where it has none, or none that is told because it is a secret."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool

    @property
    def is_default(self) -> bool:
        """Return whether nobody has set it."""
        return self.source == SOURCES[5]


def describe_settings(client: Client, resource: Resource) -> list[Setting]:
    """Return all settings of a resource by name; raises `KafkaError`."""
    asked = DescribeConfigsResource(resource_type=KINDS[resource.kind], resource_name=resource.name)
    reply = ask(
        client,
        resource.route,
        DescribeConfigsRequest(resources=[asked]),
        what=f"reading the settings of {resource}",
        entries=lambda reply: reply.results,
    )
    return sorted(
        Setting(each.name, each.value, SOURCES.get(each.config_source, "unknown"), each.read_only, each.is_sensitive)
        for result in reply.results
        for each in result.configs
    )


def change_settings(
    client: Client, resource: Resource, given: Mapping[str, str], removed: Sequence[str] = (), *, dry_run: bool = False
) -> None:
    """Set some settings of a resource, and remove others, so that they have their defaults again; raises `KafkaError`.

    All of it is done or nothing is.
    """
    changes = [AlterableConfig(name=name, config_operation=_SET, value=value) for name, value in given.items()]
    changes += [AlterableConfig(name=name, config_operation=_DELETE) for name in removed]
    asked = AlterConfigsResource(resource_type=KINDS[resource.kind], resource_name=resource.name, configs=changes)
    route = resource.route
    if KINDS[resource.kind] == _BROKER and client.offers(Controller(), EndTransactionsRequest()):
        route = Controller()  # of several Exactas the leader takes the options of each
    ask(
        client,
        route,
        IncrementalAlterConfigsRequest(resources=[asked], validate_only=dry_run),
        what=f"changing the settings of {resource}",
        entries=lambda reply: reply.responses,
    )


def broker_configs(
    client: Client, node_id: int, names: Sequence[str], deadline: Deadline | None = None
) -> dict[str, str]:
    """Return those of a broker's settings that it tells; raises `KafkaError`, CLUSTER_AUTHORIZATION_FAILED for one."""
    what = f"reading the settings of broker {node_id}"
    return _configs(client, Node(node_id), (_BROKER, str(node_id)), names, what, deadline)


def topic_configs(client: Client, topic: str, names: Sequence[str], deadline: Deadline | None = None) -> dict[str, str]:
    """Return those of a topic's settings that are told, also the broker's where the topic has none of its own.

    Raises `KafkaError`, TOPIC_AUTHORIZATION_FAILED for one.
    """
    return _configs(client, Anyone(), (_TOPIC, topic), names, f"reading the settings of topic {topic}", deadline)


def _configs(
    client: Client,
    route: Route,
    resource: tuple[int, str],
    names: Sequence[str],
    what: str,
    deadline: Deadline | None,
) -> dict[str, str]:
    asked = DescribeConfigsResource(
        resource_type=resource[0], resource_name=resource[1], configuration_keys=list(names)
    )
    response = client.call(
        route,
        DescribeConfigsRequest(resources=[asked]),
        what=what,
        codes=lambda reply: (result.error_code for result in reply.results),
        deadline=deadline,
    )
    return {
        config.name: config.value
        for result in response.results
        for config in result.configs
        if config.value is not None
    }
