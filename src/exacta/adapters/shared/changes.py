"""Changes of the catalog by the broker that leads, and the keys of the objects that it puts.

A key has the epoch and a number of its leader in it, and something that nobody can guess: also where a database that
has lost its last commits gives an epoch out twice, no two objects have the same key.

Changes are made one after another, so that this broker always knows the catalog as it is. Where nobody knows whether
a change was made, this broker leads no more.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from exacta.adapters.local.format import INDEX_SUFFIX
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.worker import Jobs
from exacta.adapters.shared.catalog import Catalog, PreparedCatalog
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.steps import Step, call, call_in
from exacta.ports.journal import Failed
from exacta.ports.shared import CatalogChange, CatalogEntry, CatalogSeen, Ledger, ObjectStore, StoreFailed, Superseded


class GivenUp(Exception):
    """A job of the leader came to nothing, and nothing was changed; or this broker leads no more (`on_lost`)."""


class _WaitingChange(NamedTuple):
    change: CatalogChange
    done: Callable[[int | Superseded | Failed], None]


class CatalogChanges:
    """Make the changes of one leader; every method is called on the event-loop thread."""

    def __init__(
        self,
        ledger: Ledger,
        catalog: Catalog,
        files: ObjectFiles,
        epoch: int,
        on_lost: Callable[[Failed], None],
    ) -> None:
        """`on_lost` is told why this broker leads no more."""
        self._ledger = ledger
        self._catalog = catalog
        self._files = files
        self._epoch = epoch
        self._on_lost = on_lost
        self._waiting: deque[_WaitingChange] = deque()
        self._is_changing = False
        self._number = 0
        self._lost: Failed | None = None

    def new_key(self, room: str, name: str) -> str:
        """Return a key that no other object can have."""
        self._number += 1
        return f"{room}/{name}-{self._epoch}-{self._number}-{self._files.random_bytes(8).hex()}"

    async def intend(self, keys: Sequence[str]) -> None:
        """Note that these objects are about to be put; raise GivenUp."""
        result = await call(self._ledger.intend, keys)
        if isinstance(result, Failed):
            raise GivenUp(result.reason)

    async def change(
        self,
        worker: Jobs,
        post: Callable[..., None],
        added: Mapping[CatalogEntry, Segment | None],
        removed: Iterable[str] = (),
        tail_from: int | None = None,
        *,
        leads_log: bool = True,
    ) -> None:
        """Change the catalog, and know it from then on; raise GivenUp. What was put for nothing is deleted.

        If `leads_log` the index follows; else the caller brings it in step before anything else happens.
        """
        change = CatalogChange(list(added), list(removed), tail_from)
        result = await Step[int | Superseded | Failed](lambda done: self._ask(change, done))
        if not isinstance(result, int):
            if isinstance(result, Superseded):
                keys = [each.key for each in added]
                await call_in(worker, post, lambda: delete_objects(self._files.store, keys))
            raise GivenUp(self._why(result))
        entries = {**self._catalog.entries, **{each.key: each for each in added}}
        for key in change.removed:
            del entries[key]
        seen = CatalogSeen(result, self._catalog.tail_from if tail_from is None else tail_from, list(entries.values()))
        opened = {entry.key: segment for entry, segment in added.items() if segment is not None}
        if leads_log:
            self._catalog.follow_log(PreparedCatalog(seen, opened))
        else:
            self._catalog.note(PreparedCatalog(seen, opened))

    def _why(self, result: Superseded | Failed) -> str:
        """Return why a change was not made; tell it if this broker leads no more."""
        if isinstance(result, Superseded) and result.epoch == self._epoch:
            return "what was to be put in the catalog took too long, and was swept"
        if self._lost is None:
            reason = result.reason if isinstance(result, Failed) else f"another broker leads, in epoch {result.epoch}"
            self._lost = Failed(reason)
            self._on_lost(self._lost)
        return self._lost.reason

    def _ask(self, change: CatalogChange, done: Callable[[int | Superseded | Failed], None]) -> None:
        self._waiting.append(_WaitingChange(change, done))
        self._next()

    def _next(self) -> None:
        if self._is_changing or not self._waiting:
            return
        self._is_changing = True
        change, done = self._waiting.popleft()

        def changed(result: int | Superseded | Failed) -> None:
            done(result)
            self._is_changing = False
            self._next()

        self._ledger.change_catalog(self._epoch, change, changed)


def delete_objects(store: ObjectStore, keys: Iterable[str]) -> bool:
    """Delete these objects and their indexes; return whether all of them are deleted."""
    try:
        store.delete([each for key in keys for each in (key, key + INDEX_SUFFIX)])
    except StoreFailed:
        return False
    return True
