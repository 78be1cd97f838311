"""DescribeProducers names the producers of a partition, and where their open transactions begin (KIP-664).

`kafka-transactions.sh find-hanging` asks this and DescribeTransactions for what is open here and for no coordinator:
there is nothing of that kind, since both are answered from one state.
"""

from collections.abc import Sequence
from functools import partial

from exacta.core.queries.producers import producers_of
from exacta.core.transactions.description import DescribedProducer
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_LEADER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import Repeats, divided_by
from exacta.kafka.request_size import first_time
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

COORDINATOR_EPOCH = 0
"""There is one coordinator, which writes this into its markers."""
NO_COORDINATOR_EPOCH = -1

NEEDS = (Each(Operation.READ, ResourceKind.TOPIC, "topics", "topics"),)


def handle(broker: Broker, request: DescribeProducersRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all partitions of a request, or of a part of it, from one state."""

    is_first = first_time()
    wanted = [
        (topic.name, [index for index in topic.partition_indexes if is_first((topic.name, index))])
        for topic in request.topics
    ]

    places = [(name, index) for name, indexes in wanted for index in indexes]
    found = iter(broker.engine.view(partial(producers_of, places=places)))
    topics = [
        TopicResponse(name=name, partitions=[_partition(index, next(found)) for index in indexes])
        for name, indexes in wanted
    ]
    broker.when_durable(context, lambda: reply(DescribeProducersResponse(topics=topics)))


def _partition(index: int, found: Sequence[DescribedProducer] | None) -> PartitionResponse:
    if found is None:
        return PartitionResponse(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return PartitionResponse(partition_index=index, active_producers=list(map(_producer, found)))


def _producer(found: DescribedProducer) -> ProducerState:
    return ProducerState(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        last_sequence=found.last_sequence,
        last_timestamp=found.last_timestamp_ms,
        coordinator_epoch=COORDINATOR_EPOCH if found.has_coordinator else NO_COORDINATOR_EPOCH,
        current_txn_start_offset=found.open_first_offset,
    )


HANDLER = Handler(
    ApiKey.DESCRIBE_PRODUCERS,
    versions=(0, 0),
    needs=NEEDS,
    at_follower=NOT_LEADER,
    handle=handle,
    parts=(divided_by(NEEDS[0], inner="partition_indexes", inner_answers="partitions", repeats=Repeats.LEFT_OUT),),
)
