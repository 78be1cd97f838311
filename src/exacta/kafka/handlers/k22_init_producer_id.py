"""InitProducerId gives a producer id and an epoch; with a transactional id it fences predecessors (KIP-98, KIP-360).

Version 6 brings two-phase commit (KIP-939). Clients are told of it only where the configuration allows that, so that
others see what a released Apache Kafka shows. A refusal is the one of Apache Kafka.
"""

from collections.abc import Iterable
from typing import Any

from exacta.config.configuration import Configuration
from exacta.core.commands import InitProducerId
from exacta.core.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId
from exacta.core.replies import ProducerBoundReply
from exacta.front.broker import Broker
from exacta.kafka.at_follower import by_request
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, transactional_id
from exacta.ports.authorizer import CLUSTER, Operation, Pattern, Resource, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

TWO_PHASE_SINCE = 6


def _two_phase(request: Any) -> Iterable[str]:
    return transactional_id(request) if request.enable_2pc else ()


def _without_transactional_id(request: Any) -> Iterable[str]:
    return (CLUSTER.name,) if request.transactional_id is None else ()


def advertised_max_version(configuration: Configuration) -> int:
    """Return the newest version that clients are told of."""
    return TWO_PHASE_SINCE if configuration.transaction_two_phase_commit_enable else TWO_PHASE_SINCE - 1


def handle(broker: Broker, request: InitProducerIdRequest, context: RequestContext, reply: Reply) -> None:
    """Bind the transactional id to this producer, and abort what a predecessor left open."""
    if not broker.cluster.leads:
        _send_elsewhere(request, context, reply)
        return
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        reply(InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NO_PRODUCER_EPOCH))
        return
    if request.enable_2pc and not broker.configuration.transaction_two_phase_commit_enable:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
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
            code = context.error_code(answer)
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
            principal=context.principal.durable_name,
        ),
        done,
    )


def _send_elsewhere(request: InitProducerIdRequest, context: RequestContext, reply: Reply) -> None:
    """Refuse at a follower, which gives no ids.

    Without a transactional id clients ask the broker with the least to do, which would be this one again and again. All
    of them ask again after this error, and ask another broker once they have lost the connection.
    """
    is_bound = request.transactional_id is not None
    code = ErrorCode.NOT_COORDINATOR if is_bound else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    reply(InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH))
    if not is_bound:
        context.connection.close()


HANDLER = Handler(
    ApiKey.INIT_PRODUCER_ID,
    versions=(0, TWO_PHASE_SINCE),
    needs=(
        Whole(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, transactional_id),
        Whole(Operation.TWO_PHASE_COMMIT, ResourceKind.TRANSACTIONAL_ID, _two_phase),
        Whole(
            Operation.IDEMPOTENT_WRITE,
            ResourceKind.CLUSTER,
            _without_transactional_id,
            instead=((Operation.WRITE, Resource(ResourceKind.TOPIC, "", Pattern.ANY)),),
        ),
    ),
    at_follower=by_request(
        "With a transactional id it refuses by NOT_COORDINATOR. Without one, clients ask any broker: it refuses by "
        "COORDINATOR_LOAD_IN_PROGRESS and ends the connection, so that they ask another one."
    ),
    handle=handle,
    refusal={"producer_epoch": NO_PRODUCER_EPOCH},
    highest_advertised=advertised_max_version,
)
