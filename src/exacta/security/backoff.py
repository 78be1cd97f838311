"""The wait before a login is refused: it grows with each refusal of an address, so that guessing takes time.

Apache Kafka waits for the same time after each one (`connection.failed.authentication.delay.ms`). A client that has
mistyped its password once waits no longer here.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

LONGEST_S: Final = 5.0
FORGOTTEN_AFTER_S: Final = 60.0
"""An address that fails no more for so long begins from the shortest wait."""
MOST_ADDRESSES: Final = 10_000
"""The addresses that are remembered; those that failed longest ago are forgotten for others."""


class LoginBackoff:
    """Counts the failures of each address. `clock` gives seconds from any moment on."""

    def __init__(self, shortest_s: float, clock: Callable[[], float]) -> None:
        self._shortest_s = shortest_s
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def failed(self, address: str) -> float:
        """Count a failure; return how many seconds the refusal waits."""
        now_s = self._clock()
        count, last_s = self._failures.pop(address, (0, now_s))
        count = count + 1 if now_s - last_s < FORGOTTEN_AFTER_S else 1
        self._failures[address] = count, now_s
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
        return float(min(LONGEST_S, self._shortest_s * 2 ** min(count - 1, 30)))
