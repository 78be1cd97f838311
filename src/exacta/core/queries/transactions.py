"""Transactional ids and transactions: lists, and what is told of those that are named (KIP-664)."""

from collections.abc import Iterable

from exacta.core.ids import TransactionId
from exacta.core.state.state import State
from exacta.core.transactions import description
from exacta.core.transactions.description import ListedTransaction
from exacta.readmodel.transactions import Explanation


def transaction_names(state: State, now_ms: int) -> list[str | TransactionId]:
    """See `description.transaction_names`."""
    return description.transaction_names(state)


def listed_transaction(state: State, now_ms: int, name: str | TransactionId) -> ListedTransaction | None:
    """See `description.list_transaction`."""
    return description.list_transaction(state, name)


def explained(state: State, now_ms: int, name: str | TransactionId) -> Explanation:
    """Explain a transactional id, or a handle or joint transaction by its id; without one the state is empty."""
    if isinstance(name, str):
        return description.explain_transaction(state, name)
    return description.explain_handle(state, name)


def all_explained(state: State, now_ms: int, names: Iterable[str]) -> list[Explanation]:
    """Explain transactional ids."""
    return [description.explain_transaction(state, name) for name in names]


def explained_while_open(state: State, now_ms: int, transaction_id: TransactionId) -> Explanation | None:
    """Explain a transaction; None if it is not open any more."""
    return description.explain_open_transaction(state, transaction_id)
