"""A shared log as one broker sees it: what follower and journal have in common.

This module takes groups in, looks batches up, and reads them. Batches of the tail are read from memory or from the
ledger, on the event loop, and all others as a local journal's, from objects (`reading`).
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from exacta.adapters.local.child_process import JobRunner
from exacta.adapters.local.format import MARK_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader
from exacta.adapters.local.framing import PlacedRows
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.journal_reader import LocalJournalReader
from exacta.adapters.local.reading import Run, assemble, plan
from exacta.adapters.local.worker import Jobs, NewWorker
from exacta.adapters.shared.blocks import Gone
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.catalog_loader import CatalogLoader
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.reading import ObjectReader
from exacta.adapters.shared.space import SEGMENT_BYTES, SNAPSHOT_EVENTS, TAIL_BYTES
from exacta.adapters.shared.steps import Step, Steps, call
from exacta.adapters.shared.tail import Tail, TailSegment
from exacta.ports.journal import Buffer, Extent, Failed
from exacta.ports.scheduler import Scheduler
from exacta.ports.shared import Ledger

logger = logging.getLogger(__name__)


class LedgerAway(Exception):
    """The ledger has not answered; the message is for a log line."""


class LedgerWavers(LedgerAway):
    """The ledger has shown another log than it did before: it is to be asked again."""


class Witness(Struct):
    """Bear witness, for as long as this process lives, of how far the log has been durable.

    `position` ends a group with this checksum. One witness sees all followers and journals of a broker.
    """

    position: int = 0
    checksum: int = 0

    def see(self, position: int, checksum: int) -> None:
        """Note that the log is durable up to the end of a group."""
        if position > self.position:
            self.position, self.checksum = position, checksum


class Limits(Struct, frozen=True, kw_only=True):
    """Bound what a leader lets grow."""

    segment_bytes: int = SEGMENT_BYTES
    """A segment of the tail is sealed once it has so much."""
    snapshot_events: int = SNAPSHOT_EVENTS
    """After this many events a snapshot is wanted."""
    tail_bytes: int = TAIL_BYTES
    """The tail may have so much while nothing can be offloaded."""


class Parts(Struct, frozen=True, kw_only=True):
    """Hold what a follower hands on to the journal that takes its place."""

    ledger: Ledger
    scheduler: Scheduler
    call_soon: Callable[..., object]
    """Runs a callback on the event loop; called from any thread."""
    elapsed_seconds: Callable[[], float]
    files: ObjectFiles
    catalog: Catalog
    loader: CatalogLoader
    tail: Tail
    reader: ObjectReader
    worker: Jobs
    """Fetches indexes."""
    witness: Witness
    new_worker: NewWorker
    new_job_runner: Callable[[], JobRunner]
    limits: Limits

    def post(self, callback: Callable[..., None], *arguments: object) -> None:
        """Run a callback on the event loop, from any thread."""
        self.call_soon(callback, *arguments)

    def release(self) -> None:
        """Close everything; nothing is called any more."""
        self.files.store.close()  # first: what workers ask of it would hold up their ends
        self.loader.end()
        self.reader.close()
        self.worker.close()
        self.files.blocks.close()
        self.ledger.close()
        self.files.unlock()


class SharedLog(LocalJournalReader):
    """Implement `exacta.ports.following.SharedReader`; a follower and a journal add what they do with it."""

    def __init__(self, parts: Parts, position: int, checksum: int | None) -> None:
        super().__init__(parts.files, position, parts.reader)
        self._parts = parts
        self._ledger = parts.ledger
        self._tail = parts.tail
        self._call_soon = parts.call_soon
        self._checksum = checksum
        parts.catalog.on_damage = self._damaged

    @property
    def _index(self) -> Index:  # type: ignore[override]  # a catalog that has changed much has another index
        return self._parts.catalog.index

    @property
    def catalog(self) -> int:
        """See `SharedReader.catalog`."""
        return max(0, self._parts.catalog.version)

    @property
    def tail_from(self) -> int:
        """See `SharedReader.tail_from`."""
        return self._parts.catalog.tail_from

    def _fail(self, failure: Failed) -> None:
        """Let nothing be done any more, and say so, unless it was said before."""
        if self._failure is None:
            self._failure = failure
            self._on_failure(failure)

    # --- growing ------------------------------------------------------------------------------------------------------

    def _take_in(self, previous_checksum: int, checksum: int, body: Buffer, rows: Iterable[PlacedRows]) -> None:
        """Let the next group be found."""
        catalog = self._parts.catalog
        if self.position >= catalog.tail_from:  # else it is a part of an object, which is found already
            mark, growing = bytes(body[:MARK_BYTES]), self._tail.growing
            if growing is None or growing.header.mark != mark:
                catalog.begin_segment(self.position)
                self._tail.begin(SegmentHeader(self.position, mark, previous_checksum))
            self._tail.add(body, checksum)
            for payload_position, index in rows:
                self._index.add(payload_position, index)
        self._reach(self.position + len(body), checksum)

    def _reach(self, position: int, checksum: int | None) -> None:
        """Go on from here: all before it is taken in, and durable."""
        self.position = position
        self._checksum = checksum
        if checksum is not None:
            self._parts.witness.see(position, checksum)

    async def _load_catalog(self, version: int = 0) -> None:
        """Load the catalog, of this version or a later one; raise LedgerAway."""
        parts = self._parts
        failed = await call(parts.loader.load)
        if failed is not None:
            raise LedgerAway(failed.reason)
        self._tail.drop_before(parts.catalog.tail_from)
        if parts.catalog.version < version:
            raise LedgerAway(f"the catalog is at version {parts.catalog.version}, and {version} is asked for")

    # --- reading ------------------------------------------------------------------------------------------------------

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `JournalReader.read_cached`."""
        results: list[Buffer] = []
        for extent in extents:
            found = self._cached(extent)
            if found is None:
                return None
            results.append(found)
        return results

    def _cached(self, extent: Extent) -> Buffer | None:
        segment, runs = plan(extent)
        in_tail = None if segment.index is not None else self._tail.segment(segment.base)
        if in_tail is None:
            found = self._reader.read_cached([extent])
            return None if found is None else found[0]
        buffers: list[Buffer] = []
        for run in runs:
            pieces = in_tail.in_memory(segment.base + run.offset - SEGMENT_HEADER_BYTES, run.size)
            if pieces is None:
                return None
            buffers.append(_joined(pieces))
        return assemble(runs, buffers)

    def read(self, extents: Sequence[Extent], done: Callable[[list[Buffer | Failed]], None]) -> None:
        """See `JournalReader.read`."""
        in_tail = [self._in_tail(each) for each in extents]
        if not any(in_tail):
            self._reader.read(extents, done)
            return

        def failed(error: Exception) -> None:
            logger.error("batches of the shared log could not be read", exc_info=error)
            done([Failed(str(error))] * len(extents))

        Steps(self._read(extents, in_tail), done, failed)

    def _in_tail(self, extent: Extent) -> TailSegment | None:
        segment = plan(extent)[0]
        return None if segment.index is not None else self._tail.segment(segment.base)

    async def _read(self, extents: Sequence[Extent], in_tail: Sequence[TailSegment | None]) -> list[Buffer | Failed]:
        await Step[None](lambda done: self._call_soon(done, None))
        both = zip(extents, in_tail, strict=True)
        return [await self._read_one(extent, segment) for extent, segment in both]

    async def _read_one(self, extent: Extent, in_tail: TailSegment | None) -> Buffer | Failed:
        segment, runs = plan(extent)
        try:
            if in_tail is not None:
                return assemble(runs, [await self._run_of_tail(segment.base, in_tail, run) for run in runs])
        except Gone as error:
            if segment.index is None:
                return Failed(str(error))
            # It has become an object meanwhile, and the batches lie where they did.
        except OSError as error:
            return Failed(str(error))
        return (await call(self._reader.read, [extent]))[0]

    async def _run_of_tail(self, base: int, in_tail: TailSegment, run: Run) -> Buffer:
        return _joined(await self._tail.pieces(in_tail, base + run.offset - SEGMENT_HEADER_BYTES, run.size))


def _joined(pieces: Sequence[Buffer]) -> Buffer:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
