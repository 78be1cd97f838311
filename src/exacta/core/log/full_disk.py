"""The rule of what is refused on a disk that is full, for every command.

| command | there is plenty | the disk is full | the reserve is used up, too |
|---|---|---|---|
| a batch | taken | taken while it fits into the room, then DISK_FULL | DISK_FULL |
| what makes something new, or moves progress | taken | taken | RESERVE_USED_UP |
| what ends, frees or forgets something, membership | taken | taken | taken |

A command that would write nothing is answered as ever: a repeat is a repeat on a full disk, too. How much room there is
is the journal's to measure (decision 0051), and volatile: a start measures it anew.
"""

from enum import Enum, auto

from exacta.core import commands as c
from exacta.core.command import Command
from exacta.core.events import DiskRoomSet
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.disk_room import DiskRoom
from exacta.core.state.state import State


class Class(Enum):
    """The row of the table that a command stands in."""

    BATCH = auto()
    PROGRESS = auto()
    ALWAYS = auto()


CLASSES: dict[type[Command], Class] = {
    c.AppendBatch: Class.BATCH,
    # new things, and progress: their clients try again, and find room or none
    c.CreateTopic: Class.PROGRESS,
    c.CreatePartitions: Class.PROGRESS,
    c.TakeLead: Class.PROGRESS,
    c.TakePartition: Class.PROGRESS,
    c.InitProducerId: Class.PROGRESS,
    c.BeginTransaction: Class.PROGRESS,
    c.JoinTransaction: Class.PROGRESS,
    c.AddPartitions: Class.PROGRESS,
    c.AddGroup: Class.PROGRESS,
    c.CommitOffsets: Class.PROGRESS,
    c.CommitTransactionalOffsets: Class.PROGRESS,
    c.Acknowledge: Class.PROGRESS,
    c.AcknowledgeSoon: Class.PROGRESS,
    c.Subscribe: Class.PROGRESS,
    c.Seek: Class.PROGRESS,
    # what frees space, and the settings that do
    c.DeleteTopic: Class.ALWAYS,
    c.DeleteRecords: Class.ALWAYS,
    c.Trim: Class.ALWAYS,
    c.ForgetCompacted: Class.ALWAYS,
    c.SetTopicConfigs: Class.ALWAYS,
    c.SetBrokerConfigs: Class.ALWAYS,
    c.Skip: Class.ALWAYS,
    c.Unsubscribe: Class.ALWAYS,
    c.ForgetIdleSubscription: Class.ALWAYS,
    c.DeleteGroup: Class.ALWAYS,
    c.DeleteOffsets: Class.ALWAYS,
    c.RefuseAppends: Class.ALWAYS,
    c.SetDiskRoom: Class.ALWAYS,
    # ends of transactions: what is open holds space
    c.EndTransaction: Class.ALWAYS,
    c.EndTransactions: Class.ALWAYS,
    c.EndHandle: Class.ALWAYS,
    c.AbandonHandles: Class.ALWAYS,
    c.AbortByMarker: Class.ALWAYS,
    c.AbortAfterLoss: Class.ALWAYS,
    c.FenceAfterLoss: Class.ALWAYS,
    # the engine's own timers, which nobody would send again
    c.ExpireConsumer: Class.ALWAYS,
    c.ExpireGroups: Class.ALWAYS,
    c.ExpireMember: Class.ALWAYS,
    c.ExpireProducers: Class.ALWAYS,
    c.ExpireRebalance: Class.ALWAYS,
    c.ExpireRevocation: Class.ALWAYS,
    c.ExpireTransaction: Class.ALWAYS,
    c.ExpireTransactionalIds: Class.ALWAYS,
    # membership: a member that is refused may die of it, and writes little
    c.JoinGroup: Class.ALWAYS,
    c.SyncGroup: Class.ALWAYS,
    c.Heartbeat: Class.ALWAYS,
    c.LeaveGroup: Class.ALWAYS,
    c.ConsumerHeartbeat: Class.ALWAYS,
    # delivery, which writes nothing, or forgets
    c.Connect: Class.ALWAYS,
    c.Disconnect: Class.ALWAYS,
    c.Permit: Class.ALWAYS,
    c.Deliver: Class.ALWAYS,
    c.Redeliver: Class.ALWAYS,
    c.EndDelays: Class.ALWAYS,
}


def refusal(room: DiskRoom, command: Command, outcome: Outcome) -> Rejection | None:
    """Return why a command that would lead to this is refused on a disk with this room; None: it is not."""
    kind = CLASSES[type(command)]
    if kind is Class.ALWAYS or not any(event.durable for event in outcome.events):
        return None
    if isinstance(command, c.AppendBatch):
        return Rejection.DISK_FULL if command.size > room.append_bytes else None
    return Rejection.RESERVE_USED_UP if room.is_used_up else None


def set_room(state: State, command: c.SetDiskRoom, now_ms: int) -> Outcome:
    """Note how much room there is; do nothing where it is known."""
    if command.room == state.volatile.disk_room:
        return Outcome(reply=DONE)
    return Outcome(events=(DiskRoomSet(room=command.room),), reply=DONE)
