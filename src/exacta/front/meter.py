"""The meter counts requests as they are answered: how many, of how many bytes, and how long they took.

Owns the numbers, by front and by API. Where no metrics are served there is no meter, and a request costs nothing more.

A request's time is from the moment when it was whole until its answer was made. So the time of a fetch includes its
wait for records, and the time of a write includes its sync, but not the time that bytes take on the network.
"""

import time
from collections.abc import Callable

from exacta.histogram import SECONDS, Histogram


class ApiMeter:
    """The requests of one API that were answered."""

    __slots__ = ("in_bytes", "out_bytes", "seconds")

    def __init__(self) -> None:
        self.in_bytes = 0
        self.out_bytes = 0
        self.seconds = Histogram(SECONDS)

    def answered(self, in_bytes: int, out_bytes: int, seconds: float) -> None:
        """Count a request, with the bytes of it and of its answer."""
        self.in_bytes += in_bytes
        self.out_bytes += out_bytes
        self.seconds.add(seconds)


class FrontMeter:
    """The APIs of one front by their numbers; `name_of` says what the protocol calls them."""

    __slots__ = ("apis", "clock", "name_of")

    def __init__(self, name_of: Callable[[int], str], clock: Callable[[], float]) -> None:
        self.name_of = name_of
        self.clock = clock
        self.apis: dict[int, ApiMeter] = {}

    def api(self, number: int) -> ApiMeter:
        """Return the meter of an API that is served."""
        found = self.apis.get(number)
        if found is None:
            found = self.apis[number] = ApiMeter()
        return found


class Meter:
    """All fronts of one broker. `clock` gives seconds from any moment on."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.fronts: dict[str, FrontMeter] = {}

    def front(self, name: str, name_of: Callable[[int], str]) -> FrontMeter:
        """Return the meter of a front."""
        return self.fronts.setdefault(name, FrontMeter(name_of, self._clock))
