"""ListPartitionReassignments: with one broker, nothing moves (KIP-455)."""

from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

KEY = ApiKey.LIST_PARTITION_REASSIGNMENTS
MIN_VERSION = 0
MAX_VERSION = 0
PLAIN_ERROR = ListPartitionReassignmentsResponse


def handle(
    broker: BrokerContext, request: ListPartitionReassignmentsRequest, context: RequestContext, reply: Reply
) -> None:
    """List none, whatever was asked for, as Apache Kafka does where none is under way."""
    reply(ListPartitionReassignmentsResponse())
