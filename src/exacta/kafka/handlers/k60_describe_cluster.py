"""DescribeCluster: the brokers that live, of which none is fenced (KIP-1073); the one that leads is the controller."""

from exacta.front.broker import Broker
from exacta.kafka.at_follower import SERVES
from exacta.kafka.authorized_operations import NOT_ASKED_FOR, on_cluster
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside
from exacta.kafka.nodes import told_cluster
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1


def handle(broker: Broker, request: DescribeClusterRequest, context: RequestContext, reply: Reply) -> None:
    """Answer for brokers; there are no controllers to be reached apart from them (KIP-919)."""
    if request.endpoint_type != BROKERS:
        reply(
            DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="this is a broker",
                endpoint_type=BROKERS,
            )
        )
        return
    cluster = told_cluster(broker, context)
    reply(
        DescribeClusterResponse(
            endpoint_type=BROKERS,
            cluster_id=broker.cluster_id,
            controller_id=cluster.leader_id,
            brokers=[
                DescribeClusterBroker(broker_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
                for each in cluster.nodes
            ],
            cluster_authorized_operations=on_cluster(broker, context)
            if request.include_cluster_authorized_operations
            else NOT_ASKED_FOR,
        )
    )


HANDLER = Handler(
    ApiKey.DESCRIBE_CLUSTER,
    versions=(0, 2),
    needs=(Inside(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    at_follower=SERVES,
    handle=handle,
)
