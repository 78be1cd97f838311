"""DescribeTransactions: what a transactional id is doing (KIP-664).

Of a transaction that was kept (KIP-939) pair and time-out are its own, as its records have them, not its holder's.
"""

from itertools import groupby
from operator import attrgetter

from exacta.core.reading.transactions import describe_transaction
from exacta.core.state.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.request_size import first_time
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

KEY = ApiKey.DESCRIBE_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 0


def handle(broker: BrokerContext, request: DescribeTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all ids from one state."""

    def view(state: State, now_ms: int) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[_describe(state, each) for each in filter(first_time(), request.transactional_ids)]
        )

    broker.read(context, view, reply)


def _describe(state: State, name: str) -> TransactionState:
    found = describe_transaction(state, name)
    if found is None:
        return TransactionState(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, producer_id=-1)
    pair = (found.producer_id, found.producer_epoch)
    if found.is_open:
        pair = (found.open_producer_id, found.open_producer_epoch)
    return TransactionState(
        transactional_id=name,
        transaction_state=found.phase.value,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=pair[0],
        producer_epoch=pair[1],
        topics=[
            TopicData(topic=topic, partitions=[each.index for each in of_topic])
            for topic, of_topic in groupby(found.partitions, key=attrgetter("topic"))
        ],
    )
