"""ListTransactions names every transactional id, or those in a state, of a producer, open for long, of a name.

KIP-664, KIP-994, KIP-1152.
"""

from exacta.core.ids import TransactionId
from exacta.core.pattern import matcher
from exacta.core.state.state import State
from exacta.core.transactions.description import ListedTransaction, list_transaction, transaction_names
from exacta.core.values.transactions import Phase
from exacta.front.broker import Broker
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

    def wanted(listed: ListedTransaction, now_ms: int) -> bool:
        if states and listed.phase.value not in states:
            return False
        if producer_ids and listed.producer_id not in producer_ids:
            return False
        # As in Kafka, what has ended counts from its start, and what has never begun is older than anything.
        if request.duration_filter >= 0 and now_ms - listed.start_ms <= request.duration_filter:
            return False
        return named is None or named(listed.name) is not None

    def described(state: State, now_ms: int, name: str | TransactionId) -> TransactionState | None:
        listed = list_transaction(state, name)
        if listed is None or not wanted(listed, now_ms):
            return None
        return TransactionState(
            transactional_id=listed.name, producer_id=listed.producer_id, transaction_state=listed.phase.value
        )

    def done(found: list[TransactionState]) -> None:
        unknown = sorted(states - STATES)
        reply(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found))

    describe_all(broker, context, transaction_names, described, done)


HANDLER = Handler(
    ApiKey.LIST_TRANSACTIONS,
    versions=(0, 2),
    needs=(Shown(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID, "transaction_states", name="transactional_id"),),
    handle=handle,
)
