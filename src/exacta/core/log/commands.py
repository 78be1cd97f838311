"""The command by which the engine says how much room the disk has."""

from typing import ClassVar

from exacta.core.command import Command
from exacta.core.promises import Promise
from exacta.core.state.disk_room import DiskRoom


class SetDiskRoom(Command, frozen=True, kw_only=True):
    """Go by this room on the disk from now on; None: there is plenty."""

    promises: ClassVar[Promise] = Promise.NOTHING

    room: DiskRoom | None
