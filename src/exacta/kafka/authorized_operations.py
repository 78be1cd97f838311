"""The operations that a client may do on a resource, as the bits in which clients are told of them (KIP-430)."""

from exacta.front.broker import Broker
from exacta.kafka.access import allows
from exacta.kafka.context import RequestContext
from exacta.ports.authorizer import CLUSTER, Operation, Resource, ResourceKind
from exacta.protocol.kafka.acl_numbers import OPERATIONS

NUMBERS = {operation: OPERATIONS[operation.value] for operation in Operation}
"""Kafka's numbers; each is the number of its bit."""

ON_A_TOPIC = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_A_GROUP = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_THE_CLUSTER = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
"""The operations that there are on a resource; a client is told of those among them that it may do."""

NOT_ASKED_FOR = -0x8000_0000
_EVERYTHING_ON_A_TOPIC = sum(1 << NUMBERS[operation] for operation in ON_A_TOPIC)


def on_topic(broker: Broker, context: RequestContext, topic: str) -> int:
    """Return the bits of what the client may do on a topic."""
    if broker.authorizer.allows_all:  # a request may ask it of all topics
        return _EVERYTHING_ON_A_TOPIC
    return _bits(broker, context, ON_A_TOPIC, Resource(ResourceKind.TOPIC, topic))


def on_group(broker: Broker, context: RequestContext, group_id: str) -> int:
    """Return the bits of what the client may do on a group."""
    return _bits(broker, context, ON_A_GROUP, Resource(ResourceKind.GROUP, group_id))


def on_cluster(broker: Broker, context: RequestContext) -> int:
    """Return the bits of what the client may do on the cluster: none where it may not describe it, as Apache Kafka."""
    if not allows(broker, context, Operation.DESCRIBE, CLUSTER.kind, CLUSTER.name):
        return 0
    return _bits(broker, context, ON_THE_CLUSTER, CLUSTER)


def _bits(broker: Broker, context: RequestContext, operations: tuple[Operation, ...], resource: Resource) -> int:
    return sum(
        1 << NUMBERS[operation]
        for operation in operations
        if allows(broker, context, operation, resource.kind, resource.name)
    )
