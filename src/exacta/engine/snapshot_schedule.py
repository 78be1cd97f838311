"""The schedule of snapshots: one is made when the journal wants it, and not too often.

Owns the interval between two snapshots. Owns neither what a snapshot is (`core.snapshot`) nor where it is made: the
journal begins a process for each, which keeps a core busy for some tenths of a second. Writers that fill a segment
within a second pay for that.
"""

from collections.abc import Callable

from exacta.core.snapshot import fold
from exacta.engine.deadlines import Deadlines
from exacta.ports.journal import Failed, JournalSnapshots

FOLD_EVERY_MS = 5_000
"""The shortest time between the begins of two snapshots.

A replay may find so much more work than the journal would like.
"""


class SnapshotSchedule:
    """Asks for snapshots. It looks when it is told to, when one has been made, and when an interval is over."""

    def __init__(
        self,
        journal: JournalSnapshots,
        deadlines: Deadlines,
        clock: Callable[[], int],
        saved: Callable[[], None],
        *,
        every_ms: int,
    ) -> None:
        """Begin without a snapshot under way; `saved` is called once one is there."""
        self._journal = journal
        self._deadlines = deadlines
        self._clock = clock
        self._saved = saved
        self._every_ms = every_ms
        self._not_before_ms = 0
        self._will_look = False
        self._has_stopped = False

    def stop(self) -> None:
        """Ask for no snapshot any more: the engine stops."""
        self._has_stopped = True

    def look(self) -> None:
        """Let a snapshot be made if the journal wants one, now or when it is time."""
        if not self._journal.wants_snapshot or self._has_stopped or self._will_look:
            return
        now_ms = self._clock()
        if now_ms < self._not_before_ms:
            self._will_look = True
            self._deadlines.add(self._not_before_ms, self._look_again)
            return
        self._not_before_ms = now_ms + self._every_ms
        self._journal.fold_snapshot(fold, self._folded)

    def _look_again(self) -> None:
        self._will_look = False
        self.look()

    def _folded(self, failed: Failed | None) -> None:
        if failed is not None:
            return  # the journal still wants one, and the next look tries again: with the next append, or cleaning
        self._saved()
        self.look()  # for what has come meanwhile; perhaps nothing else does
