"""InitProducerId: a producer id and epoch; with a transactional id, the fence (KIP-98, KIP-360)."""

from exacta.core.commands import InitProducerId
from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId
from exacta.core.replies import ProducerBound
from exacta.engine.engine import Answer
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

KEY = ApiKey.INIT_PRODUCER_ID
MIN_VERSION = 0
MAX_VERSION = 5
NEWER = "6 is two-phase commit (KIP-939)"
PLAIN_ERROR = InitProducerIdResponse


def handle(broker: BrokerContext, request: InitProducerIdRequest, context: RequestContext, reply: Reply) -> None:
    """Bind, and abort what a predecessor left open."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        reply(InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NO_PRODUCER_EPOCH))
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, ProducerBound):
            reply(InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch))
        else:
            code = error_code(answer, KEY, context.version)
            reply(InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH))

    broker.ask(
        context,
        InitProducerId(
            transactional_id=request.transactional_id,
            transaction_timeout_ms=request.transaction_timeout_ms,
            producer_id=ProducerId(request.producer_id),
            producer_epoch=ProducerEpoch(request.producer_epoch),
        ),
        done,
    )
