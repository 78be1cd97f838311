"""The long jobs of a leader: their workers, their changes of the catalog, and what becomes of their failures."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from exacta.adapters.local.child_process import Interrupted
from exacta.adapters.local.files import write_fully
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.worker import Jobs
from exacta.adapters.shared.catalog import open_entry
from exacta.adapters.shared.changes import CatalogChanges, GivenUp
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.publishing import ObjectJobs
from exacta.adapters.shared.steps import Step, Steps, call_in
from exacta.ports.journal import Buffer, Failed, JournalDamaged
from exacta.ports.shared import CatalogEntry

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Background:
    """A worker with jobs of its own, and the way to change the catalog by what they made; on the event loop."""

    def __init__(
        self,
        files: ObjectFiles,
        changes: CatalogChanges,
        jobs: ObjectJobs,
        worker: Jobs,
        post: Callable[..., None],
    ) -> None:
        self.files = files
        self.changes = changes
        self.jobs = jobs
        self.post = post
        self._worker = worker
        self._is_closed = False

    def start(self, steps: Coroutine[Step[Any], Any, T], what_failed: str, done: Callable[[T | Failed], None]) -> None:
        """Run these steps from now on; `done` gets what they return, or why they failed."""

        def failed(error: Exception) -> None:
            if not isinstance(error, GivenUp | Interrupted | OSError | JournalDamaged):  # else it would never end
                logger.error("%s, by a defect", what_failed, exc_info=error)
            elif not isinstance(error, Interrupted):
                logger.warning("%s: %s", what_failed, error)
            done(Failed(str(error) or "the journal is being closed"))

        Steps(steps, done, failed)

    async def on_worker(self, work: Callable[[], T]) -> T:
        """Return `work()`, which may block; raise what it raises."""
        if self._is_closed:
            raise Interrupted
        try:
            result = await call_in(self._worker, self.post, work)
        except OSError:
            if self._is_closed:
                raise Interrupted from None  # the store was closed as well
            raise
        if self._is_closed:
            raise Interrupted
        return result

    async def run(self, job: Callable[..., T], *args: object) -> T:
        """Return what a job over the objects returns; raise what it raises."""
        return await self.on_worker(self.jobs.prepare(job, *args))

    async def make(self, job: Callable[..., T], *args: object) -> T:
        """Return what a job returns that makes files, as `run` does; what it leaves where it fails is removed."""
        try:
            return await self.run(job, *args)
        except Exception:
            await self.on_worker(self.files.clear_temporary)
            raise

    async def write(self, name: str, data: Sequence[Buffer]) -> None:
        """Write a file of this name into the cache directory."""
        scratch = self.files.scratch

        def work() -> None:
            handle = scratch.create(name)
            try:
                write_fully(scratch, handle, data, 0)
            finally:
                scratch.close(handle)

        await self.on_worker(work)

    async def removing(self, names: Sequence[str], steps: Coroutine[Step[Any], Any, T]) -> T:
        """Return what these steps return, and remove files from the cache directory, as far as they are there."""

        def work() -> None:
            for name in names:
                with suppress(OSError):
                    self.files.scratch.remove(name)

        try:
            result = await steps
        except Exception:  # and not where nobody goes on with this any more
            await self.on_worker(work)
            raise
        await self.on_worker(work)
        return result

    async def change(
        self,
        added: Sequence[CatalogEntry],
        removed: Sequence[str] = (),
        tail_from: int | None = None,
        *,
        leads_log: bool = True,
    ) -> Mapping[str, Segment]:
        """Change the catalog; return the segments that were added, by key. Raises as `CatalogChanges.change` does."""

        def opened() -> dict[CatalogEntry, Segment | None]:
            return {each: open_entry(self.files, each) if each.index_bytes else None for each in added}

        segments = await self.on_worker(opened)
        await self.changes.change(self._worker, self.post, segments, removed, tail_from, leads_log=leads_log)
        return {entry.key: segment for entry, segment in segments.items() if segment is not None}

    def stop(self) -> None:
        """Go no further: the journal is being closed. What runs in another process is given up."""
        self._is_closed = True
        self.jobs.stop()
        self._worker.close()
