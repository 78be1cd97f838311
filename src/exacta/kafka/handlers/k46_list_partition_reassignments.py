"""ListPartitionReassignments: with one broker, nothing moves (KIP-455)."""

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

KEY = ApiKey.LIST_PARTITION_REASSIGNMENTS
MIN_VERSION = 0
MAX_VERSION = 0

NEEDS = (Whole(Operation.DESCRIBE, ResourceKind.CLUSTER),)


def handle(broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext, reply: Reply) -> None:
    """List none, whatever was asked for, as Apache Kafka does where none is under way."""
    reply(ListPartitionReassignmentsResponse())


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    plain_error=ListPartitionReassignmentsResponse,
)
