"""The watch over the room on the disk: it tells the core how much there is, and the operator when it is full.

Owns when the journal is asked. Owns neither how room is measured, nor the reserve (`JournalSpace`), nor what is refused
(`exacta.core.log.full_disk`).

Theory of operation. The journal measures after each group, and says nothing while there is plenty. Otherwise the core
is told after each group that is durable, less what gathers meanwhile; batches that are appended until then count
themselves. Where nothing is written, because all is refused, the journal is asked at intervals, or nobody would hear of
the room that a deletion, or somebody else, has made.

Once a batch has found no room, none is taken until there is clearly more, and enough for that one. Otherwise a smaller
batch of the same producer, which was sent behind it, would fit, and overtake it.

A journal frees no segment that is still written to. So it begins another when the disk is full: what is deleted from
then on can be freed.
"""

import logging
from collections.abc import Callable, Sequence

from exacta.core.commands import Command, SetDiskRoom
from exacta.core.state.disk_room import DiskRoom
from exacta.core.state.state import State
from exacta.engine.deadlines import Deadlines
from exacta.ports.journal import Journal, Room
from exacta.ports.log import DiskLevel

INTERVAL_MS = 1_000
FULL_BELOW_BYTES = 1 << 20
"""The disk is called full where the largest batch of a default client (message.max.bytes) does not fit."""

logger = logging.getLogger("exacta.server")


class RoomWatch:
    """Watches the room of one journal."""

    def __init__(
        self,
        state: State,
        journal: Journal,
        deadlines: Deadlines,
        *,
        submit: Callable[[Sequence[Command]], object],
        gathering_bytes: Callable[[], int],
    ) -> None:
        """`gathering_bytes` returns the bytes of the batches that are decided, and that the journal has not got yet."""
        self._state = state
        self._journal = journal
        self._deadlines = deadlines
        self._submit = submit
        self._gathering_bytes = gathering_bytes
        self.level = DiskLevel.HAS_ROOM
        """The level that the log told of last."""
        self._refused_bytes = 0
        """The size of the largest batch that was refused since there was clearly room; 0: none was."""
        self._has_stopped = False

    def start(self) -> None:
        """Look at once, and at intervals, where the journal watches its disk."""
        if self._journal.watches_room:
            self.look()
            self._deadlines.after(INTERVAL_MS, self._measure)

    def stop(self) -> None:
        """Ask for nothing any more: the engine stops."""
        self._has_stopped = True

    def refused(self, size: int) -> None:
        """Take no batch any more until there is clearly room, and for this one, too: it was refused.

        That there is room by now does not count before the next look, after a sync or an interval: later batches of its
        client may be here already, and would overtake it.
        """
        self._refused_bytes = max(size, self._refused_bytes)
        self._say()

    def look(self) -> None:
        """Tell the core what the journal has measured, if there is anything to tell."""
        measured = self._journal.room
        if measured is not None and not measured.is_low and self._left(measured) >= self._refused_bytes:
            self._refused_bytes = 0
        self._say()

    def _left(self, measured: Room) -> int:
        return measured.append_bytes - self._gathering_bytes()

    def _say(self) -> None:
        measured = self._journal.room
        if measured is None and self._state.volatile.disk_room is None:
            return
        room = None
        if measured is None:
            self._refused_bytes = 0
        else:
            left = 0 if self._refused_bytes else max(0, self._left(measured))
            room = DiskRoom(append_bytes=left, is_used_up=measured.is_used_up)
        self._tell(room)
        self._submit((SetDiskRoom(room=room),))

    def _measure(self) -> None:
        if not self._has_stopped:
            self._journal.measure_room(self._measured)

    def _measured(self) -> None:
        if not self._has_stopped:
            self.look()
            self._deadlines.after(INTERVAL_MS, self._measure)

    def _tell(self, room: DiskRoom | None) -> None:
        full_below = FULL_BELOW_BYTES if self.level is DiskLevel.HAS_ROOM else 2 * FULL_BELOW_BYTES
        if room is None or room.append_bytes >= full_below:
            now = DiskLevel.HAS_ROOM
        else:
            now = DiskLevel.USED_UP if room.is_used_up else DiskLevel.FULL
        if now is self.level:
            return
        if now is DiskLevel.HAS_ROOM:
            logger.info("the disk has room again: records are taken")
        elif now is DiskLevel.FULL:
            if self.level is DiskLevel.HAS_ROOM:
                self._journal.seal()
            logger.error(
                "the disk is full: no records are taken any more. Commits, acknowledgements and deletions go on out of "
                "the reserve. Make room on the file system, or delete topics or records"
            )
        else:
            logger.error(
                "the disk is full, and its reserve is used up: commits and acknowledgements are refused, too. Ends of "
                "transactions and deletions go on. Make room on the file system, or delete topics or records"
            )
        self.level = now
