"""Notices: words for connections that did not ask, handed to the sinks that fronts register.

Owns the sinks by their keys. Owns neither what a notice says (the core) nor when it may be told (the engine).
"""

from collections.abc import Callable, Hashable

from exacta.core.outcome import Notice
from exacta.ports.log import Sink


class Sinks:
    """Keeps the sinks that are there now, one under each key."""

    def __init__(self) -> None:
        self._sinks: dict[Hashable, Sink] = {}

    def register(self, key: Hashable, sink: Sink) -> None:
        """Hand notices under this key to the sink from now on. Raises ValueError where the key is taken."""
        if key in self._sinks:
            raise ValueError(f"there is a sink under {key!r} already")
        self._sinks[key] = sink

    def remove(self, key: Hashable) -> None:
        """Drop the notices that come under this key from now on, also those that wait already."""
        self._sinks.pop(key, None)

    def clear(self) -> None:
        """Drop all notices from now on: what they tell of may never become durable."""
        self._sinks.clear()

    def telling(self, key: Hashable, notice: Notice) -> Callable[[], None] | None:
        """Return what tells the sink under this key, if it is still there then; None: the notice is dropped."""
        sink = self._sinks.get(key)
        if sink is None:
            return None

        def tell() -> None:
            if self._sinks.get(key) is sink:
                sink(notice)

        return tell
