"""Threads for work that may block, which is done in the order of asking.

A job is a callable without arguments that never raises on purpose; it hands its result
to the event loop itself.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

logger = logging.getLogger(__name__)


class Jobs(Protocol):
    """Run jobs in the order of asking, or several at a time; `Worker` does so on threads."""

    def submit(self, job: Callable[[], None]) -> None:
        """Run the job soon."""

    def close(self) -> None:
        """Finish the jobs that wait. What is submitted later is not done: by then the files may be another's."""


NewWorker = Callable[[str, int], Jobs]
"""Makes a runner of jobs with this name, which may run this many jobs at a time."""


class Worker:
    """Run jobs on one thread, or on several where their order does not matter; a thread starts when first needed."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._thread_limit = threads
        self._threads: list[threading.Thread] = []
        # SimpleQueue hands over in C, without a lock object of Python's: a queue.Queue costs 10 us more each way.
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` on a thread soon; see `Jobs.close`."""
        if self._is_closed:
            return
        if len(self._threads) < self._thread_limit:
            thread = threading.Thread(target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except BaseException:
                # A bug, not a failing disk: the job has told its caller in a `finally`; the thread must live on.
                logger.exception("a job of %s raised", self._name)

    def close(self) -> None:
        """Finish the jobs that wait, then end the threads. See `Jobs.close`."""
        self._is_closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
