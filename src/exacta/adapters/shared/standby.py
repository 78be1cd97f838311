"""When a follower may claim the lead: the present leader's session has ended, or nothing was heard of it for too long.

A suspicion costs a change of leader at worst. What is true is decided by the ledger, which lets one claim win.
"""

from collections.abc import Callable

from exacta.ports.journal import Failed
from exacta.ports.shared import Head, Ledger

SILENCE_SECONDS = 0.8
"""Four beats of a leader (`pulse`)."""
LEAST_POLLS = 4
"""So often the head must have been read without a sign of life: a follower that was paused itself heard nothing."""


class Standby:
    """Watch the present leader; every method is called on the event loop."""

    def __init__(self, ledger: Ledger, elapsed_seconds: Callable[[], float], wake: Callable[[], None]) -> None:
        """`wake` is called when the leader's session has ended."""
        self._ledger = ledger
        self._elapsed_seconds = elapsed_seconds
        self._wake = wake
        self._sign: object = None
        self._since = 0.0
        self._polls = 0
        self._awaited: int | None = None
        """The epoch whose end is awaited; None: no call waits."""
        self._ended: int | None = None
        """The epoch whose leader's session has ended."""
        self.is_wanted = False
        """True if this broker wants the lead."""

    def hear(self, head: Head, end: int) -> None:
        """Take in a head that was read just now, and where the tail ends."""
        sign = (head.epoch, head.beat, end)
        if sign != self._sign:
            self._sign, self._since, self._polls = sign, self._elapsed_seconds(), 0
        else:
            self._polls += 1
        if self.is_wanted and self._awaited is None:
            self._awaited = head.epoch
            self._ledger.await_lead(lambda failed: self._told(head.epoch, failed))

    def _told(self, epoch: int, failed: Failed | None) -> None:
        self._awaited = None
        if failed is None:
            self._ended = epoch
            self._wake()

    def may_claim(self, head: Head) -> bool:
        """Say whether the leader of this head, which was heard, is gone as far as anyone can tell."""
        if self._ended == head.epoch:
            return True
        return self._polls >= LEAST_POLLS and self._elapsed_seconds() - self._since >= SILENCE_SECONDS

    def tried(self) -> None:
        """Begin to watch again: a claim has failed."""
        self._sign = self._ended = None
