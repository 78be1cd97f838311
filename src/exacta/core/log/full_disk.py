"""The rule of what is refused on a disk that is full; `core/admission.py` says in which row each command stands.

| command | there is plenty | the disk is full | the reserve is used up, too |
|---|---|---|---|
| a batch | taken | taken while it fits into the room, then DISK_FULL | DISK_FULL |
| what makes something new, or moves progress | taken | taken | RESERVE_USED_UP |
| what ends, frees or forgets something, membership | taken | taken | taken |

Where a batch has found no room the engine says that there is none, until there is clearly more (`engine/disk_room.py`).

A command that would write nothing is answered as ever: a repeat is a repeat on a full disk, too. How much room there is
is the journal's to measure (decision 0051), and volatile: a start measures it again.
"""

from exacta.core import commands as c
from exacta.core.admission import ADMISSION, OnFullDisk
from exacta.core.command import Command
from exacta.core.events import DiskRoomSet
from exacta.core.log import closing
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.state.disk_room import DiskRoom
from exacta.core.state.state import State


def refusal(state: State, room: DiskRoom, command: Command, outcome: Outcome) -> Outcome | None:
    """Return the refusal of a command that would lead to this, on a disk with this room; None: it is not refused."""
    kind = ADMISSION[type(command)].on_full_disk
    if kind is OnFullDisk.ALWAYS or not any(event.durable for event in outcome.events):
        return None
    if isinstance(command, c.AppendBatch):
        return closing.refused(state, command, Rejection.DISK_FULL) if command.size > room.append_bytes else None
    return Outcome(reply=Rejection.RESERVE_USED_UP) if room.is_used_up else None


def set_room(state: State, command: c.SetDiskRoom, now_ms: int) -> Outcome:
    """Note how much room there is; do nothing where it is known."""
    if command.room == state.volatile.disk_room:
        return Outcome(reply=DONE)
    return Outcome(events=(DiskRoomSet(room=command.room),), reply=DONE)
