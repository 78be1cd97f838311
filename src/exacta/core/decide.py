"""The one door to the rules: which function decides which command. Pure and total."""

from collections.abc import Callable
from typing import Any

from exacta.core import append, group, group_deletion, offsets, topics, transaction, transaction_set
from exacta.core.commands import (
    AddGroup,
    AddPartitions,
    AppendBatch,
    Command,
    CommitOffsets,
    CommitTransactionalOffsets,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopic,
    EndTransaction,
    EndTransactions,
    ExpireMember,
    ExpireRebalance,
    ExpireTransaction,
    Heartbeat,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from exacta.core.outcome import Outcome, Timer
from exacta.core.state import Phase, State


def decide(state: State, command: Command, now_ms: int) -> Outcome:
    """Return what the command leads to; changes nothing."""
    return _DECIDE[type(command)](state, command, now_ms)


def timers_after_recovery(state: State) -> list[Timer]:
    """Return the timers that open transactions need; those of members died with the membership."""
    return [
        transaction.expiry(held, held.deadline_ms)
        for held in state.transactionals.values()
        if held.phase is Phase.ONGOING
    ]


_DECIDE: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    CreateTopic: topics.create,
    DeleteTopic: topics.delete,
    InitProducerId: transaction.init_producer_id,
    AppendBatch: append.append_batch,
    AddPartitions: transaction.add_partitions,
    AddGroup: transaction.add_group,
    EndTransaction: transaction.end,
    EndTransactions: transaction_set.end_all,
    ExpireTransaction: transaction.expire,
    CommitOffsets: offsets.commit_offsets,
    CommitTransactionalOffsets: offsets.commit_transactional_offsets,
    DeleteGroup: group_deletion.delete,
    DeleteOffsets: group_deletion.delete_offsets,
    JoinGroup: group.join,
    SyncGroup: group.sync,
    Heartbeat: group.heartbeat,
    LeaveGroup: group.leave,
    ExpireMember: group.expire_member,
    ExpireRebalance: group.expire_rebalance,
}
