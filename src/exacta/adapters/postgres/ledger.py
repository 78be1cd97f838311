"""The ledger in PostgreSQL (decision 0073).

Theory of operation: `schema.sql` says what each call does; a call is one statement, and so one transaction. The lead
has a session of its own (`leading.py`). Two sessions read, one waits for the lead of another broker, one listens. Each
call is a task on the event loop.
"""

import asyncio
import json
import logging
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg

from exacta.adapters.postgres.leading import CONFIRMED, PART_BYTES, Leading
from exacta.adapters.postgres.listening import HintListener
from exacta.adapters.postgres.schema import prepare_schema
from exacta.adapters.postgres.sessions import (
    CALL_SECONDS,
    CONNECT_SECONDS,
    Connection,
    Doubt,
    PostgresRefused,
    PostgresServer,
    PostgresSession,
)
from exacta.ports.journal import Failed
from exacta.ports.shared import (
    Appended,
    BrokerSeen,
    CatalogChange,
    CatalogEntry,
    CatalogSeen,
    Claimed,
    Head,
    Kind,
    SharedBroker,
    Superseded,
    TailGroup,
)
from exacta.ports.shared.ledger import GONE_AFTER_MS, SWEEP_AFTER_MS, Done, Guarded
from exacta.store_addresses import PostgresAddress

logger = logging.getLogger("exacta.postgres")
T = TypeVar("T")

WAIT_SECONDS = 10
"""One statement waits so long for the lead. The next one finds out whether the server is still there."""
_GONE_AFTER = timedelta(milliseconds=GONE_AFTER_MS)
_SWEEP_AFTER = timedelta(milliseconds=SWEEP_AFTER_MS)
_REPLACED = "PostgreSQL was started again or replaced since the tail was read; what was not durable must be read again"

_HEAD = """
    select epoch, leader, beat, durable, tail_from, catalog, floor(extract(epoch from clock_timestamp()) * 1000)::bigint
    from head, pulse
"""
_BODY = f"""
    select substring(body from greatest($2 - part::bigint * {PART_BYTES}, 0)::int + 1
                     for greatest(least($2 + $3 - part::bigint * {PART_BYTES}, {PART_BYTES})
                                  - greatest($2 - part::bigint * {PART_BYTES}, 0), 0)::int)
    from tail
    where position = $1 and part between $2 / {PART_BYTES} and ($2 + $3 - 1) / {PART_BYTES}
      and position >= (select tail_cut from head)
    order by part
"""
_CATALOG = """
    select h.catalog, h.tail_from, e.key, e.kind, e.base, e."end", e.generation, e.last_checksum, e.size, e.checksum,
           e.index_bytes, e.index_checksum
    from head h left join entry e on e.removed is null order by e.kind, e.base, e.generation, e.key
"""
_BROKERS = """
    select node_id, instance, about, catalog, position,
           floor(extract(epoch from clock_timestamp() - seen_at) * 1000)::bigint as age_ms
    from broker where seen_at > clock_timestamp() - $1::interval order by node_id
"""


class PostgresLedger:
    """The ledger of one broker over PostgreSQL. `open` it before the first call, and `close` it."""

    def __init__(self, address: PostgresAddress, schema: str, *, call_seconds: float = CALL_SECONDS) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = PostgresServer(address, schema, call_seconds)
        self._server.on_change(self._on_change)
        self._readers = (self._server.session(), self._server.session())
        self._waiter = self._server.session(lock_timeout=f"{WAIT_SECONDS}s", statement_timeout="0")
        self._listener = HintListener(self._server, self._start)
        self._leading = Leading(self._server, self._read, self._start)
        self._is_appending = self._is_closed = False
        self._is_void = False
        """Another server, or another run of it, is there than the one that has shown the tail."""

    async def open(self) -> None:
        """Connect, make the schema if there is none, and begin to listen. Raises PostgresRefused or Doubt."""
        await self._readers[0].run(lambda connection: prepare_schema(self._server, connection))
        if not self._server.has_standbys:
            logger.warning("PostgreSQL has no synchronous standby: what is acknowledged is lost with its disk")
        self._start(self._listener.run())

    # --- what the leader does -----------------------------------------------------------------------------------------

    def append(self, group: TailGroup, done: Guarded[Appended]) -> None:
        """See `Ledger.append`."""
        assert not self._is_appending, "at most one append may be in flight"
        self._is_appending = True
        self._call(done, self._append, group)

    async def _append(self, group: TailGroup) -> Appended | Superseded | Failed:
        try:
            return await self._leading.append(group)
        finally:
            self._is_appending = False

    def confirm(self, epoch: int, done: Guarded[Appended]) -> None:
        """See `Ledger.confirm`."""
        self._call(done, self._confirm, epoch)

    async def _confirm(self, epoch: int) -> Appended | Superseded | Failed:
        # Not on the session of the lead, where it would wait for an append in flight.
        present = await self._read(lambda on: on.fetchval("select confirm($1)", epoch))
        if present != CONFIRMED:
            return Superseded(present)
        return Failed(_REPLACED) if self._is_void else Appended()

    def beat(self, epoch: int, durable: int, done: Guarded[Appended]) -> None:
        """See `Ledger.beat`."""
        self._call(done, self._leading.beat, epoch, durable)

    def accept_loss(self, epoch: int, end: int, done: Guarded[Appended]) -> None:
        """See `Ledger.accept_loss`."""
        self._call(done, self._guarded, "select accept_loss($1, $2)", epoch, end)

    async def _guarded(self, statement: str, *arguments: object) -> Appended | Superseded:
        present = await self._read(lambda on: on.fetchval(statement, *arguments))
        return Appended() if present == CONFIRMED else Superseded(present)

    def resign(self, epoch: int) -> None:
        """See `Ledger.resign`."""
        self._leading.resign(epoch)

    # --- what every broker does ---------------------------------------------------------------------------------------

    def found(self, about: bytes, done: Done[bytes]) -> None:
        """See `Ledger.found`."""
        self._call(done, self._read, lambda on: on.fetchval("select found($1)", about))

    def found_again(self, epoch: int, about: bytes, closes: bool, done: Guarded[Appended]) -> None:
        """See `Ledger.found_again`."""
        self._call(done, self._guarded, "select found_again($1, $2, $3)", epoch, about, closes)

    def read_head(self, done: Done[Head]) -> None:
        """See `Ledger.read_head`."""

        async def read(on: Connection) -> Head:
            return Head(*await on.fetchrow(_HEAD))

        self._call(done, self._read, read)

    def read_tail(self, position: int, max_bytes: int, done: Done[Sequence[TailGroup]]) -> None:
        """See `Ledger.read_tail`."""
        self._call(done, self._read_tail, position, max_bytes)

    async def _read_tail(self, position: int, max_bytes: int) -> Sequence[TailGroup] | Failed:
        rows = await self._read(lambda on: on.fetch("select * from read_tail($1, $2)", position, max_bytes))
        if self._is_void:
            self._is_void = False
            return Failed(_REPLACED)
        groups: list[TailGroup] = []
        for at, part, end, epoch, durable, catalog, _, body in rows:
            if part:
                groups[-1] = groups[-1]._replace(body=bytes(groups[-1].body) + body)
            else:
                groups.append(TailGroup(at, end, epoch, durable, catalog, body))
        return groups

    def read_body(self, position: int, start: int, size: int, done: Done[bytes]) -> None:
        """See `Ledger.read_body`."""

        async def read(on: Connection) -> bytes:
            return b"".join([piece for (piece,) in await on.fetch(_BODY, position, start, size)])

        self._call(done, self._read, read)

    def await_lead(self, done: Done[None]) -> None:
        """See `Ledger.await_lead`."""
        self._call(done, self._await_lead)

    async def _await_lead(self) -> None:
        key = 0
        while key != (key := await self._waiter.run(lambda on: on.fetchval("select lock_key from head"))) and key:
            while not await self._waiter.run(lambda on: self._has_ended(on, key), WAIT_SECONDS + CONNECT_SECONDS):
                pass

    async def _has_ended(self, on: Connection, key: int) -> bool:
        """Wait some seconds for the end of the session that holds the lock of this key."""
        try:
            await on.execute(f"select pg_advisory_xact_lock_shared(hashtext(current_schema()), {key})")
        except asyncpg.LockNotAvailableError:
            return False
        return True

    def claim(self, seen: Head, node_id: int, instance: str, done: Guarded[Claimed]) -> None:
        """See `Ledger.claim`."""
        self._call(done, self._claim, seen, node_id, instance)

    async def _claim(self, seen: Head, node_id: int, instance: str) -> Claimed | Superseded | Failed:
        claimed = await self._leading.claim(seen.epoch, node_id, instance)
        if isinstance(claimed, Claimed) and self._is_void:
            self._leading.resign(claimed.epoch)
            return Failed(_REPLACED)
        return claimed

    def on_hint(self, hinted: Callable[[], None]) -> None:
        """See `Ledger.on_hint`."""
        self._listener.on_hint = hinted

    def hint(self) -> None:
        """See `Ledger.hint`."""
        self._listener.hint()

    def announce(self, broker: SharedBroker, done: Guarded[Appended]) -> None:
        """See `Ledger.announce`."""
        self._call(done, self._announce, broker)

    async def _announce(self, broker: SharedBroker) -> Appended | Superseded:
        key = zlib.crc32(broker.instance.encode()) - (1 << 31)
        await self._listener.hold(key)
        arguments = (broker.node_id, broker.instance, key, broker.about, broker.catalog, broker.position, _GONE_AFTER)
        statement = "select announce($1, $2, $3, $4, $5, $6, $7)"
        lives = await self._read(lambda on: on.fetchval(statement, *arguments))
        return Appended() if lives else Superseded(0)

    def read_brokers(self, done: Done[Sequence[BrokerSeen]]) -> None:
        """See `Ledger.read_brokers`."""

        async def read(on: Connection) -> Sequence[BrokerSeen]:
            rows = await on.fetch(_BROKERS, _GONE_AFTER)
            return [BrokerSeen(SharedBroker(*row[:-1]), row[-1]) for row in map(tuple, rows)]

        self._call(done, self._read, read)

    # --- the catalog --------------------------------------------------------------------------------------------------

    def read_catalog(self, done: Done[CatalogSeen]) -> None:
        """See `Ledger.read_catalog`."""

        async def read(on: Connection) -> CatalogSeen:
            rows = [tuple(row) for row in await on.fetch(_CATALOG)]
            entries = [CatalogEntry(key, Kind(kind), *rest) for _, _, key, kind, *rest in rows if key is not None]
            return CatalogSeen(rows[0][0], rows[0][1], entries)

        self._call(done, self._read, read)

    def intend(self, keys: Sequence[str], done: Done[None]) -> None:
        """See `Ledger.intend`."""
        statement = (
            "insert into intent select key, clock_timestamp() from unnest($1::text[]) key "
            "on conflict (key) do update set begun_at = excluded.begun_at"
        )
        self._call(done, self._do, statement, list(keys))

    def change_catalog(self, epoch: int, change: CatalogChange, done: Guarded[int]) -> None:
        """See `Ledger.change_catalog`."""
        self._call(done, self._change_catalog, epoch, change)

    async def _change_catalog(self, epoch: int, change: CatalogChange) -> int | Superseded:
        added = json.dumps([entry._asdict() for entry in change.added])
        arguments = (epoch, added, list(change.removed), change.tail_from, _GONE_AFTER)
        version = await self._read(lambda on: on.fetchval("select change_catalog($1, $2, $3, $4, $5)", *arguments))
        return version if version >= 0 else Superseded(-1 - version)

    def sweep(self, done: Done[Sequence[str]]) -> None:
        """See `Ledger.sweep`."""

        async def sweep(on: Connection) -> Sequence[str]:
            return [key for (key,) in await on.fetch("select sweep($1, $2)", _GONE_AFTER, _SWEEP_AFTER)]

        self._call(done, self._read, sweep)

    def forget(self, keys: Sequence[str], done: Done[None]) -> None:
        """See `Ledger.forget`."""
        self._call(done, self._do, "delete from garbage where key = any($1::text[])", list(keys))

    # --- calls --------------------------------------------------------------------------------------------------------

    @property
    def _reader(self) -> PostgresSession:
        return min(self._readers, key=lambda session: session.waiting)

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._reader.run(work)

    async def _do(self, statement: str, *arguments: object) -> None:
        await self._reader.run(lambda on: on.execute(statement, *arguments))

    def _call(self, done: Callable[[Any], None], work: Callable[..., Awaitable[Any]], *arguments: object) -> None:
        """Call back with what a call returns, or with why nobody knows."""

        async def call() -> None:
            try:
                result = await work(*arguments)
            except (Doubt, PostgresRefused) as error:
                result = Failed(str(error))
            except Exception as defect:  # a leader that is not answered would stand still, and go on beating
                logger.exception("a call of the ledger has a defect")
                result = Failed(repr(defect))
            self._loop.call_soon(self._hand_over, done, result)

        self._start(call())

    def _hand_over(self, done: Callable[[Any], None], result: object) -> None:
        if not self._is_closed:
            done(result)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_change(self) -> None:
        """Take what was shown of the tail for void: the server that is there now may never have had it."""
        self._is_void = True

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """See `Ledger.close`."""
        self._is_closed = True
        self._server.close()  # before the tasks: asyncpg asks the server to cancel a call that is cancelled here
        for task in self._tasks:
            task.cancel()
