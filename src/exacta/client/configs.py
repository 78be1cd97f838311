"""Read the settings of brokers, as far as they tell them (KIP-133)."""

from collections.abc import Sequence

from exacta.client.deadline import Deadline
from exacta.client.routing import Client, Node
from exacta.protocol.kafka.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource

_BROKER = 4


def broker_configs(
    client: Client, node_id: int, names: Sequence[str], deadline: Deadline | None = None
) -> dict[str, str]:
    """Return those of a broker's settings that it tells; raises `KafkaError`, CLUSTER_AUTHORIZATION_FAILED for one."""
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(node_id), configuration_keys=list(names)
    )
    response = client.call(
        Node(node_id),
        DescribeConfigsRequest(resources=[resource]),
        what=f"reading the settings of broker {node_id}",
        codes=lambda reply: (result.error_code for result in reply.results),
        deadline=deadline,
    )
    return {
        config.name: config.value
        for result in response.results
        for config in result.configs
        if config.value is not None
    }
