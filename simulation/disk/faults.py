"""The faults of a world's disk, and their times: the plan that a process's view of it follows.

Errors come once, as they do; a full disk is full until there is room again; slow and stuck operations are a matter of
the time that jobs take. The end of the process, or of the machine, can be set for a certain call from now on.
"""

import errno
import random
from collections.abc import Callable

from simulation.trace import Trace

USUAL_SECONDS = (0.0002, 0.004)
SLOW_SECONDS = (0.05, 0.6)
STUCK_SECONDS = (4.0, 25.0)
FAILING_CALLS = ("sync_data", "sync", "sync_directory", "write", "create", "rename", "read", "open")


class DiskFaults:
    """Implement `simulation.disk.process_files.Plan`."""

    def __init__(self, trace: Trace, chance: random.Random) -> None:
        self.is_full = False
        self.is_slow = False
        self.writes_short = False
        self.stuck_operations = 0
        self.on_end: Callable[[str], None] = lambda kind: None
        """The function that is called with "kill" or "power" when the set call has come."""
        self._trace = trace
        self._chance = chance
        self._errors: dict[str, int] = {}
        self._end: tuple[str, int, str] | None = None

    def fail_next(self, call: str) -> None:
        """Let the next call of this kind fail."""
        self._errors[call] = errno.EIO

    def end_at(self, kind: str, calls: int, call: str = "") -> None:
        """Let the process, or the machine, end at a call: after this many, counting all, or those of one kind."""
        self._end = kind, calls, call

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        self.is_full = self.is_slow = self.writes_short = False
        self.stuck_operations = 0
        self._errors.clear()
        self._end = None

    def error(self, call: str) -> int | None:
        """See `Plan.error`."""
        number = self._errors.pop(call, None)
        if number is not None:
            self._trace.fault(f"disk error in {call}")
            return number
        if self.is_full and call in ("write", "create"):
            self._trace.fault("disk full")
            return errno.ENOSPC
        return None

    def dies(self, call: str) -> bool:
        """See `Plan.dies`."""
        if self._end is None:
            return False
        kind, calls, only = self._end
        if only and call != only:
            return False
        if calls > 0:
            self._end = kind, calls - 1, only
            return False
        self._end = None
        self._trace.fault(f"{kind} at a call to the disk", call)
        self.on_end(kind)
        return True

    def taken(self, size: int) -> int:
        """See `Plan.taken`."""
        if size > 1 and (self.writes_short or self.is_full) and self._chance.random() < 0.5:
            self._trace.faults["short write"] += 1
            return self._chance.randint(1, size - 1)
        return 1 if self.is_full else size

    def job_seconds(self) -> float:
        """Return how long a job waits for the disk."""
        if self.stuck_operations:
            self.stuck_operations -= 1
            self._trace.fault("stuck operation")
            return self._chance.uniform(*STUCK_SECONDS)
        return self._chance.uniform(*(SLOW_SECONDS if self.is_slow else USUAL_SECONDS))
