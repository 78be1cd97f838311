"""ExplainTransactions: what transactional ids are doing, whose they are, and what happened to them. Exacta's own.

DescribeTransactions has no room for owner, deadline and first offsets, and no answer of Kafka's says why a producer was
fenced. `k17784_end_transactions` says why our own keys begin where they do.
"""

from exacta.core.state.incidents import Incident
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import Phase, Transactional
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.request_size import first_time
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k17786_explain_transactions as wire
from exacta.protocol.kafka.messages.k17786_explain_transactions import (
    ExplainedTransaction,
    ExplainTransactionsRequest,
    ExplainTransactionsResponse,
    OpenPartition,
    OpenTopic,
)

KEY = ApiKey.EXPLAIN_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 0
PLAIN_ERROR = ExplainTransactionsResponse


def handle(broker: BrokerContext, request: ExplainTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """Explain the ids that are named, or those that have a transaction open; all from one state."""

    def view(state: State, now_ms: int) -> ExplainTransactionsResponse:
        named = request.transactional_ids
        if named is None:
            named = [held.transactional_id for held in state.transactionals.values() if held.phase is Phase.ONGOING]
        explained = [_explain(state, each) for each in filter(first_time(), named)]
        return ExplainTransactionsResponse(now_ms=now_ms, transactions=explained)

    broker.read(context, view, reply)


def _explain(state: State, transactional_id: str) -> ExplainedTransaction:
    incidents = [_incident(each) for each in state.incidents.get(transactional_id, ())]
    held = state.transactionals.get(transactional_id)
    if held is None:
        return ExplainedTransaction(
            transactional_id=transactional_id,
            error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            incidents=incidents,
        )
    explained = ExplainedTransaction(
        transactional_id=transactional_id,
        transaction_state=held.phase.value,
        producer_id=held.producer_id,
        producer_epoch=held.producer_epoch,
        client_id=held.client_id,
        client_host=held.client_host,
        last_update_ms=held.last_update_ms,
        incidents=incidents,
    )
    if held.phase is Phase.ONGOING:
        explained.open_producer_id, explained.open_producer_epoch = held.open_pair
        explained.start_ms = held.start_ms
        explained.deadline_ms = -1 if held.deadline_ms is None else held.deadline_ms
        explained.topics = _topics(state, held)
        explained.groups = sorted(held.groups)
    return explained


def _topics(state: State, held: Transactional) -> list[OpenTopic]:
    topics: dict[str, list[Partition]] = {}
    for partition_id in sorted(held.partitions):
        partition = state.partitions[partition_id]
        topics.setdefault(partition.topic, []).append(partition)
    producer_id, _ = held.open_pair
    return [
        OpenTopic(
            name=name,
            partitions=[
                OpenPartition(
                    partition_index=partition.index, first_offset=partition.open_transactions.get(producer_id, -1)
                )
                for partition in partitions
            ],
        )
        for name, partitions in sorted(topics.items())
    ]


def _incident(incident: Incident) -> wire.Incident:
    return wire.Incident(
        what=incident.what,
        cause=incident.cause,
        at_ms=incident.at_ms,
        producer_id=incident.producer_id,
        producer_epoch=incident.producer_epoch,
        client_id=incident.client_id,
        client_host=incident.client_host,
    )
