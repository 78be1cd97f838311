"""The event loop as far as the engine needs it: it runs callbacks soon, or later. A simulated loop fits as well."""

from collections.abc import Callable
from typing import Any, Protocol


class TimerHandle(Protocol):
    """Stand for a call that has been scheduled."""

    def cancel(self) -> None:
        """Cancel the call if it has not happened yet."""


class Scheduler(Protocol):
    """Run callbacks on the thread of the loop; both methods return at once. asyncio's loops fit as they are."""

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Run the callback after what is running now and what has been scheduled before."""

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> TimerHandle:
        """Run the callback after `delay` seconds."""
