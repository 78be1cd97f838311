"""The commands of topics and logs, and what decides each; `core/decide.py` has the table of all commands."""

from collections.abc import Callable
from typing import Any

from exacta.core.commands import (
    AppendBatch,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    ForgetCompacted,
    RefuseAppends,
    SetBrokerConfigs,
    SetDiskRoom,
    SetTopicConfigs,
    TakeLead,
    TakePartition,
    Trim,
)
from exacta.core.log import append, broker_configs, exclusive, full_disk, keeping, leading, log_start, topics
from exacta.core.outcome import Outcome
from exacta.core.state.state import State

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    CreateTopic: topics.create,
    DeleteTopic: topics.delete,
    CreatePartitions: topics.create_partitions,
    DeleteRecords: log_start.delete_records,
    Trim: keeping.trim,
    RefuseAppends: keeping.refuse_appends,
    ForgetCompacted: log_start.forget_compacted,
    SetTopicConfigs: topics.set_configs,
    SetBrokerConfigs: broker_configs.set_configs,
    SetDiskRoom: full_disk.set_room,
    AppendBatch: append.append_batch,
    TakeLead: leading.take_lead,
    TakePartition: exclusive.take_partition,
}
