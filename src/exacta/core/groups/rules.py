"""The commands of offsets and groups, and what decides each; `core/decide.py` has the table of all commands."""

from collections.abc import Callable
from typing import Any

from exacta.core.commands import (
    Command,
    CommitOffsets,
    CommitTransactionalOffsets,
    ConsumerHeartbeat,
    DeleteGroup,
    DeleteOffsets,
    ExpireConsumer,
    ExpireGroups,
    ExpireMember,
    ExpireRebalance,
    ExpireRevocation,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from exacta.core.groups import deletion as group_deletion
from exacta.core.groups import expiry, offsets
from exacta.core.groups.classic import belonging, joining, leaving
from exacta.core.groups.consumer import heartbeat as consumer_heartbeat
from exacta.core.groups.consumer import leaving as consumer_leaving
from exacta.core.outcome import Outcome
from exacta.core.state.state import State

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    CommitOffsets: offsets.commit_offsets,
    CommitTransactionalOffsets: offsets.commit_transactional_offsets,
    DeleteGroup: group_deletion.delete,
    ExpireGroups: expiry.expire_groups,
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
