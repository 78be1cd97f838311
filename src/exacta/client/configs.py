"""Read the settings of brokers and topics, as far as they are told (KIP-133)."""

from collections.abc import Sequence

from exacta.client.deadline import Deadline
from exacta.client.routing import Anyone, Client, Node, Route
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource

_TOPIC, _BROKER = 2, 4


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
