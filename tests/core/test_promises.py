"""What answers promise: whatever promises less than the state may be answered early, so each such command is named."""

from exacta.core import commands
from exacta.core.commands import Command, JoinGroup, Parked, SyncGroup
from exacta.core.promises import Promise

LESS_THAN_STATE = {
    "AppendBatch": Promise.WRITE,
    "CommitTransactionalOffsets": Promise.WRITE,
    "AddPartitions": Promise.REGISTRATION,
    "AddGroup": Promise.REGISTRATION,
    "EndTransaction": Promise.END,
    "EndTransactions": Promise.END,
    "AbandonHandles": Promise.INSIDE,
    "AbortByMarker": Promise.END,
    "BeginTransaction": Promise.NEW_ID,
    "EndHandle": Promise.END,
    "Heartbeat": Promise.NOTHING,
    "Disconnect": Promise.INSIDE,
    "Permit": Promise.INSIDE,
    "Deliver": Promise.INSIDE,
    "Redeliver": Promise.INSIDE,
    "EndDelays": Promise.INSIDE,
    "RefuseAppends": Promise.INSIDE,
    "SetDiskRoom": Promise.INSIDE,
    "ForgetIdleSubscription": Promise.INSIDE,
    "Acknowledge": Promise.WRITE,
    "AcknowledgeSoon": Promise.SOON,
}


def all_commands() -> list[type[Command]]:
    bases = (Command, Parked)
    found = [value for value in vars(commands).values() if isinstance(value, type) and issubclass(value, Command)]
    return [command for command in found if command not in bases]


def test_every_other_answer_promises_the_state() -> None:
    promises = {command.__name__: command.promises for command in all_commands()}
    assert {name: promise for name, promise in promises.items() if promise is not Promise.STATE} == LESS_THAN_STATE
    assert len(promises) > len(LESS_THAN_STATE)


def test_only_joining_and_syncing_park_their_answers() -> None:
    assert [command for command in all_commands() if issubclass(command, Parked)] == [JoinGroup, SyncGroup]
