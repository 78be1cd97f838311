"""The stores that the brokers of a cluster share: the ledger in PostgreSQL, the objects there or in an object store.

Imported only by a broker of a cluster.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from exacta.adapters.local.child_process import JobRunner
from exacta.adapters.local.files import Files, PosixFiles
from exacta.adapters.shared import shared_log
from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.opening import open_follower
from exacta.adapters.shared.shared_log import Witness
from exacta.adapters.shared.space import SEGMENT_BYTES
from exacta.config.configuration import Configuration
from exacta.ports.following import Follower
from exacta.ports.journal import Failed, JournalDamaged
from exacta.ports.shared import Ledger, ObjectStore, StoreFailed
from exacta.server.errors import ServerError
from exacta.server.identity import CACHE_DIRECTORY
from exacta.server.journals import OpenShared, SharedPlace
from exacta.server.requirement import require
from exacta.store_addresses import PostgresAddress, objects_address, postgres_address


class FollowedStore:
    """Implement `exacta.server.journals.SharedStore` over any ledger and any object store."""

    def __init__(
        self,
        place: SharedPlace,
        witness: Witness,
        ledger: Ledger,
        objects: ObjectStore,
        new_job_runner: Callable[[Files], JobRunner] | None = None,
    ) -> None:
        """`new_job_runner` makes what runs long jobs over the cache: child processes, but in tests."""
        self.ledger = ledger
        self._place = place
        self._witness = witness
        self._objects = objects
        self._new_job_runner = new_job_runner

    async def follow(self) -> Follower:
        """See `SharedStore.follow`."""
        opened: asyncio.Future[SharedFollower | Failed | JournalDamaged] = asyncio.get_running_loop().create_future()
        cache = PosixFiles(self._place.directory / CACHE_DIRECTORY)
        open_follower(
            self.ledger,
            self._objects,
            cache,
            self._place.scheduler,
            self._place.call_soon,
            node_id=self._place.configuration.node_id,
            instance=self._place.instance,
            witness=self._witness,
            limits=shared_log.Limits(segment_bytes=min(self._place.configuration.log_segment_bytes, SEGMENT_BYTES)),
            done=opened.set_result,
            new_job_runner=None if self._new_job_runner is None else partial(self._new_job_runner, cache),
        )
        found = await asyncio.shield(opened)
        if isinstance(found, JournalDamaged):
            raise found
        if isinstance(found, Failed):
            raise ConnectionError(found.reason)
        return found

    def close(self) -> None:
        """See `SharedStore.close`."""
        self.ledger.close()
        self._objects.close()


def _objects(configuration: Configuration, address: PostgresAddress) -> ObjectStore:
    """Return the store that the options name. Raises ServerError."""
    if not configuration.objects:
        from exacta.adapters.postgres import PostgresObjects

        return PostgresObjects(address, configuration.postgres_schema)
    require("obstore", "an object store needs obstore", extra="cluster")
    from exacta.adapters.objects import ObstoreObjects

    credentials = configuration.objects_credentials_file
    try:
        return ObstoreObjects(objects_address(configuration.objects), Path(credentials) if credentials else None)
    except StoreFailed as error:
        raise ServerError(f"objects: {error}") from error


async def open_postgres(configuration: Configuration) -> tuple[Ledger, ObjectStore]:
    """Open what the options name. Raises ServerError where another try would end in the same way, OSError where not."""
    require("asyncpg", "a log in PostgreSQL needs asyncpg", extra="cluster")
    from exacta.adapters.postgres import Doubt, PostgresLedger, PostgresRefused

    address = postgres_address(configuration.postgres)
    objects, ledger = _objects(configuration, address), PostgresLedger(address, configuration.postgres_schema)
    try:
        await ledger.open()
    except BaseException as error:
        ledger.close()
        objects.close()
        if isinstance(error, PostgresRefused):
            raise ServerError(str(error)) from error
        if isinstance(error, Doubt):
            raise ConnectionError(str(error)) from error
        raise
    return ledger, objects


def in_postgres(place: SharedPlace) -> OpenShared:
    """Return what opens them at the addresses that the options name. Raises ServerError."""
    require("asyncpg", "a log in PostgreSQL needs asyncpg", extra="cluster")
    witness = Witness()

    async def open_store() -> FollowedStore:
        return FollowedStore(place, witness, *await open_postgres(place.configuration))

    return open_store
