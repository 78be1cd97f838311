"""Opening of a shared log: a broker always begins as a follower."""

import time
from collections.abc import Callable

from exacta.adapters.local.child_process import ChildProcess, JobRunner
from exacta.adapters.local.files import Files
from exacta.adapters.local.worker import NewWorker, Worker
from exacta.adapters.shared.blocks import Blocks
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.catalog_loader import CatalogLoader
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.follower import POLL_SECONDS, SharedFollower
from exacta.adapters.shared.reading import ObjectReader
from exacta.adapters.shared.shared_log import LedgerAway, LedgerWavers, Limits, Parts, Witness
from exacta.adapters.shared.steps import Step, Steps, call, call_in
from exacta.adapters.shared.tail import Tail
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.scheduler import Scheduler
from exacta.ports.shared import Ledger, ObjectStore

INDEX_FETCHES = 16
"""The number of indexes that a start without a cache fetches at a time."""


def open_follower(
    ledger: Ledger,
    store: ObjectStore,
    cache: Files,
    scheduler: Scheduler,
    call_soon: Callable[..., object],
    *,
    node_id: int,
    instance: str,
    witness: Witness,
    done: Callable[[SharedFollower | Failed | JournalDamaged], None],
    limits: Limits = Limits(),  # noqa: B008  # it is frozen
    new_worker: NewWorker = Worker,
    new_job_runner: Callable[[], JobRunner] | None = None,
    elapsed_seconds: Callable[[], float] = time.monotonic,
) -> None:
    """Open the log that this ledger and this store keep, and hand out a follower.

    `call_soon(callback, *arguments)` is called from any thread, and runs the callback on the event loop, where
    `scheduler` is. The follower, and the journal that it hands out, own ledger and store: closing them closes both.
    `cache` is the cache directory. One `witness` serves a broker for as long as its process lives. `new_worker` makes
    what runs jobs that block: threads, except in simulations. `new_job_runner` makes what runs long jobs over the
    files: child processes unless given.

    `done` gets Failed where ledger or store are away, and JournalDamaged where they have lost what was durable; then
    both are closed. Raises DirectoryInUse if another process has the cache directory.
    """

    files = ObjectFiles(cache, store, Blocks(store, ahead=new_worker("exacta-objects-ahead", 1)))
    parts = _assemble(ledger, files, scheduler, call_soon, witness, limits, new_worker, new_job_runner, elapsed_seconds)
    files.lock()

    def give_up(error: Exception) -> None:
        parts.release()
        done(error if isinstance(error, JournalDamaged) else Failed(str(error)))

    Steps(_open(parts, node_id, instance), done, give_up)


def _assemble(
    ledger: Ledger,
    files: ObjectFiles,
    scheduler: Scheduler,
    call_soon: Callable[..., object],
    witness: Witness,
    limits: Limits,
    new_worker: NewWorker,
    new_job_runner: Callable[[], JobRunner] | None,
    elapsed_seconds: Callable[[], float],
) -> Parts:
    def post(callback: Callable[..., None], *arguments: object) -> None:
        call_soon(callback, *arguments)

    def reload(then: Callable[[], None]) -> None:
        def loaded(_: Failed | None) -> None:
            tail.drop_before(catalog.tail_from)
            then()

        loader.load(loaded)

    # A simulation has no threads.
    catalog = Catalog(files, INDEX_FETCHES if new_worker is Worker else 1)
    worker = new_worker("exacta-journal-indexes", 1)
    loader = CatalogLoader(catalog, ledger, worker, post)
    tail = files.tail = Tail(ledger)
    return Parts(
        ledger=ledger,
        scheduler=scheduler,
        call_soon=call_soon,
        elapsed_seconds=elapsed_seconds,
        files=files,
        catalog=catalog,
        loader=loader,
        tail=tail,
        reader=ObjectReader(files, catalog, reload, call_soon, new_worker),
        worker=worker,
        witness=witness,
        new_worker=new_worker,
        new_job_runner=new_job_runner or (lambda: ChildProcess(files.directory)),
        limits=limits,
    )


async def _open(parts: Parts, node_id: int, instance: str) -> SharedFollower:
    failed = await call(parts.loader.load)
    if failed is not None:
        raise LedgerAway(failed.reason)
    await call_in(parts.worker, parts.post, parts.files.clear_leavings)
    follower = SharedFollower(parts, node_id, instance)
    await follower.check_witness()
    while True:
        try:
            await follower.go_round()
        except LedgerWavers:
            await Step[None](lambda done: parts.scheduler.call_later(POLL_SECONDS, done, None))
        else:
            return follower
