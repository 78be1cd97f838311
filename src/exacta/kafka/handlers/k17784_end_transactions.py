"""EndTransactions: commit or abort a set of transactions in one durable step, all or none. Exacta's own.

The key. An API key is an INT16. Kafka numbers its own from 0 on without gaps and is below 100 after fourteen years;
Confluent's server numbers its private ones from 10000 on, 10001 among them, and proxies pass what is below 20000. 17784
is 0x4578, the letters "Ex": far from both, and not what somebody else would pick as the first free round number. It is
advertised in ApiVersions like any API, where every client looks for the keys that it knows and skips the others
(librdkafka, aiokafka, kafka-python and Java: tests). A feature flag (KIP-584) would say the same in a second place.
"""

from exacta.core.commands import EndTransactions, TransactionToEnd
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.core.replies import TransactionsRefused
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17784_end_transactions import (
    EndTransactionsRequest,
    EndTransactionsResponse,
    RefusedTransaction,
)


def handle(broker: Broker, request: EndTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer when all outcomes are durable, or with what stood in the way of all."""

    def done(answer: Answer) -> None:
        if not isinstance(answer, TransactionsRefused):
            reply(EndTransactionsResponse(error_code=context.error_code(answer)))
            return
        refused = [
            RefusedTransaction(transactional_id=entry.transactional_id, error_code=context.error_code(rejection))
            for entry, rejection in zip(request.transactions, answer.rejections, strict=True)
            if rejection is not None
        ]
        reply(EndTransactionsResponse(error_code=ErrorCode.OPERATION_NOT_ATTEMPTED, refused=refused))

    transactions = tuple(
        TransactionToEnd(
            transactional_id=entry.transactional_id,
            producer_id=ProducerId(entry.producer_id),
            producer_epoch=ProducerEpoch(entry.producer_epoch),
            partitions=tuple((topic.name, index) for topic in entry.topics for index in topic.partitions),
        )
        for entry in request.transactions
    )
    broker.ask(context, EndTransactions(transactions=transactions, commit=request.committed), done)


def refused(request: EndTransactionsRequest, code: ErrorCode, version: int) -> EndTransactionsResponse:
    """Refuse transactions of a request; those that only were not attempted are not named."""
    refused = [
        RefusedTransaction(transactional_id=entry.transactional_id, error_code=code)
        for entry in request.transactions
        if code is not ErrorCode.OPERATION_NOT_ATTEMPTED
    ]
    return EndTransactionsResponse(error_code=ErrorCode.OPERATION_NOT_ATTEMPTED, refused=refused)


HANDLER = Handler(
    ApiKey.END_TRANSACTIONS,
    versions=(0, 0),
    needs=(
        Each(
            Operation.WRITE,
            ResourceKind.TRANSACTIONAL_ID,
            "transactions",
            "refused",
            name="transactional_id",
            others=ErrorCode.OPERATION_NOT_ATTEMPTED,
        ),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
    refused=refused,
)
