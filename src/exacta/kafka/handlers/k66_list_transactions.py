"""ListTransactions: every transactional id, or those in a state, of a producer, open for long, of a name.

KIP-664, KIP-994, KIP-1152.
"""

from exacta.core.pattern import matcher
from exacta.core.state.state import State
from exacta.core.state.transaction import Phase, Transactional
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

KEY = ApiKey.LIST_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 2
PLAIN_ERROR = ListTransactionsResponse

STATES = frozenset(phase.value for phase in Phase) | {
    # Kafka's other states: known by name, never reached here (decision D2).
    "PrepareCommit",
    "PrepareAbort",
    "Dead",
    "PrepareEpochFence",
}


def handle(broker: BrokerContext, request: ListTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """List what all filters let through; a filter that is not set lets everything through."""
    try:
        pattern = request.transactional_id_pattern
        named = matcher(pattern) if pattern else None
    except ValueError:
        reply(ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
        return
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)

    def wanted(held: Transactional, now_ms: int) -> bool:
        if states and held.phase.value not in states:
            return False
        if producer_ids and held.open_pair[0] not in producer_ids:
            return False
        # As in Kafka, what has ended counts from its start, and what has never begun is older than anything.
        start_ms = -1 if held.phase is Phase.EMPTY else held.start_ms
        if request.duration_filter >= 0 and now_ms - start_ms <= request.duration_filter:
            return False
        return named is None or named(held.transactional_id) is not None

    def view(state: State, now_ms: int) -> ListTransactionsResponse:
        return ListTransactionsResponse(
            unknown_state_filters=sorted(states - STATES),
            transaction_states=[
                TransactionState(
                    transactional_id=held.transactional_id,
                    producer_id=held.open_pair[0],
                    transaction_state=held.phase.value,
                )
                for held in state.transactionals.values()
                if wanted(held, now_ms)
            ],
        )

    broker.read(context, view, reply)
