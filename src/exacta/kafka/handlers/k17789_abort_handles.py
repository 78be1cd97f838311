"""AbortHandles aborts transactions without a transactional id, for an operator who names them by their ids.

An abort marker (WriteTxnMarkers) needs a partition that the transaction has written to, and one may have acknowledged
messages only. `k17784_end_transactions` says why our own keys begin where they do.
"""

from exacta.core.commands import EndHandle
from exacta.core.ids import Cause, TransactionId
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Whole, or_on_cluster
from exacta.kafka.parts import Parts
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k17789_abort_handles import (
    AbortHandlesRequest,
    AbortHandlesResponse,
    HandleResult,
)


def handle(broker: Broker, request: AbortHandlesRequest, context: RequestContext, reply: Reply) -> None:
    """Abort each of them for itself; a repeat is answered like the first time."""

    def done(answers: list[Answer]) -> None:
        reply(
            AbortHandlesResponse(
                results=[
                    HandleResult(transaction_id=each, error_code=context.error_code(answer))
                    for each, answer in zip(request.handles, answers, strict=True)
                ]
            )
        )

    commands = [
        EndHandle(
            transaction_id=TransactionId(each),
            commit=False,
            cause=Cause.MARKER,
            client_id=context.client_id,
            client_host=context.client_host,
        )
        for each in request.handles
    ]
    if commands:
        broker.submit(context, commands, done)
    else:
        done([])


HANDLER = Handler(
    ApiKey.ABORT_HANDLES,
    versions=(0, 0),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER, instead=or_on_cluster(Operation.CLUSTER_ACTION)),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
    parts=(Parts("handles", "results", name=""),),
)
