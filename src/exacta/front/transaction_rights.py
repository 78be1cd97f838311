"""The rights that a client needs to use a transaction by its id: to write into it, end it, join it, look at it.

Ids are counted, so that everybody can guess them. It may be used by

- the client that has begun it, by the name of its login;
- who may write by the transactional id that owns it: a joint transaction belongs to both sides;
- who may alter the cluster, and so write any rule;
- who has each right that its content needs: to write to its topics, to read the topics whose messages it acknowledges,
  and to read by its groups and subscriptions. To look at it needs the right to describe each of these.

The last one holds nothing of an empty transaction: only the others may use it. It is asked of each write into the
transaction, and only about what is new there (`known_content.py`).
"""

from functools import partial

from exacta.core.ids import TransactionId
from exacta.core.queries.open_transactions import content_of, opener_of
from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.authorizer import CLUSTER, Operation, Resource, ResourceKind


def lacking_for(
    broker: Broker, request: Request, transaction_id: TransactionId, *, only_looks: bool = False
) -> str | None:
    """Say which right the client of a request lacks for a transaction; None: it may, or that is not open."""
    if broker.authorizer.allows_all:
        return None
    opener = broker.engine.view(partial(opener_of, transaction_id=transaction_id))
    if opener is None or opener == request.principal.durable_name:
        return None

    def may(operation: Operation, kind: ResourceKind, name: str) -> bool:
        return broker.allows(request, operation, Resource(kind, name))

    content = broker.engine.view(partial(content_of, transaction_id=transaction_id))
    assert content is not None
    owner = content.transactional_id
    if owner is not None and may(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, owner):
        return None
    if broker.allows(request, Operation.ALTER, CLUSTER):
        return None
    if not (content.written or content.acknowledged or content.groups):
        return "another client has begun the transaction, and it is empty"
    host, acl_changes = request.connection.peer_host, broker.engine.advice.acl_changes
    for operation, kind, names in (
        (Operation.WRITE, ResourceKind.TOPIC, content.written),
        (Operation.READ, ResourceKind.TOPIC, content.acknowledged),
        (Operation.READ, ResourceKind.GROUP, content.groups),
    ):
        needed = Operation.DESCRIBE if only_looks else operation
        key = (request.principal, host, transaction_id, needed, kind)
        if not broker.known_content.allows(key, names, partial(may, needed, kind), acl_changes=acl_changes):
            return f"the client has no right to {needed.value} on each {kind.value} of the transaction"
    return None
