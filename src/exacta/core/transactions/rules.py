"""The commands of producers and transactions, and what decides each; `core/decide.py` has the table of all."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from exacta.core.commands import (
    AbandonHandles,
    AbortAfterLoss,
    AbortByMarker,
    AddGroup,
    AddPartitions,
    BeginTransaction,
    Command,
    EndHandle,
    EndTransaction,
    EndTransactions,
    ExpireProducers,
    ExpireTransaction,
    ExpireTransactionalIds,
    FenceAfterLoss,
    InitProducerId,
    JoinTransaction,
)
from exacta.core.events import Event, TransactionEnded
from exacta.core.outcome import Outcome
from exacta.core.state.state import State
from exacta.core.subscriptions.progress import closed_by_abort
from exacta.core.subscriptions.subscribing import Notices, closed
from exacta.core.transactions import binding, expiry, handle, joining, loss, marker, transaction, transaction_set

Rule = Callable[[State, Any, int], Outcome]


def _closing(rule: Rule) -> Rule:
    """Let consumers be told that an abort disconnects them, whatever it is that aborts."""

    def closing(state: State, command: Command, now_ms: int) -> Outcome:
        outcome = rule(state, command, now_ms)
        notices = told_of_aborts(state, outcome.events)
        return replace(outcome, notices=(*outcome.notices, *notices)) if notices else outcome

    return closing


def told_of_aborts(state: State, events: Iterable[Event]) -> Notices:
    """Return what consumers are told of the aborts among these events, which are not applied yet."""
    aborted = (each for each in events if isinstance(each, TransactionEnded) and not each.committed)
    found = (state.transactions.get(each.transaction_id) for each in aborted)
    return tuple(
        notice
        for transaction in found
        if transaction is not None
        for key in sorted(transaction.subscriptions)
        for notice in closed(closed_by_abort(state, key, transaction.transaction_id))
    )


_DECIDED_BY: dict[type[Command], Rule] = {
    InitProducerId: binding.init_producer_id,
    AddPartitions: transaction.add_partitions,
    AddGroup: transaction.add_group,
    EndTransaction: transaction.end,
    EndTransactions: transaction_set.end_all,
    BeginTransaction: handle.begin,
    JoinTransaction: joining.join,
    EndHandle: handle.end,
    AbandonHandles: handle.abandon,
    AbortByMarker: marker.abort_by_marker,
    FenceAfterLoss: loss.fence_after_loss,
    AbortAfterLoss: loss.abort_after_loss,
    ExpireTransaction: expiry.expire_transaction,
    ExpireTransactionalIds: expiry.expire_transactional_ids,
    ExpireProducers: expiry.expire_producers,
}
RULES: dict[type[Command], Rule] = {command: _closing(rule) for command, rule in _DECIDED_BY.items()}
