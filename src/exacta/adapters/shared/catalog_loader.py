"""The catalog of a broker that follows: read from the ledger again when something asks for what it does not know."""

import logging
from collections.abc import Callable

from exacta.adapters.local.worker import Jobs
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.steps import Steps, call, call_in
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.shared import Ledger

Done = Callable[[Failed | None], None]

logger = logging.getLogger(__name__)


class CatalogLoader:
    """Load the catalog, one time after another; every method is called on the event-loop thread."""

    def __init__(self, catalog: Catalog, ledger: Ledger, worker: Jobs, post: Callable[..., None]) -> None:
        """Indexes are fetched on the worker."""
        self._catalog = catalog
        self._ledger = ledger
        self._worker = worker
        self._post = post
        self._waiting: list[Done] = []
        self._is_loading = False
        self._is_ended = False

    def load(self, done: Done) -> None:
        """Take in the catalog as it is after this call, or a later one; `done` gets why that could not be done."""
        if self._is_ended:
            self._post(done, None)
            return
        self._waiting.append(done)
        self._begin()

    def end(self) -> None:
        """Load nothing more: this broker leads, and makes all changes itself, or it is closed."""
        self._is_ended = True

    def _begin(self) -> None:
        if self._is_loading or not self._waiting:
            return
        self._is_loading = True
        waiting, self._waiting = self._waiting, []

        def finish(result: Failed | None) -> None:
            self._is_loading = False
            for done in waiting:
                done(result)
            self._begin()

        def failed(error: Exception) -> None:
            if not isinstance(error, OSError | JournalDamaged):  # else nobody would load it any more
                logger.error("the catalog could not be loaded, by a defect", exc_info=error)
            finish(Failed(str(error)))

        Steps(self._load(), finish, failed)

    async def _load(self) -> Failed | None:
        seen = await call(self._ledger.read_catalog)
        if isinstance(seen, Failed):
            return seen
        if seen.version > self._catalog.version:
            prepared = await call_in(self._worker, self._post, lambda: self._catalog.prepare(seen))
            if not self._is_ended:
                self._catalog.take(prepared)
        return None
