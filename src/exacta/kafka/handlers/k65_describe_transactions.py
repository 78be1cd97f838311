"""DescribeTransactions tells the state of transactional ids and of their transactions (KIP-664).

The pair and the time-out of a prepared transaction (KIP-939) are its own, as its records have them, not its holder's.
"""

from functools import partial
from itertools import groupby
from operator import attrgetter

from exacta.core.queries.transactions import all_explained
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Shown
from exacta.kafka.parts import Repeats, divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from exacta.readmodel.transactions import Explanation

NEEDS = (
    Each(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID, "transactional_ids", "transaction_states", name=""),
    Shown(Operation.DESCRIBE, ResourceKind.TOPIC, "transaction_states.topics", name="topic"),
)


def handle(broker: Broker, request: DescribeTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all ids of a request, or of a part of it, from one state."""

    names = [*dict.fromkeys(request.transactional_ids)]

    found = broker.engine.view(partial(all_explained, names=names))
    states = list(map(_state, names, found))
    broker.when_durable(context, lambda: reply(DescribeTransactionsResponse(transaction_states=states)))


def _state(name: str, found: Explanation) -> TransactionState:
    if not found.state:
        return TransactionState(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, producer_id=-1)
    pair = (found.producer_id, found.producer_epoch)
    if found.open_producer_id is not None and found.open_producer_epoch is not None:
        pair = (found.open_producer_id, found.open_producer_epoch)
    return TransactionState(
        transactional_id=name,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms or 0,
        transaction_start_time_ms=-1 if found.start_ms is None else found.start_ms,
        producer_id=pair[0],
        producer_epoch=pair[1],
        topics=[
            TopicData(topic=topic, partitions=[each.partition for each in of_topic])
            for topic, of_topic in groupby(found.partitions, key=attrgetter("topic"))
        ],
    )


HANDLER = Handler(
    ApiKey.DESCRIBE_TRANSACTIONS,
    versions=(0, 0),
    needs=NEEDS,
    at_follower=NOT_COORDINATOR,
    handle=handle,
    refusal={"producer_id": -1},
    parts=(divided_by(NEEDS[0], most=200, repeats=Repeats.LEFT_OUT),),
)
