"""The object store in PostgreSQL: the table `object`, for a log that has no other store.

Theory of operation: a caller waits in a thread of its own, and asyncpg needs an event loop. So a store has a loop
in a thread, which begins with the first call. A second driver, which blocks, would have to be taught again what a
doubt is, which server takes writes, and which settings a session needs. An object is in parts, which one transaction
puts. A store that was pickled connects for itself.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from typing import TypeVar

from exacta.adapters.postgres.sessions import Connection, Doubt, PostgresRefused, PostgresServer, PostgresSession
from exacta.ports.journal import Buffer
from exacta.ports.shared.objects import Missing, StoreFailed
from exacta.store_addresses import PostgresAddress

T = TypeVar("T")

PART_BYTES = 4 << 20
"""An object is kept in parts of this size."""
CALL_SECONDS = 60.0
"""A call may take so long: 64 MiB and their commit, where others write as well."""
_CLOSED = "the store was closed"
_LAST_PART = (1 << 31) - 1
_GET = f"""
    select substring(bytes from greatest($2 - part::bigint * {PART_BYTES}, 0)::int + 1
                     for (least($3 - part::bigint * {PART_BYTES}, {PART_BYTES})
                          - greatest($2 - part::bigint * {PART_BYTES}, 0))::int)
    from object where key = $1 and part between $2 / {PART_BYTES} and ($3 - 1) / {PART_BYTES} order by part
"""


class PostgresObjects:
    """Implement `exacta.ports.shared.ObjectStore` in the schema of a ledger, which has been opened once."""

    def __init__(self, address: PostgresAddress, schema: str) -> None:
        self._address = address
        self._schema = schema
        self._lock = threading.Lock()
        self._runner: _Runner | None = None
        self._is_closed = False

    def __reduce__(self) -> tuple[type["PostgresObjects"], tuple[PostgresAddress, str]]:
        return PostgresObjects, (self._address, self._schema)

    def put(self, key: str, data: Sequence[Buffer]) -> None:
        """See `ObjectStore.put`."""

        async def put(on: Connection) -> None:
            async with on.transaction():
                for number, part in enumerate(_parts(data)):
                    statement = "insert into object values ($1, $2, $3) on conflict (key, part) do nothing"
                    await on.execute(statement, key, number, part)

        self._run(put)

    def get(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        end = _LAST_PART * PART_BYTES if size is None else start + size

        async def get(on: Connection) -> bytes | None:
            found = [piece for (piece,) in await on.fetch(_GET, key, start, end)] if end > start else []
            if not found and not await on.fetchval("select exists (select from object where key = $1)", key):
                return None
            return b"".join(found)

        found = self._run(get)
        if found is None:
            raise Missing(f"there is no object {key}")
        return found

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`."""
        to_delete = list(keys)
        self._run(lambda on: on.execute("delete from object where key = any($1::text[])", to_delete))

    def close(self) -> None:
        """See `ObjectStore.close`: who waits for a call is told that it has failed."""
        with self._lock:
            self._is_closed = True
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def _run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        with self._lock:
            if self._is_closed:
                raise StoreFailed(_CLOSED)
            runner = self._runner = self._runner or _Runner(self._address, self._schema)
            running = runner.start(work)
        try:
            return running.result()
        except (Doubt, PostgresRefused) as error:
            raise StoreFailed(str(error)) from error
        except CancelledError as error:
            raise StoreFailed(_CLOSED) from error


class _Runner:
    """A loop in a thread of its own, with as many sessions as calls run at once."""

    def __init__(self, address: PostgresAddress, schema: str) -> None:
        self._server = PostgresServer(address, schema, CALL_SECONDS)
        self._idle: list[PostgresSession] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="exacta-objects", daemon=True)
        self._thread.start()

    def start(self, work: Callable[[Connection], Awaitable[T]]) -> Future[T]:
        """Start a call; it raises Doubt and PostgresRefused."""
        return asyncio.run_coroutine_threadsafe(self._on_a_session(work), self._loop)

    async def _on_a_session(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        session = self._idle.pop() if self._idle else self._server.session(idle_in_transaction_session_timeout="20s")
        try:
            return await session.run(work)
        finally:
            self._idle.append(session)

    def close(self) -> None:
        """End the sessions, the loop and its thread."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        """End the sessions, and the calls that run: who waits for one is told, and not left waiting for ever."""
        self._server.close()  # before the calls: asyncpg asks the server to cancel a call that is cancelled here
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(0)  # the transports say that they are closed


def _parts(data: Sequence[Buffer]) -> Iterator[bytes]:
    """Cut buffers that follow one another into parts; an object without a byte has an empty one."""
    part = bytearray()
    is_first = True
    for buffer in data:
        rest = memoryview(buffer).cast("B")
        while rest:
            taken = rest[: PART_BYTES - len(part)]
            part += taken
            rest = rest[len(taken) :]
            if len(part) == PART_BYTES:
                yield bytes(part)
                part.clear()
                is_first = False
    if part or is_first:
        yield bytes(part)
