"""ListTransactions: every transactional id, or those in a state, of a producer, open for long (KIP-664, KIP-994)."""

from exacta.core.state import Phase, State, Transactional
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.messages.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

KEY = ApiKey.LIST_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 1
PLAIN_ERROR = ListTransactionsResponse

STATES = frozenset(phase.value for phase in Phase) | {
    # Kafka's other states: known by name, never reached here (DESIGN D2).
    "PrepareCommit",
    "PrepareAbort",
    "Dead",
    "PrepareEpochFence",
}


def handle(broker: BrokerContext, request: ListTransactionsRequest, context: RequestContext, reply: Reply) -> None:
    """List what all filters let through; a filter that is not set lets everything through."""
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)

    def wanted(held: Transactional, now_ms: int) -> bool:
        if states and held.phase.value not in states:
            return False
        if producer_ids and held.producer_id not in producer_ids:
            return False
        if request.duration_filter >= 0:
            return held.phase is Phase.ONGOING and now_ms - held.start_ms > request.duration_filter
        return True

    def view(state: State, now_ms: int) -> ListTransactionsResponse:
        return ListTransactionsResponse(
            unknown_state_filters=sorted(states - STATES),
            transaction_states=[
                TransactionState(
                    transactional_id=held.transactional_id,
                    producer_id=held.producer_id,
                    transaction_state=held.phase.value,
                )
                for held in state.transactionals.values()
                if wanted(held, now_ms)
            ],
        )

    broker.read(context, view, reply)
