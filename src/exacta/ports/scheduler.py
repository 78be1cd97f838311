"""The event loop as far as the engine needs it: run something soon, or later. A simulated loop fits as well."""

from collections.abc import Callable
from typing import Any, Protocol


class TimerHandle(Protocol):
    """A call that has been scheduled."""

    def cancel(self) -> None:
        """Take the call back, if it has not happened."""


class Scheduler(Protocol):
    """Both calls return at once; what they schedule runs on the same thread. asyncio's loops fit as they are."""

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Run the callback after what is running now and what has been scheduled before."""

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> TimerHandle:
        """Run the callback after `delay` seconds."""
