"""AlterPartitionReassignments: every partition is on every broker, and stays there (KIP-455)."""

from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole
from exacta.kafka.nodes import can_be_on, node_ids
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(broker: Broker, request: AlterPartitionReassignmentsRequest, context: RequestContext, reply: Reply) -> None:
    """Accept what is so already; where nothing moves, there is nothing to cancel."""

    responses = [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=[_answer(broker, topic.name, partition) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    answer = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )
    broker.when_durable(context, lambda: reply(answer))


def _answer(broker: Broker, topic: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    index, message = wanted.partition_index, None
    if broker.engine.advice.partition_id(topic, index) is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic has no partition {index}"
    elif wanted.replicas is None:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    elif not can_be_on(broker, wanted.replicas):
        code, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"a partition can only be on {node_ids(broker)}"
    else:
        code = ErrorCode.NONE
    return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)


HANDLER = Handler(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=(0, 1),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(Parts("topics", "responses", inner="partitions", inner_answers="partitions"),),
)
