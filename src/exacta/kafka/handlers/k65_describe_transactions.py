"""DescribeTransactions: what a transactional id is doing (KIP-664).

Of a transaction that was kept (KIP-939) pair and time-out are its own, as its records have them, not its holder's.
"""

from exacta.core.state.state import State
from exacta.core.state.transaction import Phase, Transactional
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


def _describe(state: State, transactional_id: str) -> TransactionState:
    held = state.transactionals.get(transactional_id)
    if held is None:
        return TransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, producer_id=-1
        )
    open_now = held.phase is Phase.ONGOING
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=held.phase.value,
        transaction_timeout_ms=held.open_timeout_ms,
        transaction_start_time_ms=-1 if held.phase is Phase.EMPTY else held.start_ms,
        producer_id=held.open_pair[0],
        producer_epoch=held.open_pair[1],
        topics=_partitions(state, held) if open_now else [],
    )


def _partitions(state: State, held: Transactional) -> list[TopicData]:
    topics: dict[str, list[int]] = {}
    for partition_id in sorted(held.partitions):
        partition = state.partitions[partition_id]
        topics.setdefault(partition.topic, []).append(partition.index)
    return [TopicData(topic=topic, partitions=indexes) for topic, indexes in sorted(topics.items())]
