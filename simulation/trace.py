"""The trace of a world: a hash of everything that happened, in order, and its lines where somebody wants to read them.

Owns the proof that a seed is a repetition: two runs are the same if their traces are, byte for byte. So nothing may be
noted that differs between processes: no `id`, no hash of a string, no order of a set, no time of the wall.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable

KEPT_LINES = 200


class Trace:
    """The trace of one world."""

    def __init__(self, now: Callable[[], float], write: Callable[[str], None] | None = None) -> None:
        """`now` is virtual time in seconds; `write` gets each line at once."""
        self._now = now
        self._write = write
        self._hash = hashlib.blake2b(digest_size=16)
        self.last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.count = 0
        self.faults: Counter[str] = Counter()
        """The number of injected faults, by kind."""

    def note(self, kind: str, *details: object) -> None:
        """Add a line."""
        line = f"{self._now():.6f} {kind} {' '.join(map(str, details))}"
        self._hash.update(line.encode() + b"\n")
        self.last_lines.append(line)
        self.count += 1
        if self._write is not None:
            self._write(line)

    def fault(self, kind: str, *details: object) -> None:
        """Add a line about a fault that was injected, and count it."""
        self.faults[kind] += 1
        self.note("fault", kind, *details)

    @property
    def digest(self) -> str:
        """Return the hash of all lines so far."""
        return self._hash.hexdigest()
