"""ListTransactions names every transactional id, or those in a state, of a producer, open for long, of a name.

KIP-664, KIP-994, KIP-1152.
"""

from exacta.core.ids import TransactionId
from exacta.core.pattern import matcher
from exacta.core.queries.transactions import listed_transaction, transaction_names
from exacta.core.transactions.description import ListedTransaction
from exacta.core.values.transactions import Phase
from exacta.front.broker import Broker
from exacta.kafka.at_follower import EMPTY
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Shown
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

STATES = frozenset(phase.value for phase in Phase) | {
    # Kafka's other states: known by name, never reached here (decision D2).
    "PrepareCommit",
    "PrepareAbort",
    "Dead",
    "PrepareEpochFence",
}


def handle(broker: Broker, request: ListTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """List what all filters let through; a filter that is not set lets everything through."""
    try:
        pattern = request.transactional_id_pattern
        named = matcher(pattern) if pattern else None
    except ValueError:
        reply(ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
        return
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)

    def told(name: str | TransactionId, listed: ListedTransaction) -> TransactionState | None:
        if states and listed.phase.value not in states:
            return None
        if producer_ids and listed.producer_id not in producer_ids:
            return None
        # As in Kafka, what has ended counts from its start, and what has never begun is older than anything.
        if request.duration_filter >= 0 and broker.engine.now_ms() - listed.start_ms <= request.duration_filter:
            return None
        if named is not None and named(listed.name) is None:
            return None
        return TransactionState(
            transactional_id=listed.name, producer_id=listed.producer_id, transaction_state=listed.phase.value
        )

    def done(found: list[TransactionState]) -> None:
        unknown = sorted(states - STATES)
        reply(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found))

    known = broker.engine.view(transaction_names)
    describe_all(broker, context, known, listed_transaction, told, done)


HANDLER = Handler(
    ApiKey.LIST_TRANSACTIONS,
    versions=(0, 2),
    needs=(Shown(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID, "transaction_states", name="transactional_id"),),
    at_follower=EMPTY,
    handle=handle,
)
