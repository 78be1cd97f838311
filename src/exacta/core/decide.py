"""The one door to the rules: which function decides which command. Pure and total."""

from collections.abc import Callable
from typing import Any

from exacta.core.commands import (
    AbortAfterLoss,
    AbortByMarker,
    AddGroup,
    AddPartitions,
    AppendBatch,
    BeginTransaction,
    Command,
    CommitOffsets,
    CommitTransactionalOffsets,
    ConsumerHeartbeat,
    CreatePartitions,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DeleteRecords,
    DeleteTopic,
    EndHandle,
    EndTransaction,
    EndTransactions,
    ExpireConsumer,
    ExpireMember,
    ExpireProducers,
    ExpireRebalance,
    ExpireRevocation,
    ExpireTransaction,
    ExpireTransactionalIds,
    FenceAfterLoss,
    ForgetAborted,
    Heartbeat,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    SetTopicConfigs,
    SyncGroup,
)
from exacta.core.groups import deletion as group_deletion
from exacta.core.groups import offsets
from exacta.core.groups.classic import belonging, joining, leaving
from exacta.core.groups.consumer import heartbeat as consumer_heartbeat
from exacta.core.groups.consumer import leaving as consumer_leaving
from exacta.core.log import append, log_start, topics
from exacta.core.outcome import Outcome
from exacta.core.state.state import State
from exacta.core.transactions import binding, expiry, handle, loss, marker, transaction, transaction_set


def decide(state: State, command: Command, now_ms: int) -> Outcome:
    """Return what the command leads to; changes nothing."""
    return _DECIDE[type(command)](state, command, now_ms)


_DECIDE: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    CreateTopic: topics.create,
    DeleteTopic: topics.delete,
    CreatePartitions: topics.create_partitions,
    DeleteRecords: log_start.delete_records,
    ForgetAborted: log_start.forget_aborted,
    SetTopicConfigs: topics.set_configs,
    InitProducerId: binding.init_producer_id,
    AppendBatch: append.append_batch,
    AddPartitions: transaction.add_partitions,
    AddGroup: transaction.add_group,
    EndTransaction: transaction.end,
    EndTransactions: transaction_set.end_all,
    BeginTransaction: handle.begin,
    EndHandle: handle.end,
    AbortByMarker: marker.abort_by_marker,
    FenceAfterLoss: loss.fence_after_loss,
    AbortAfterLoss: loss.abort_after_loss,
    ExpireTransaction: expiry.expire_transaction,
    ExpireTransactionalIds: expiry.expire_transactional_ids,
    ExpireProducers: expiry.expire_producers,
    CommitOffsets: offsets.commit_offsets,
    CommitTransactionalOffsets: offsets.commit_transactional_offsets,
    DeleteGroup: group_deletion.delete,
    DeleteOffsets: group_deletion.delete_offsets,
    JoinGroup: joining.join,
    SyncGroup: belonging.sync,
    Heartbeat: belonging.heartbeat,
    LeaveGroup: leaving.leave,
    ExpireMember: leaving.expire_member,
    ExpireRebalance: leaving.expire_rebalance,
    ConsumerHeartbeat: consumer_heartbeat.heartbeat,
    ExpireConsumer: consumer_leaving.expire_member,
    ExpireRevocation: consumer_leaving.expire_revocation,
}
