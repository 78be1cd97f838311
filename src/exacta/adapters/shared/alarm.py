"""A sleep between two rounds, which a hint ends."""

from collections.abc import Callable

from exacta.adapters.shared.steps import Step
from exacta.ports.scheduler import Scheduler, TimerHandle


class Alarm:
    """Sleep for a while, or until somebody rings."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_due = False
        self._sleeper: Callable[[None], None] | None = None
        self._timer: TimerHandle | None = None

    def ring(self) -> None:
        """End the sleep, or the next one at once."""
        self._is_due = True
        if self._sleeper is not None and self._timer is not None:
            self._timer.cancel()
            self._timer = self._scheduler.call_later(0, self._wake)

    def sleep(self, seconds: float) -> Step[None]:
        """Sleep, so long at most."""

        def start(done: Callable[[None], None]) -> None:
            self._sleeper = done
            self._timer = self._scheduler.call_later(0 if self._is_due else seconds, self._wake)

        return Step(start)

    def _wake(self) -> None:
        sleeper, self._sleeper, self._timer, self._is_due = self._sleeper, None, None, False
        assert sleeper is not None
        sleeper(None)

    def stop(self) -> None:
        """Wake nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
