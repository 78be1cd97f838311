"""The wall clock of the broker's machine, which follows virtual time and can be set; and what syncs seem to take."""

import random
from collections.abc import Callable

from simulation.loop import SimulatedLoop

BEGIN_MS = 1_700_000_000_000
CLIENTS_BEHIND_MS = 24 * 3_600_000


class WallClock:
    """The time in milliseconds since 1970, as this machine has it; `skew_ms` away from the truth."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.skew_ms = 0
        self._loop = loop

    def now_ms(self) -> int:
        """Return what the clock shows."""
        return BEGIN_MS + self.skew_ms + int(self._loop.time() * 1000)

    def client_ms(self) -> int:
        """Return what the clients' clocks show: behind all that the broker's may be set back to.

        A broker refuses records from the far future, and no client is to be refused for that.
        """
        return BEGIN_MS - CLIENTS_BEHIND_MS + int(self._loop.time() * 1000)


def elapsed_by_chance(chance: random.Random) -> Callable[[], float]:
    """Return a time that passes from one question to the next only by chance: in some worlds never, in some always.

    The journal measures its syncs by it, which take none of the worlds' own time.
    """
    share = chance.choice([0.0, 0.03, 1.0])
    elapsed_seconds = 0.0

    def ask() -> float:
        nonlocal elapsed_seconds
        elapsed_seconds += chance.random() < share
        return elapsed_seconds

    return ask
