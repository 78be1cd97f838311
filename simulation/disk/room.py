"""The room on a world's disk, and the ends of the process and its starts that go by it (decision 0051).

Owns one part of invariant 13: a process ends of a full disk only where the reserve has nothing left to give, a start
needs no more than the reserve keeps for it, and it is not the supervisor who starts again after such an end.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from exacta.adapters.local.space.reserve import NAME, SHARE
from exacta.core.rejections import Rejection
from exacta.server.advice import is_about_a_full_disk
from simulation.disk.simulated import UNBOUNDED
from simulation.loop import SimulatedLoop

if TYPE_CHECKING:
    from simulation.broker import Broker

STARTS = 16
"""A start takes at most such a part of the reserve (`Reserve.measure` gives so much at a time)."""


class RoomWatched:
    """The room on the disk of a broker, which has another one after each stop of its machine."""

    def __init__(self, broker: "Broker", loop: SimulatedLoop, complain: Callable[[str], None]) -> None:
        self._broker = broker
        self._loop = loop
        self._complain = complain
        self.counts: Counter[str] = Counter()
        """The things that a full disk has brought, and their number."""
        self._before = 0
        self._fills = 0
        """The times that others began to take room, or gave it back."""

    @property
    def is_bounded(self) -> bool:
        """Return whether the disk has a size."""
        return self._broker.disk.size_of_all < UNBOUNDED

    @property
    def whole(self) -> int:
        """Return how many bytes the reserve has when it is whole."""
        return self._broker.disk.size_of_all // SHARE

    @property
    def held(self) -> int:
        """Return how many bytes the reserve holds now."""
        file = self._broker.disk.files.get(NAME)
        return 0 if file is None else len(file.content)

    @property
    def spare(self) -> int:
        """Return how many bytes are free or in the reserve."""
        return self._broker.disk.free_bytes + self.held

    @property
    def has_been_made(self) -> bool:
        """Return whether there is so much room again that an operator starts the broker."""
        return self.spare >= self.whole // 4

    def fill(self, free: int, every_s: float | None) -> None:
        """Let others take all but this many of the free bytes, and again after some seconds, as they go on writing."""
        self._fills += 1
        self._fill(free, every_s, self._fills)

    def _fill(self, free: int, every_s: float | None, number: int) -> None:
        if number == self._fills:
            self._broker.disk.leave(free)
            if every_s is not None:
                self._loop.call_later(every_s, self._fill, free, every_s, number)

    def empty(self) -> None:
        """Let others give back what they have taken, and take no more."""
        self._fills += 1
        self._broker.disk.taken_by_others = 0

    def enlarge(self) -> None:
        """Double a disk that has a size: what the clients of the world have written may have filled it for good."""
        if self.is_bounded:
            self._broker.disk.size_of_all *= 2

    def has_refused(self, why: Rejection) -> None:
        """Count a command that was refused."""
        self.counts["batches refused" if why is Rejection.DISK_FULL else "other commands refused"] += 1

    def starts(self) -> None:
        """Note how much room there is before a start."""
        self._before = self.spare

    def has_started(self) -> None:
        """Count a start on a full disk."""
        if self.is_bounded and self._before < self.whole * 5 // 4:
            self.counts["starts"] += 1

    def failed_to_start(self, reason: str) -> None:
        """Complain of a start that had what is kept for it, and that a full disk has stopped."""
        if not self.is_bounded or not is_about_a_full_disk(reason):
            return
        self.counts["ends"] += 1
        if self._before >= self.whole // STARTS:
            self._complain(f"13: a start with {self._before} bytes to spare, of {self.whole}, has failed: {reason}")

    def failed(self, reason: str) -> None:
        """Complain of the end that a full disk has brought while the reserve could have given something."""
        if not self.is_bounded or not is_about_a_full_disk(reason):
            return
        self.counts["ends"] += 1
        if self.held:
            self._complain(f"13: the broker ends, and its reserve holds {self.held} bytes: {reason}")
