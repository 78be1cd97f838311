"""ExplainTransactions: what transactional ids are doing, whose they are, and what happened to them. Exacta's own.

DescribeTransactions has no room for owner, deadline and first offsets, and no answer of Kafka's says why a producer was
fenced. `k17784_end_transactions` says why our own keys begin where they do.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from exacta.core.state.incidents import Incident
from exacta.core.state.state import State
from exacta.core.transactions.description import (
    DescribedPartition,
    describe_transaction,
    incidents_of,
    open_transactions,
)
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Shown
from exacta.kafka.request_size import first_time
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
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

NEEDS = (
    Each(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID, "transactional_ids", "transactions", name=""),
    Shown(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID, "transactions", name="transactional_id"),
    Shown(Operation.DESCRIBE, ResourceKind.TOPIC, "transactions.topics"),
    Shown(Operation.DESCRIBE, ResourceKind.GROUP, "transactions.groups", name=""),
)


def handle(broker: BrokerContext, request: ExplainTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """Explain the ids that are named, or those that have a transaction open; all from one state."""

    def view(state: State, now_ms: int) -> ExplainTransactionsResponse:
        named = open_transactions(state) if request.transactional_ids is None else request.transactional_ids
        explained = [_explain(state, each) for each in filter(first_time(), named)]
        return ExplainTransactionsResponse(now_ms=now_ms, transactions=explained)

    broker.read(context, view, reply)


def _explain(state: State, name: str) -> ExplainedTransaction:
    incidents = [_incident(each) for each in incidents_of(state, name)]
    found = describe_transaction(state, name)
    if found is None:
        return ExplainedTransaction(
            transactional_id=name,
            error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            incidents=incidents,
        )
    explained = ExplainedTransaction(
        transactional_id=name,
        transaction_state=found.phase.value,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        client_id=found.client_id,
        client_host=found.client_host,
        last_update_ms=found.last_update_ms,
        incidents=incidents,
    )
    if found.is_open:
        explained.open_producer_id, explained.open_producer_epoch = found.open_producer_id, found.open_producer_epoch
        explained.start_ms = found.start_ms
        explained.deadline_ms = -1 if found.deadline_ms is None else found.deadline_ms
        explained.topics = _topics(found.partitions)
        explained.groups = list(found.groups)
    return explained


def _topics(partitions: Iterable[DescribedPartition]) -> list[OpenTopic]:
    return [
        OpenTopic(
            name=name,
            partitions=[OpenPartition(partition_index=each.index, first_offset=each.first_offset) for each in of_topic],
        )
        for name, of_topic in groupby(partitions, key=attrgetter("topic"))
    ]


def _incident(incident: Incident) -> wire.Incident:
    return wire.Incident(
        what=incident.kind,
        cause=incident.cause,
        at_ms=incident.at_ms,
        producer_id=incident.producer_id,
        producer_epoch=incident.producer_epoch,
        client_id=incident.client_id,
        client_host=incident.client_host,
    )


def refused(request: ExplainTransactionsRequest, code: ErrorCode, version: int) -> ExplainTransactionsResponse:
    """Refuse every transactional id of a request."""
    return ExplainTransactionsResponse(
        transactions=[
            ExplainedTransaction(transactional_id=each, error_code=code) for each in request.transactional_ids or ()
        ]
    )


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    refused=refused,
    plain_error=ExplainTransactionsResponse,
)
