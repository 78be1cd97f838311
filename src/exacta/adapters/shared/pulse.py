"""The pulse of a leader: it tells the others that it lives, what is durable, and that there is more to read."""

from collections.abc import Callable

from exacta.ports.journal import Failed
from exacta.ports.scheduler import Scheduler, TimerHandle
from exacta.ports.shared import Appended, Head, Ledger, Superseded

BEAT_SECONDS = 0.2
QUIET_SECONDS = 0.01
"""A follower shows the last group once it is told that the group is durable: by the next one, or by a beat so soon."""
HINT_SECONDS = 0.005
"""A hint costs the database more than an append, so that followers get one for many."""
MOST_UNHEARD = 5
"""A leader that has heard nothing of the ledger for this many beats gives up: others take it for dead by then."""


class Pulse:
    """Beat for a leader from now on, until `stop`; every method is called on the event loop.

    `lost` is called once, when the lead is lost, or nobody can tell.
    """

    def __init__(
        self, ledger: Ledger, scheduler: Scheduler, epoch: int, durable: int, lost: Callable[[Failed], None]
    ) -> None:
        self.lost = lost
        self._ledger = ledger
        self._scheduler = scheduler
        self._epoch = epoch
        self._durable = durable
        self._told = -1
        """The position up to which the others have been told that all is durable."""
        self._appends = 0
        self._appends_before = 0
        self._unheard = 0
        self._is_asking = False
        self._is_stopped = False
        self._hint_timer: TimerHandle | None = None
        self._wants_hint = False
        self._timer = scheduler.call_later(0, self._beat)

    def reach(self, position: int) -> None:
        """Tell the others from now on that all up to here is durable."""
        self._durable = max(self._durable, position)

    # --- appends ------------------------------------------------------------------------------------------------------

    def appended(self, position: int) -> None:
        """Tell the others of a group that is durable, and ends here."""
        if self._is_stopped:
            return
        self._appends += 1
        self._unheard = 0
        self._told = self._durable
        self._durable = position
        self._hint()
        if self._appends == self._appends_before + 1:
            self._wait(QUIET_SECONDS)

    def _hint(self) -> None:
        self._wants_hint = self._hint_timer is not None
        if self._hint_timer is None:
            self._ledger.hint()
            self._hint_timer = self._scheduler.call_later(HINT_SECONDS, self._end_of_hint)

    def _end_of_hint(self) -> None:
        self._hint_timer = None
        if self._wants_hint:
            self._hint()

    # --- beats --------------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        self._timer.cancel()
        self._timer = self._scheduler.call_later(seconds, self._beat)

    def _beat(self) -> None:
        if self._appends != self._appends_before:
            self._appends_before = self._appends
            self._wait(QUIET_SECONDS)
            return
        self._wait(BEAT_SECONDS)
        self._unheard += 1
        if self._unheard > MOST_UNHEARD:
            self._lose(Failed("the ledger has not answered for a second"))
        elif self._is_asking:
            self._ledger.read_head(self._read)  # an answer that takes long is no sign of a ledger that is cut off
        else:
            self._is_asking = True
            durable = self._durable
            self._ledger.beat(self._epoch, durable, lambda result: self._beaten(durable, result))

    def _beaten(self, durable: int, result: Appended | Superseded | Failed) -> None:
        self._is_asking = False
        if isinstance(result, Superseded):
            self._lose(superseded(result))
        elif isinstance(result, Failed):
            self._lose(result)  # its session is lost, and the lead with it; the database may be another
        else:
            self._unheard = 0
            if durable > self._told and not self._is_stopped:
                self._told = durable
                self._hint()

    def _read(self, head: Head | Failed) -> None:
        if isinstance(head, Failed):
            self._lose(head)
            return
        self._unheard = 0
        if head.epoch > self._epoch:
            self._lose(superseded(Superseded(head.epoch)))

    def _lose(self, failure: Failed) -> None:
        if not self._is_stopped:
            self.stop()
            self.lost(failure)

    def stop(self) -> None:
        """Beat and hint no more."""
        self._is_stopped = True
        self._wants_hint = False
        self._timer.cancel()
        if self._hint_timer is not None:
            self._hint_timer.cancel()


def superseded(result: Superseded) -> Failed:
    """Say that another broker leads."""
    return Failed(f"another broker leads, in epoch {result.epoch}")
