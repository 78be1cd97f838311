"""A process that can be killed or paused between any two callbacks, and killed at any call to the disk.

Owns what makes killing it the same as kill -9: whatever it has scheduled is not run, whatever it is doing ends where it
is, and no `finally` of it reaches the disk or the network. `scheduler` is all that it knows of the loop; what runs the
journal's jobs (`worker`) takes the time that a disk takes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from simulation.loop import SimulatedLoop

THREAD_SECONDS = 0.005
"""Work that is not of the disk takes so long on a thread."""


class ProcessKilled(BaseException):
    """The process ends here; nothing in it may catch this."""


class Timer:
    """A call that the process has scheduled."""

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        self.is_cancelled = False
        self.handle: asyncio.Handle | None = None

    def cancel(self) -> None:
        """Cancel the call if it has not happened yet; one that waits for the end of a pause has not."""
        self.is_cancelled = True
        if self.handle is not None:
            self.handle.cancel()


class Process:
    """One life of a program; also its scheduler: the part of asyncio's loop that engine and connections use."""

    def __init__(self, loop: SimulatedLoop, on_defect: Callable[[str], None]) -> None:
        self.alive = True
        self._loop = loop
        self._on_defect = on_defect
        self._answer_delay: float | None = None
        self._held: list[Timer] | None = None
        """The calls that wait for the end of a pause; None: it is not paused."""

    def kill(self) -> None:
        """Let nothing of it happen any more."""
        self.alive = False

    def die(self) -> None:
        """Kill it, from within, by a caller on its stack."""
        self.alive = False
        raise ProcessKilled

    def run(self, callback: Callable[..., object], *args: Any) -> None:
        """Call back if it lives; it may die of it."""
        if not self.alive:
            return
        if self._held is not None:
            self._held.append(Timer(callback, args))
            return
        try:
            callback(*args)
        except ProcessKilled:
            assert not self.alive
        except Exception as defect:  # noqa: BLE001  # asyncio would log it and go on
            self._on_defect(f"{type(defect).__name__}: {defect}")

    def pause(self) -> None:
        """Let nothing of it happen until it is resumed, as SIGSTOP does: what it is sent waits, and timers are late."""
        if self._held is None:
            self._held = []

    def resume(self) -> None:
        """Let all that has waited happen, in its order."""
        held, self._held = self._held or [], None
        for timer in held:
            if not timer.is_cancelled:
                timer.handle = self._loop.call_soon(self._fire, timer)

    def _fire(self, timer: Timer) -> None:
        if self._held is not None and self.alive:
            self._held.append(timer)
        else:
            self.run(timer.callback, *timer.args)

    def time(self) -> float:
        """Return the loop's time, which no clock's jump touches."""
        return self._loop.time()

    def is_closed(self) -> bool:
        """A process that asks has a loop."""
        return False

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Timer:
        """Run it in the loop's next turn; what a job says comes when the job is over."""
        if self._answer_delay is not None:
            return self.call_later(self._answer_delay, callback, *args)
        timer = Timer(callback, args)
        timer.handle = self._loop.call_soon(self._fire, timer)
        return timer

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Run it after `delay` seconds."""
        timer = Timer(callback, args)
        timer.handle = self._loop.call_later(delay, self._fire, timer)
        return timer

    def on_thread(self, call: Callable[[], Any], done: Callable[[Any], object]) -> None:
        """Do work that would keep the loop waiting, as one step, and call back with what came of it."""

        def work() -> None:
            try:
                found = call()
            except Exception as error:  # noqa: BLE001  # as from a thread
                found = error
            done(found)

        self.call_later(THREAD_SECONDS, work)

    def run_job(self, job: Callable[[], None], answer_delay: float) -> None:
        """Run a job of another thread: what it tells the loop arrives so much later."""
        self._answer_delay = answer_delay
        try:
            self.run(job)
        finally:
            self._answer_delay = None

    def worker(self, seconds: Callable[[], float]) -> Callable[[str, int], "SimulatedWorker"]:
        """Return what makes the journal's workers; a job takes `seconds()` to begin, and as long again to be heard."""
        return lambda name, threads: SimulatedWorker(self, seconds, threads)


class SimulatedWorker:
    """Implement `exacta.adapters.local.worker.Jobs` in virtual time.

    A job is one step: it happens between two turns of the loop. What can happen between two of its calls to the disk is
    the end of the process, or of the machine.
    """

    def __init__(self, process: Process, seconds: Callable[[], float], threads: int) -> None:
        self._process = process
        self._seconds = seconds
        self._free = threads
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """See `Jobs.submit`."""
        if self._is_closed:
            return
        self._waiting.append(job)
        self._begin()

    def _begin(self) -> None:
        if self._free and self._waiting:
            self._free -= 1
            self._process.call_later(self._seconds(), self._run)

    def _run(self) -> None:
        # By the order of asking: a thread that was slow to begin takes what has waited longest.
        if self._waiting:
            self._process.run_job(self._waiting.popleft(), self._seconds())
        self._free += 1
        self._begin()

    def close(self) -> None:
        """See `Jobs.close`: the process waits, and the world with it."""
        self._is_closed = True
        while self._waiting:
            self._process.run_job(self._waiting.popleft(), 0.0)
