"""ListPartitionReassignments: every partition is on every broker, so nothing moves (KIP-455)."""

from exacta.front.broker import Broker
from exacta.kafka.at_follower import SERVES
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext, reply: Reply) -> None:
    """List none, whatever was asked for, as Apache Kafka does where none is under way."""
    reply(ListPartitionReassignmentsResponse())


HANDLER = Handler(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    needs=(Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),),
    at_follower=SERVES,
    handle=handle,
)
