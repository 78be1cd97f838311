"""InitProducerId: a producer id and epoch; with a transactional id, the fence (KIP-98, KIP-360).

Version 6 is two-phase commit (KIP-939). It is told of where the configuration allows that, so that others see what a
released Apache Kafka shows; refused, it is refused as there.
"""

from exacta.config.configuration import Configuration
from exacta.core.commands import InitProducerId
from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId
from exacta.core.replies import ProducerBoundReply
from exacta.engine.engine import Answer
from exacta.kafka.authorization import Permission
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.errors import error_code
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

KEY = ApiKey.INIT_PRODUCER_ID
MIN_VERSION = 0
MAX_VERSION = 6
PLAIN_ERROR = InitProducerIdResponse


def advertised_max_version(configuration: Configuration) -> int:
    """Return the newest version that clients are told of."""
    return MAX_VERSION if configuration.transaction_two_phase_commit_enable else MAX_VERSION - 1


def handle(broker: BrokerContext, request: InitProducerIdRequest, context: RequestContext, reply: Reply) -> None:
    """Bind, and abort what a predecessor left open."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        reply(InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NO_PRODUCER_EPOCH))
        return
    if request.enable_2pc and not _may_take_part(broker, request, context):
        code = Permission.TWO_PHASE_COMMIT.value
        reply(InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH))
        return

    def done(answer: Answer) -> None:
        if isinstance(answer, ProducerBoundReply):
            reply(
                InitProducerIdResponse(
                    producer_id=answer.producer_id,
                    producer_epoch=answer.producer_epoch,
                    ongoing_txn_producer_id=answer.open_producer_id,
                    ongoing_txn_producer_epoch=answer.open_producer_epoch,
                )
            )
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
            two_phase=request.enable_2pc,
            keep_prepared=request.keep_prepared_txn,
            client_id=context.client_id,
            client_host=context.client_host,
        ),
        done,
    )


def _may_take_part(broker: BrokerContext, request: InitProducerIdRequest, context: RequestContext) -> bool:
    """Whether this transactional id may have transactions without a time-out, which only their holders end."""
    if not broker.configuration.transaction_two_phase_commit_enable:
        return False
    return broker.authorize(context, Permission.TWO_PHASE_COMMIT, request.transactional_id or "")
