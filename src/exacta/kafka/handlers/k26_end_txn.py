"""EndTxn commits or aborts, durably and in all partitions and groups at once (decision D2)."""

from exacta.core.commands import EndTransaction
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionVersion
from exacta.core.replies import TransactionEndedReply
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, transactional_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest, EndTxnResponse

BUMPS_SINCE = 5
"""The first version whose answer brings producer id and epoch of the next transaction (KIP-890)."""


def handle(broker: Broker, request: EndTxnRequest, context: RequestContext, reply: Reply) -> None:
    """Answer when the outcome is durable."""
    context.shared.lost_coordinators.went_on(request.transactional_id)

    def done(answer: Answer) -> None:
        if isinstance(answer, TransactionEndedReply):
            reply(EndTxnResponse(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch))
        else:
            reply(EndTxnResponse(error_code=context.error_code(answer)))

    broker.ask(
        context,
        EndTransaction(
            transactional_id=request.transactional_id,
            producer_id=ProducerId(request.producer_id),
            producer_epoch=ProducerEpoch(request.producer_epoch),
            commit=request.committed,
            version=TransactionVersion.V2 if context.version >= BUMPS_SINCE else TransactionVersion.V1,
        ),
        done,
    )


HANDLER = Handler(
    ApiKey.END_TXN,
    versions=(0, 5),
    needs=(Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
