"""Opening a shared log: as a follower, whoever leads it."""

import time
from collections.abc import Callable

from exacta.adapters.local.files import Files
from exacta.adapters.local.worker import NewWorker, Worker
from exacta.adapters.shared.blocks import Blocks
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.catalog_loader import CatalogLoader
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.follower import POLL_SECONDS, SharedFollower
from exacta.adapters.shared.reading import ObjectReader
from exacta.adapters.shared.shared_log import LedgerAway, LedgerWavers, Parts, Witness
from exacta.adapters.shared.steps import Step, Steps, call
from exacta.adapters.shared.tail import Tail
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.scheduler import Scheduler
from exacta.ports.shared import Ledger, ObjectStore

SEGMENT_BYTES = 64 << 20
"""So much of the tail is offloaded at once: one put, which is whole or not there at all."""


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
    segment_bytes: int = SEGMENT_BYTES,
    new_worker: NewWorker = Worker,
    elapsed_seconds: Callable[[], float] = time.monotonic,
) -> None:
    """Open the log that this ledger and this store keep, and hand out a follower.

    `call_soon(callback, *arguments)` is called from any thread, and runs the callback on the event loop, where
    `scheduler` is. The follower, and the journal that it hands out, own the ledger: closing them closes it. `cache` is
    the cache directory. One `witness` serves a broker for as long as its process lives. A leader seals a segment of the
    tail once it has `segment_bytes`. `new_worker` makes what runs jobs that block: threads, except in simulations.

    `done` gets Failed where ledger or store are away, and JournalDamaged where they have lost what was durable; then
    the ledger is closed.
    """

    def post(callback: Callable[..., None], *arguments: object) -> None:
        call_soon(callback, *arguments)

    files = ObjectFiles(cache, store, Blocks(store))
    catalog = Catalog(files)
    worker = new_worker("exacta-shared-keep", 1)
    loader = CatalogLoader(catalog, ledger, worker, post)
    followers: list[SharedFollower] = []

    def reload(then: Callable[[], None]) -> None:
        def loaded(_: Failed | None) -> None:
            for follower in followers:
                follower.catalog_taken()
            then()

        loader.load(loaded)

    tail = Tail(ledger)
    files.tail = tail
    files.lock()
    parts = Parts(
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
        segment_bytes=segment_bytes,
    )

    async def steps() -> SharedFollower:
        failed = await call(loader.load)
        if failed is not None:
            raise LedgerAway(failed.reason)
        follower = SharedFollower(parts, node_id, instance)
        followers.append(follower)
        while True:
            try:
                await follower.go_round()
            except LedgerWavers:
                await Step[None](lambda done: scheduler.call_later(POLL_SECONDS, done, None))
            else:
                return follower

    def give_up(error: Exception) -> None:
        parts.release()
        done(error if isinstance(error, JournalDamaged) else Failed(str(error)))

    Steps(steps(), done, give_up)
