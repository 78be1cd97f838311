"""Whether the disk syncs so quickly that the event loop may wait for it.

To hand a sync to a thread, and to hear from it, takes about half as long as a quick sync itself. To wait for a slow one
would keep everybody waiting. What a disk did last is the best guess at what it will do next.
"""

QUICK_SECONDS = 0.001
QUICK_SYNCS = 16
"""So many in a row; after a slow one it takes as many again."""


class Pace:
    """Counts quick syncs, one after the other. Used by one thread at a time."""

    def __init__(self) -> None:
        self._quick_syncs = 0

    @property
    def is_quick(self) -> bool:
        """Whether all of the last `QUICK_SYNCS` syncs were quick."""
        return self._quick_syncs >= QUICK_SYNCS

    def took(self, seconds: float) -> None:
        """Take note of a sync."""
        self._quick_syncs = self._quick_syncs + 1 if seconds < QUICK_SECONDS else 0
