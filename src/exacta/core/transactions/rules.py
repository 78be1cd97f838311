"""The commands of producers and transactions, and what decides each; `core/decide.py` has the table of all."""

from collections.abc import Callable
from typing import Any

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
from exacta.core.outcome import Outcome
from exacta.core.state.state import State
from exacta.core.transactions import binding, expiry, handle, joining, loss, marker, transaction, transaction_set

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
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
