"""Which answers wait until the state they were taken from is durable: DESIGN D4's table, with decision 0016.

Events of commands that do not wait are written all the same, with the next group that somebody waits for.

Two kinds wait only until they are written, and not for the sync, so that a process that dies forgets nothing, though a
machine that stops may: the begin of a transaction (`WRITTEN`, decision 0002), since only the write that follows can
rest on it; and, which the command alone cannot tell, a write into an open transaction whose begin is durable by then,
or need not be (`Outcome.within`, decisions 0016 and 0022).
"""

from exacta.core.commands import (
    AbortAfterLoss,
    AbortByMarker,
    AddGroup,
    AddPartitions,
    AppendBatch,
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

WAITS: dict[type[Command], bool] = {
    # promises the data
    AppendBatch: True,
    CommitOffsets: True,
    CommitTransactionalOffsets: True,
    # promises the epoch, and the fence
    InitProducerId: True,
    # promises the outcome
    EndTransaction: True,
    EndTransactions: True,
    AbortByMarker: True,
    FenceAfterLoss: True,
    AbortAfterLoss: True,
    ExpireTransaction: True,
    ExpireTransactionalIds: True,
    ExpireProducers: True,
    # promises existence
    CreateTopic: True,
    DeleteTopic: True,
    DeleteRecords: True,
    ForgetAborted: True,
    CreatePartitions: True,
    SetTopicConfigs: True,
    DeleteGroup: True,
    DeleteOffsets: True,
    # promises that what a member is told of its group outlives a restart (decision 0025), and that no epoch or
    # generation is given out again (0012): where neither changes there is nothing to write
    JoinGroup: True,
    SyncGroup: True,
    LeaveGroup: True,
    ExpireMember: True,
    ExpireRebalance: True,
    ConsumerHeartbeat: True,
    ExpireConsumer: True,
    ExpireRevocation: True,
    # promises only that the next request is accepted, which makes up for it if this one is forgotten; see `WRITTEN`
    AddPartitions: False,
    AddGroup: False,
    # promises nothing: a session begins anew after a restart
    Heartbeat: False,
}

WRITTEN = (AddPartitions, AddGroup)
"""What a client may not forget that it has begun, or it could be told that it aborts what the one before committed."""
