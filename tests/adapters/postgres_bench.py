"""The ledger in a real PostgreSQL, for the tests of its contract, with a proxy between each broker and the server.

A cut resets connections: one that leaves them open and silent is what keepalives are for, and cannot be made here. The
proxy reads what a broker sends as far as it must to find the call whose reply is to be lost: the first one of the kinds
that tests lose.
"""

import asyncio
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql

from exacta.adapters.postgres import PostgresLedger
from exacta.ports.shared import Ledger
from exacta.store_addresses import PostgresAddress
from tests.adapters import real_postgres
from tests.adapters.ledger_benches import Ability

_SOCKET = ".s.PGSQL.5432"
_LOST = re.compile(rb"append_\d\(|claim\(")


class Proxy:
    """A way from one broker to the server, which can be cut, and can lose a reply."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        self.is_cut = self.loses_reply = False
        self._target = str(target / _SOCKET)
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_unix_server(self._serve, str(self.folder / _SOCKET))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self.is_cut:
            writer.transport.abort()
            return
        with suppress(OSError, asyncio.IncompleteReadError):
            to_read, to_write = await asyncio.open_unix_connection(self._target)
            self._writers.add(to_write)
            link = _Link()
            answers = asyncio.ensure_future(self._answer(link, to_read, writer))
            self._running.add(answers)
            try:
                await self._ask(link, reader, to_write)
            finally:
                to_write.close()
                writer.close()
                with suppress(OSError):
                    await answers
                self._running.discard(answers)

    async def _ask(self, link: "_Link", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = b""  # the first message of a connection has none
        while True:
            length = await reader.readexactly(4)
            content = await reader.readexactly(int.from_bytes(length, "big") - 4)
            if kind == b"P" and _LOST.search(content):
                link.watched.add(content[: content.index(0)])
            elif kind == b"B" and self.loses_reply and content.split(b"\0", 2)[1] in link.watched:
                self.loses_reply, link.is_lost = False, True
            writer.write(kind + length + content)
            await writer.drain()
            kind = await reader.readexactly(1)

    async def _answer(self, link: "_Link", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if link.is_lost:
                break
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    def cut(self) -> None:
        """Reset all connections, and let no new one through."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self) -> None:
        """End everything."""
        self.cut()
        if self._server is not None:
            self._server.close()
        while self._running:
            await asyncio.wait(self._running)


class _Link:
    """One connection through a proxy."""

    def __init__(self) -> None:
        self.watched: set[bytes] = set()
        """The names of its prepared statements whose replies may be lost."""
        self.is_lost = False


class PostgresBench:
    """A schema in a real PostgreSQL."""

    abilities = frozenset(Ability)

    def __init__(self, schema: str, folder: Path, timeout_seconds: float) -> None:
        self.loop = asyncio.new_event_loop()
        self.schema = schema
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._server = real_postgres.server()
        self._open: dict[Ledger, Proxy] = {}
        self._proxies: list[Proxy] = []
        self._direct: list[Ledger] = []

    def open(self) -> Ledger:
        return self.loop.run_until_complete(self._open_ledger())

    async def _open_ledger(self) -> Ledger:
        folder = self._folder / str(len(self._proxies))
        folder.mkdir()
        proxy = Proxy(folder, self._server.folder)
        self._proxies.append(proxy)
        await proxy.start()
        ledger = await self._ledger(real_postgres.address(folder))
        self._open[ledger] = proxy
        return ledger

    def open_at(self, address: PostgresAddress) -> Ledger:
        """Return a ledger without a proxy, of any server."""
        ledger = self.loop.run_until_complete(self._ledger(address))
        self._direct.append(ledger)
        return ledger

    async def _ledger(self, address: PostgresAddress) -> PostgresLedger:
        ledger = PostgresLedger(address, self.schema, call_seconds=self._timeout_seconds)
        try:
            await ledger.open()
        except BaseException:
            ledger.close()
            raise
        return ledger

    def pass_ms(self, ms: int) -> None:
        with psycopg.connect(self._server.conninfo, autocommit=True) as connection:
            for table, column in (("broker", "seen_at"), ("intent", "begun_at"), ("entry", "removed_at")):
                statement = sql.SQL("update {} set {} = {} - {} * interval '1 ms'")
                names = sql.Identifier(self.schema, table), sql.Identifier(column), sql.Identifier(column)
                connection.execute(statement.format(*names, sql.Literal(ms)))

    def cut(self, ledger: Ledger) -> None:
        self._open[ledger].cut()

    def mend(self, ledger: Ledger) -> None:
        self._open[ledger].is_cut = False

    def lose_reply(self, ledger: Ledger) -> None:
        self._open[ledger].loses_reply = True

    def restart(self) -> None:
        self._server.restart_killed()

    def close(self) -> None:
        """End the ledgers and their proxies."""
        for ledger in (*self._open, *self._direct):
            ledger.close()
        self.loop.run_until_complete(self._stop())
        self.loop.close()

    async def _stop(self) -> None:
        for proxy in self._proxies:
            await proxy.stop()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)


@contextmanager
def postgres_bench(timeout_seconds: float) -> Iterator[PostgresBench]:
    """Yield a bench over a new schema."""
    with real_postgres.a_schema() as schema, tempfile.TemporaryDirectory(prefix="pg-") as folder:
        bench = PostgresBench(schema, Path(folder), timeout_seconds)
        try:
            yield bench
        finally:
            bench.close()
