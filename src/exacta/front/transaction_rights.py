"""The rights that a client needs to end a transaction by its id, or to join it with a transactional id.

Ids are counted, so that everybody can guess them. Who has begun the transaction needs nothing more, nor who may write
by the transactional id that owns it. Others need each right that its content needs.
"""

from functools import partial

from exacta.core.ids import TransactionId
from exacta.core.queries.open_transactions import content_of
from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.authorizer import Operation, Resource, ResourceKind


def lacking_for(broker: Broker, request: Request, transaction_id: TransactionId) -> str | None:
    """Say which right the client of a request lacks for a transaction; None: it may, or that is not open."""
    if broker.authorizer.allows_all:
        return None
    content = broker.engine.view(partial(content_of, transaction_id=transaction_id))
    if content is None or content.principal == request.principal.durable_name:
        return None

    def may(operation: Operation, kind: ResourceKind, name: str) -> bool:
        return broker.allows(request, operation, Resource(kind, name))

    owner = content.transactional_id
    if owner is not None and may(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, owner):
        return None
    for operation, kind, names in (
        (Operation.WRITE, ResourceKind.TOPIC, content.written),
        (Operation.READ, ResourceKind.TOPIC, content.acknowledged),
        (Operation.READ, ResourceKind.GROUP, content.groups),
    ):
        if not all(may(operation, kind, each) for each in names):
            return f"the client has no right to {operation.value} on each {kind.value} of the transaction"
    return None
