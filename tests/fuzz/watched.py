"""A watch over a broker whose loop is turned by hand: nothing may fail, take long, or stay behind."""

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

ALLOWED_SECONDS = 0.15
"""The processor time of one turn: the bound of `tests/attacks`, which measures the largest requests by themselves."""


class ByHand(Protocol):
    """A broker whose loop is turned by hand."""

    loop: Any
    engine: Any

    def settle(self) -> None:
        """Let the loop turn until nothing happens any more."""

    def end(self) -> None:
        """Let all clients vanish; nothing may be counted any more."""


class Watch(logging.Handler):
    """Notes what goes wrong in the broker until it ends."""

    slower = 1.0
    """How much slower the code runs than usual, as under a fuzzer that counts its branches."""
    tracer: Callable[..., Any] | None = None
    """Is called for what the broker calls, as by `sys.setprofile`."""

    def __init__(self, broker: ByHand) -> None:
        super().__init__(logging.ERROR)
        self._turn: Any = None
        self._broker = broker
        self._errors: list[str] = []
        self._longest_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Note an error of the broker."""
        self._errors.append(self.format(record))

    def __enter__(self) -> "Watch":
        logging.getLogger("exacta").addHandler(self)
        turn = self._broker.loop.turn

        def timed() -> None:
            began_s = time.thread_time()
            sys.setprofile(self.tracer)
            turn()
            sys.setprofile(None)
            self._longest_s = max(self._longest_s, time.thread_time() - began_s)

        self._turn, self._broker.loop.turn = turn, timed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.setprofile(None)
        self._broker.loop.turn = self._turn
        logging.getLogger("exacta").removeHandler(self)

    def check(self) -> None:
        """Raise AssertionError for what has gone wrong."""
        assert not self._errors, self._errors[0]
        assert self._broker.engine.failed is None
        assert self._longest_s < ALLOWED_SECONDS * self.slower, f"a turn of {self._longest_s:.3f} s"
        self._broker.end()
