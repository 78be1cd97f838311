"""Offload: segments of the tail that do not grow any more become objects, and their rows leave the ledger.

Theory of operation. The order is: note the intent, put the segment and its index, read them back, and then one change
of the catalog that adds the segment and lets the tail begin behind it. A crash before the change leaves objects that
nobody knows but the intent, by which they are swept. Where the intent was swept meanwhile, the change is refused. After
the change the rows go as soon as every broker that lives knows this catalog.

Segments are offloaded one after another, oldest first. While the store is away the tail grows, up to what the ledger is
trusted with (`exacta.adapters.shared.space`).
"""

import logging
from collections.abc import Callable
from typing import Any

from exacta.adapters.shared import publishing
from exacta.adapters.shared.background import Background
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.tail import Tail, TailSegment
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.shared import CatalogEntry

logger = logging.getLogger(__name__)

RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
"""After the first failure in a row the next try comes so soon, and so on; after more of them as after the last."""


class Offloader:
    """Offload for one leader; every method is called on the event-loop thread."""

    def __init__(
        self,
        background: Background,
        catalog: Catalog,
        tail: Tail,
        call_later: Callable[..., Any],
        on_damage: Callable[[JournalDamaged], None],
    ) -> None:
        """`on_damage` is told where the tail is not what was appended."""
        self._background = background
        self._catalog = catalog
        self._tail = tail
        self._call_later = call_later
        self._on_damage = on_damage
        self._is_busy = False
        self._is_stopped = False
        self._failures = 0
        self._waiting: list[Callable[[], None]] = []

    def look(self) -> None:
        """Offload what does not grow any more, if nothing is under way."""
        if self._is_busy or self._is_stopped:
            return
        sealed = [each for each in self._tail.sealed if each.base >= self._catalog.tail_from]
        if not sealed:
            self._tell()
            return
        self._is_busy = True
        self._background.start(self._offload(sealed[0]), "the tail could not be offloaded", self._finish)

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call back once nothing is left to be offloaded, or that has failed."""
        self._waiting.append(then)
        self.look()

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            self._background.post(then)

    def _finish(self, result: Failed | None) -> None:
        self._is_busy = False
        if result is None:
            self._failures = 0
            self.look()
            return
        self._call_later(RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)], self.look)
        self._failures += 1
        self._tell()

    async def _offload(self, piece: TailSegment) -> None:
        background = self._background
        key = background.changes.new_key("segments", f"{piece.base:020d}")
        await background.changes.intend([key])
        try:
            entry = await background.removing(publishing.names_of_tail(piece.base), self._put(piece, key))
            if (entry.end, entry.last_checksum) != (piece.end, piece.last_checksum):
                raise JournalDamaged(f"the tail from position {piece.base} on does not end as it was appended")
        except JournalDamaged as damage:
            self._on_damage(damage)
            raise
        await background.change([entry], tail_from=piece.end)
        self._tail.drop_before(self._catalog.tail_from)

    async def _put(self, piece: TailSegment, key: str) -> CatalogEntry:
        name, _ = publishing.names_of_tail(piece.base)
        await self._background.write(name, await self._tail.buffers(piece))
        return await self._background.run(publishing.publish_tail, piece.base, key)
