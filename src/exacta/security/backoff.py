"""The pace of logins of one address: what a refusal waits for, and how many attempts may be wrong in a time.

A refusal waits, longer after each one. Apache Kafka waits for the same time after each one
(`connection.failed.authentication.delay.ms`); a client that has mistyped its password once waits no longer here.

A client that hangs up does not wait for its refusal, and one may have many connections. So an address also has a
number of attempts: fewer than `MOST_OPEN` may be on their way, or were wrong a short time ago. One wrong attempt is
forgiven each `FORGIVEN_EACH_S`. Who hangs up while an attempt is on its way has been wrong. Beyond that number an
attempt waits before anything of it is looked at, a right one, too: it could not be told from a guess.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final

LONGEST_S: Final = 5.0
FORGOTTEN_AFTER_S: Final = 60.0
"""An address that fails no more for so long begins from the shortest wait."""
MOST_ADDRESSES: Final = 10_000
"""The addresses that are remembered; those that failed longest ago are forgotten for others."""
MOST_OPEN: Final = 20
"""A host has some clients whose password was changed, and others on the same host go on logging in."""
FORGIVEN_EACH_S: Final = 1.0
"""An address guesses 86,400 passwords a day, however many connections it has."""
LOOK_AGAIN_S: Final = 1.0
"""An attempt that waits looks again after this time, if no other one has made room."""
SHORTEST_LOOK_S: Final = 0.01
"""No clock is asked more often than that."""


class LoginBackoff:
    """Counts the attempts and the failures of each address. `clock` gives seconds from any moment on."""

    def __init__(self, shortest_s: float, clock: Callable[[], float]) -> None:
        self._shortest_s = shortest_s
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float, float]] = OrderedDict()
        """The failures of each address: their number, the time of the last one, and how many were not forgiven then."""
        self._trying: Counter[str] = Counter()
        """The attempts that are on their way."""
        self._lines: dict[str, deque[Callable[[], bool]]] = {}
        """The attempts that wait for others to end."""

    def wait_s(self, address: str) -> float:
        """Return how many seconds an attempt waits before it asks again; 0: it may begin."""
        trying = self._trying[address]
        too_many = self._unforgiven(address) + trying + 1 - MOST_OPEN
        if too_many <= 0:
            return 0.0
        return LOOK_AGAIN_S if trying else max(SHORTEST_LOOK_S, too_many * FORGIVEN_EACH_S)

    def waits(self, address: str, go_on: Callable[[], bool]) -> None:
        """Call back when an attempt of the address has ended, until a callback returns that it goes on."""
        if self._trying[address]:
            self._lines.setdefault(address, deque()).append(go_on)

    def begins(self, address: str) -> None:
        """Count an attempt that begins; `ended` follows in any case."""
        self._trying[address] += 1

    def ended(self, address: str) -> None:
        """Count an attempt less, and let another one go on."""
        self._trying[address] -= 1
        if not self._trying[address]:
            del self._trying[address]
        line = self._lines.get(address, ())
        while line and not line.popleft()():
            pass
        if not line:
            self._lines.pop(address, None)

    def failed(self, address: str) -> float:
        """Count a failure; return how many seconds the refusal waits."""
        now_s = self._clock()
        wrong = self._unforgiven(address) + 1
        count, last_s, _ = self._failures.pop(address, (0, now_s, 0.0))
        count = count + 1 if now_s - last_s < FORGOTTEN_AFTER_S else 1
        self._failures[address] = count, now_s, wrong
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
        return float(min(LONGEST_S, self._shortest_s * 2 ** min(count - 1, 30)))

    def _unforgiven(self, address: str) -> float:
        _, last_s, wrong = self._failures.get(address, (0, 0.0, 0.0))
        return max(0.0, wrong - (self._clock() - last_s) / FORGIVEN_EACH_S)
