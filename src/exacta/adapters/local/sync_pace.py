"""Pace of syncs: tells whether the disk syncs so quickly that the event loop may wait for it.

It takes about half as long as a quick sync to hand it to a thread and to hear from that. A slow sync would keep all
clients waiting. The last syncs of a disk are the best guess at its next one.
"""

QUICK_SECONDS = 0.001
QUICK_SYNCS = 16
"""The disk is quick after this many quick syncs in a row; after a slow one it takes as many again."""


class Pace:
    """Count quick syncs in a row; used by one thread at a time."""

    def __init__(self) -> None:
        self._quick_syncs = 0

    @property
    def is_quick(self) -> bool:
        """True if all of the last `QUICK_SYNCS` syncs were quick."""
        return self._quick_syncs >= QUICK_SYNCS

    def took(self, seconds: float) -> None:
        """Note the time of a sync."""
        self._quick_syncs = self._quick_syncs + 1 if seconds < QUICK_SECONDS else 0
