"""JoinTransaction lets one transaction span Kafka's and Pulsar's clients (decision 0038). Exacta's own.

`k17784_end_transactions` says why our own keys begin where they do.
"""

from exacta.core.commands import JoinTransaction
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionId
from exacta.core.replies import TransactionJoinedReply
from exacta.front.broker import Broker
from exacta.front.transaction_rights import lacking_for
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, transactional_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionRequest, JoinTransactionResponse

NO_TRANSACTION = -1
"""The request names no handle: the transaction that the transactional id has open is meant."""


def handle(broker: Broker, request: JoinTransactionRequest, context: RequestContext, reply: Reply) -> None:
    """Answer with the id by which Pulsar's clients name the transaction, when that is durable."""

    def done(answer: Answer) -> None:
        if isinstance(answer, TransactionJoinedReply):
            reply(JoinTransactionResponse(transaction_id=answer.transaction_id))
        else:
            reply(JoinTransactionResponse(error_code=context.error_code(answer)))

    named = request.transaction_id
    if named != NO_TRANSACTION and lacking_for(broker, context, TransactionId(named)) is not None:
        reply(JoinTransactionResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return
    command = JoinTransaction(
        transactional_id=request.transactional_id,
        producer_id=ProducerId(request.producer_id),
        producer_epoch=ProducerEpoch(request.producer_epoch),
        transaction=None if named == NO_TRANSACTION else TransactionId(named),
    )
    broker.ask(context, command, done)


HANDLER = Handler(
    ApiKey.JOIN_TRANSACTION,
    versions=(0, 0),
    needs=(Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
