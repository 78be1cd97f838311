"""AddOffsetsToTxn registers a consumer group with the transaction."""

from exacta.core.commands import AddGroup
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, group_id, transactional_id
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(broker: Broker, request: AddOffsetsToTxnRequest, context: RequestContext, reply: Reply) -> None:
    """Register the group; the client may need a push to go on (`lost_coordinators`)."""

    def done(answer: Answer) -> None:
        reply(AddOffsetsToTxnResponse(error_code=context.error_code(answer)))
        if not isinstance(answer, Rejection):
            context.shared.lost_coordinators.registered(request.transactional_id, context.connection)

    broker.ask(
        context,
        AddGroup(
            transactional_id=request.transactional_id,
            producer_id=ProducerId(request.producer_id),
            producer_epoch=ProducerEpoch(request.producer_epoch),
            group_id=request.group_id,
        ),
        done,
    )


HANDLER = Handler(
    ApiKey.ADD_OFFSETS_TO_TXN,
    versions=(0, 4),
    needs=(
        Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),
        Whole(Operation.READ, ResourceKind.GROUP, group_id),
    ),
    at_follower=NOT_COORDINATOR,
    handle=handle,
)
