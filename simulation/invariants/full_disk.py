"""Invariant 13, the part of the rules: a full disk refuses what decision 0051 says, and nothing else.

Owns a second opinion: what goes on, and what is refused, is named here once more, by what clients were promised.
"""

from collections.abc import Iterator

from exacta.core import commands as c
from exacta.core.command import Command
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.state.disk_room import DiskRoom

ASKS_AGAIN = (
    c.CreateTopic,
    c.CreatePartitions,
    c.TakePartition,
    c.InitProducerId,
    c.BeginTransaction,
    c.JoinTransaction,
    c.AddPartitions,
    c.AddGroup,
    c.CommitOffsets,
    c.CommitTransactionalOffsets,
    c.Acknowledge,
    c.AcknowledgeSoon,
    c.Subscribe,
    c.Seek,
)
"""The commands whose clients are told to ask again where the reserve is used up: what is new, and progress."""


def refusals_are_those_of_a_full_disk(room: DiskRoom | None, command: Command, outcome: Outcome) -> Iterator[str]:
    """Yield what a decision has refused, or taken, against the table; `room` is as it was before it."""
    name = type(command).__name__
    writes = any(event.durable for event in outcome.events)
    has_room = not isinstance(command, c.AppendBatch) or room is None or command.size <= room.append_bytes
    if outcome.reply is Rejection.DISK_FULL and has_room:
        yield f"13: {name} is refused for want of room, and there is {room}"
    elif outcome.reply is Rejection.RESERVE_USED_UP and (room is None or not room.is_used_up):
        yield f"13: {name} is refused as if the reserve was used up, and there is {room}"
    elif outcome.reply is Rejection.RESERVE_USED_UP and not isinstance(command, ASKS_AGAIN):
        yield f"13: {name} is refused on a full disk, and it ends, frees or keeps something"
    elif writes and not has_room:
        yield f"13: {name} of {command} is taken, and there is {room}"
    elif writes and isinstance(command, ASKS_AGAIN) and room is not None and room.is_used_up:
        yield f"13: {name} is taken out of what is left for ends and deletions"
