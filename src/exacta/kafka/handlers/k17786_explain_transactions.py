"""ExplainTransactions: what transactional ids are doing, whose they are, and what happened to them. Exacta's own.

Handles are named like transactional ids, or by their ids, where a transactional id has the name of one.
DescribeTransactions has no room for owner, deadline and first offsets, and no answer of Kafka's says why a producer was
fenced. `k17784_end_transactions` says why our own keys begin where they do.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from exacta.core.ids import TransactionId
from exacta.core.state.incidents import Incident
from exacta.core.state.state import State
from exacta.core.state.transaction import handle_name
from exacta.core.transactions.description import (
    DescribedAcknowledgements,
    DescribedPartition,
    DescribedTransaction,
    describe_handle,
    describe_open_transaction,
    describe_transaction,
    incidents_of,
    incidents_of_handle,
)
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Each, Shown
from exacta.kafka.parts import Parts, divided_by
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
    Shown(Operation.DESCRIBE, ResourceKind.TOPIC, "transactions.subscriptions", name="topic_name"),
    Shown(Operation.DESCRIBE, ResourceKind.GROUP, "transactions.groups", name=""),
)


def handle(broker: Broker, request: ExplainTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """Explain the ids and handles that are named, or what is open."""
    named = request.transactional_ids
    if named is None:

        def described(state: State, now_ms: int, transaction_id: TransactionId) -> ExplainedTransaction | None:
            found = describe_open_transaction(state, transaction_id)
            return None if found is None else _explained(found, _incidents(state, found))

        def done(explained: list[ExplainedTransaction]) -> None:
            reply(ExplainTransactionsResponse(now_ms=now_ms, transactions=explained))

        now_ms = broker.engine.now_ms()
        describe_all(broker, context, lambda state: state.transactions, described, done)
        return

    def view(state: State, now_ms: int) -> ExplainTransactionsResponse:
        explained = [_explain(state, each) for each in filter(first_time(), named)]
        explained += [_explain_handle(state, TransactionId(each)) for each in filter(first_time(), request.handles)]
        return ExplainTransactionsResponse(now_ms=now_ms, transactions=explained)

    broker.read(context, view, reply)


def _explain(state: State, name: str) -> ExplainedTransaction:
    found, incidents = describe_transaction(state, name), incidents_of(state, name)
    return _unknown(name, incidents) if found is None else _explained(found, incidents)


def _explain_handle(state: State, transaction_id: TransactionId) -> ExplainedTransaction:
    found = describe_handle(state, transaction_id)
    if found is not None:
        return _explained(found, _incidents(state, found))
    unknown = _unknown(handle_name(transaction_id), ())
    unknown.is_handle, unknown.transaction_id = True, transaction_id
    return unknown


def _incidents(state: State, found: DescribedTransaction) -> Sequence[Incident]:
    if found.is_handle:
        return incidents_of_handle(state, found.transaction_id)
    return incidents_of(state, found.name)


def _unknown(name: str, incidents: Sequence[Incident]) -> ExplainedTransaction:
    return ExplainedTransaction(
        transactional_id=name,
        error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        incidents=list(map(_incident, incidents)),
    )


def _explained(found: DescribedTransaction, incidents: Sequence[Incident]) -> ExplainedTransaction:
    explained = ExplainedTransaction(
        transactional_id=found.name,
        is_handle=found.is_handle,
        is_joint=found.is_joint,
        transaction_id=found.transaction_id,
        transaction_state=found.phase.value,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        client_id=found.client_id,
        client_host=found.client_host,
        last_update_ms=found.last_update_ms,
        incidents=list(map(_incident, incidents)),
    )
    if found.is_open:
        explained.open_producer_id, explained.open_producer_epoch = found.open_producer_id, found.open_producer_epoch
        explained.start_ms = found.start_ms
        explained.deadline_ms = -1 if found.deadline_ms is None else found.deadline_ms
        explained.topics = _topics(found.partitions)
        explained.groups = list(found.groups)
        explained.subscription_count = found.subscription_count
        explained.subscriptions = list(map(_subscription, found.acknowledgements))
    return explained


def _subscription(found: DescribedAcknowledgements) -> wire.AcknowledgedSubscription:
    return wire.AcknowledgedSubscription(
        topic_name=found.topic,
        partition_index=found.index,
        subscription=found.subscription,
        before_offset=found.before or -1,
        run_count=found.run_count,
        runs=[wire.Run(first_offset=first, last_offset=last) for first, last in found.runs],
    )


def _topics(partitions: Iterable[DescribedPartition]) -> list[OpenTopic]:
    return [
        OpenTopic(
            name=name,
            partitions=list(map(_partition, of_topic)),
        )
        for name, of_topic in groupby(partitions, key=attrgetter("topic"))
    ]


def _partition(found: DescribedPartition) -> OpenPartition:
    return OpenPartition(
        partition_index=found.index,
        first_offset=found.first_offset,
        staged_records=found.staged_records,
        staged_bytes=found.staged_bytes,
    )


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
    parts=(
        divided_by(NEEDS[0], most=200, once=("handles",)),
        Parts("handles", "transactions", name="", most=200),
    ),
    refused=refused,
    plain_error=ExplainTransactionsResponse,
)
