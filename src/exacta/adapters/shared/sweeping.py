"""Sweeping: objects that nobody can read any more are deleted from the store.

The ledger says which: those that were removed from a catalog that every living broker has passed, and those that
somebody intended to put and never registered. It names them until it hears that they are deleted.
"""

from collections.abc import Callable
from typing import Any

from exacta.adapters.shared.background import Background
from exacta.adapters.shared.changes import GivenUp, delete_objects
from exacta.adapters.shared.steps import call
from exacta.ports.journal import Failed
from exacta.ports.shared import Ledger

SWEEP_SECONDS = 3600.0


class ObjectSweeper:
    """Sweep at the beginning of a lead, and each hour."""

    def __init__(self, ledger: Ledger, background: Background, call_later: Callable[..., Any]) -> None:
        self._ledger = ledger
        self._background = background
        self._call_later = call_later
        self._is_stopped = False

    def begin(self) -> None:
        """Sweep now, and again."""
        if not self._is_stopped:
            self.sweep(self._again)

    def sweep(self, done: Callable[[int | Failed], None]) -> None:
        """Sweep once; `done` gets how many keys were deleted."""
        self._background.start(self._sweep(), "objects that nobody needs stay in the store", done)

    def _again(self, result: int | Failed) -> None:
        self._call_later(SWEEP_SECONDS, self.begin)

    async def _sweep(self) -> int:
        keys = await call(self._ledger.sweep)
        if isinstance(keys, Failed):
            raise GivenUp(keys.reason)
        if not keys:
            return 0
        store = self._background.files.store
        if not await self._background.on_worker(lambda: delete_objects(store, keys)):
            raise GivenUp("the store has not deleted all of them")
        result = await call(self._ledger.forget, keys)
        if isinstance(result, Failed):
            raise GivenUp(result.reason)
        return len(keys)

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True
