"""The table of what a lack of room refuses: for each command the tables of the state, and what a full disk does to it.

Owns the rows. `core/room.py` measures what a decision lets the tables grow by, and `core/log/full_disk.py` what the
disk has; both go by this. A command without a row cannot be decided.

A command that ends, leaves, deletes or forgets something is refused by neither: it makes room. Nor is one of a timer,
which nobody would send again, nor delivery, which waits by itself.
"""

from enum import Enum, auto

from msgspec import Struct

from exacta.core import commands as c
from exacta.core.command import Command
from exacta.core.values.usage import Table


class OnFullDisk(Enum):
    """The row of `full_disk`'s table that a command stands in."""

    BATCH = auto()
    PROGRESS = auto()
    """It makes something new, or moves progress: its client tries again, and finds room or none."""
    ALWAYS = auto()


class Admission(Struct, frozen=True):
    """The things that a command may need room for."""

    on_full_disk: OnFullDisk
    tables: tuple[Table, ...] = ()
    """The tables that it may let grow, and that refuse it where they are full; none: no table refuses it."""


_BATCH, _PROGRESS, _ALWAYS = OnFullDisk.BATCH, OnFullDisk.PROGRESS, OnFullDisk.ALWAYS
_NEVER = Admission(_ALWAYS)

ADMISSION: dict[type[Command], Admission] = {
    # --- new things, and progress ---
    c.AppendBatch: Admission(_BATCH, (Table.PRODUCERS, Table.WRITERS, Table.ABORTED, Table.STAGED, Table.TRANSACTIONS)),
    c.CreateTopic: Admission(_PROGRESS, (Table.TOPICS,)),
    c.CreatePartitions: Admission(_PROGRESS, (Table.TOPICS,)),
    c.TakePartition: Admission(_PROGRESS),
    c.InitProducerId: Admission(_PROGRESS, (Table.TRANSACTIONAL_IDS, Table.TRANSACTIONS)),
    c.BeginTransaction: Admission(_PROGRESS, (Table.TRANSACTIONS, Table.HANDLES)),
    c.JoinTransaction: Admission(_PROGRESS, (Table.TRANSACTIONS, Table.HANDLES)),
    c.AddPartitions: Admission(_PROGRESS, (Table.TRANSACTIONS,)),
    c.AddGroup: Admission(_PROGRESS, (Table.TRANSACTIONS,)),
    c.CommitOffsets: Admission(_PROGRESS, (Table.OFFSETS,)),
    c.CommitTransactionalOffsets: Admission(_PROGRESS, (Table.OFFSETS, Table.TRANSACTIONS)),
    c.Acknowledge: Admission(_PROGRESS, (Table.SUBSCRIPTIONS, Table.TRANSACTIONS)),
    c.AcknowledgeSoon: Admission(_PROGRESS, (Table.SUBSCRIPTIONS,)),
    c.Subscribe: Admission(_PROGRESS, (Table.SUBSCRIPTIONS,)),
    c.Seek: Admission(_PROGRESS),
    # --- settings: on a full disk they free space ---
    c.SetTopicConfigs: Admission(_ALWAYS, (Table.TOPICS,)),
    c.SetBrokerConfigs: Admission(_ALWAYS, (Table.TOPICS,)),
    # --- access: what takes a right away must be possible on a full disk ---
    c.CreateAcls: Admission(_ALWAYS, (Table.ACLS,)),
    c.AlterScramKeys: Admission(_ALWAYS, (Table.USERS,)),
    c.MakeFirstUser: Admission(_ALWAYS, (Table.ACLS, Table.USERS)),
    c.AlterClientQuotas: Admission(_ALWAYS, (Table.QUOTAS,)),
    c.DeleteAcls: _NEVER,
    # --- membership: a member that is refused may die of it, and writes little ---
    c.JoinGroup: Admission(_ALWAYS, (Table.MEMBERS,)),
    c.SyncGroup: Admission(_ALWAYS, (Table.MEMBERS,)),
    c.Heartbeat: Admission(_ALWAYS, (Table.MEMBERS,)),
    c.ConsumerHeartbeat: Admission(_ALWAYS, (Table.MEMBERS,)),
    c.TakeLead: _NEVER,  # a log without a leader can end nothing
    c.LeaveGroup: _NEVER,
    c.RevokeMemberships: _NEVER,
    # --- delivery, which writes nothing, or forgets ---
    c.Connect: Admission(_ALWAYS, (Table.DELIVERIES, Table.SUBSCRIPTIONS)),
    c.Disconnect: _NEVER,
    c.Permit: _NEVER,
    c.Deliver: _NEVER,
    c.Redeliver: _NEVER,
    c.EndDelays: _NEVER,
    # --- what frees space ---
    c.DeleteTopic: _NEVER,
    c.DeleteRecords: _NEVER,
    c.Trim: _NEVER,
    c.ForgetCompacted: _NEVER,
    c.Skip: _NEVER,
    c.Unsubscribe: _NEVER,
    c.ForgetIdleSubscription: _NEVER,
    c.DeleteGroup: _NEVER,
    c.DeleteOffsets: _NEVER,
    # --- ends of transactions: what is open holds space ---
    c.EndTransaction: _NEVER,
    c.EndTransactions: _NEVER,
    c.EndHandle: _NEVER,
    c.AbandonHandles: _NEVER,
    c.AbortByMarker: _NEVER,
    c.AbortAfterLoss: _NEVER,
    c.FenceAfterLoss: _NEVER,
    # --- the broker's own, which nobody would send again ---
    c.RefuseAppends: _NEVER,
    c.SetDiskRoom: _NEVER,
    c.ExpireConsumer: _NEVER,
    c.ExpireGroups: _NEVER,
    c.ExpireMember: _NEVER,
    c.ExpireProducers: _NEVER,
    c.ExpireRebalance: _NEVER,
    c.ExpireRevocation: _NEVER,
    c.ExpireTransaction: _NEVER,
    c.ExpireTransactionalIds: _NEVER,
}
