"""Waiting for what nothing tells of: it is looked at again and again, and a test fails if it does not come in time."""

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool], within_s: float, what: str = "") -> None:
    """Look until something holds; raises AssertionError with what did not come within the time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
