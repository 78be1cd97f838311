"""Sessions of PostgreSQL: one connection each, made when it is needed, and ended after any doubt.

Theory of operation: a call that was cancelled, came too late or lost its connection may have been carried out. So its
connection is terminated, which leaves the server to finish or to roll back, and the caller is told `Doubt`. A cancel
request is never sent: a commit that waits for its standby would answer it with success and a *warning* that the standby
may not have it. Somebody else's cancel does the same, so a warning is a doubt, too.

All sessions of a broker go to one run of one server. What one session has shown is made durable by another one's commit
only if both speak to the same server. So `PostgresServer` remembers which one it is, by the time of its start, and ends
all other sessions where a session finds another.

Each host of the address is tried for some seconds: a machine that is gone does not answer that it is. A server that
takes no writes is passed over, so that the one that was promoted is found.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeAlias, TypeVar

import asyncpg

from exacta.store_addresses import PostgresAddress

logger = logging.getLogger("exacta.postgres")
T = TypeVar("T")
Connection: TypeAlias = asyncpg.Connection

CONNECT_SECONDS = 2.0
"""A host may take so long to let a session in."""
CALL_SECONDS = 5.0
"""A statement may take so long, its commit included. The server gives up a little earlier."""
OLDEST_VERSION = 14
"""This version of PostgreSQL is the first one that notices a client that is gone while a statement runs."""

_SETTINGS: Mapping[str, str] = {
    "application_name": "exacta",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "client_min_messages": "warning",
    "idle_in_transaction_session_timeout": "1s",
    "tcp_keepalives_idle": "1",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "jit": "off",
}
_LOOK = """
    select pg_backend_pid() as pid, pg_postmaster_start_time() as started_at, current_setting('fsync') as fsync,
           current_setting('full_page_writes') as full_page_writes,
           current_setting('server_version_num')::int / 10000 as version,
           current_setting('synchronous_standby_names') as standbys
"""


class Doubt(Exception):
    """Nobody knows whether a call was carried out, or it was not; the message is one line for the log."""


class PostgresRefused(Exception):
    """PostgreSQL is not as a broker needs it; the message is one line for the operator."""


async def nothing_more(connection: Connection) -> None:
    """Do nothing with a connection that was made."""


class PostgresServer:
    """The PostgreSQL that a broker uses: its address, the schema, and which run of which server it is."""

    def __init__(self, address: PostgresAddress, schema: str, call_seconds: float) -> None:
        self.address = address
        self.call_seconds = call_seconds
        self.schema = schema
        self.has_standbys = True
        self._sessions: list[PostgresSession] = []
        self._hosts = list(address.hosts)
        """The one that let the last session in comes first: each that is gone costs `CONNECT_SECONDS`."""
        self._run: object = None
        self._changed: Callable[[], None] = lambda: None

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call back when sessions go to another server, or to another run of the same."""
        self._changed = changed

    def session(
        self,
        *,
        once: bool = False,
        on_connected: Callable[[Connection], Awaitable[None]] = nothing_more,
        **settings: str,
    ) -> "PostgresSession":
        """Return a session with settings of its own; one that is there `once` never connects again."""
        session = PostgresSession(self, settings, on_connected, once=once)
        self._sessions.append(session)
        return session

    def leave(self, session: "PostgresSession") -> None:
        """Forget a session that is not used any more."""
        if session in self._sessions:
            self._sessions.remove(session)

    def close(self) -> None:
        """End all sessions for good."""
        for session in self._sessions:
            session.close()

    async def connect(self, settings: Mapping[str, str]) -> Connection:
        """Connect to the first host that takes writes. Raises Doubt, PostgresRefused."""
        found: list[str] = []
        for host, port in tuple(self._hosts):
            try:
                return await self._connect(host, port, settings)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
                found.append(f"{host}:{port}: {_explained(error)}")
        raise Doubt(f"no PostgreSQL is reached ({'; '.join(found)})")

    async def _connect(self, host: str, port: int, settings: Mapping[str, str]) -> Connection:
        connection: Connection = await asyncpg.connect(
            self.address.url,
            host=host,
            port=port,
            timeout=CONNECT_SECONDS,
            target_session_attrs="read-write",
            max_cached_statement_lifetime=0,
            server_settings={**_SETTINGS, **self._times, "search_path": self.schema, **settings},
        )
        timer = asyncio.get_running_loop().call_later(CONNECT_SECONDS, connection.terminate)
        try:
            with suppress(asyncpg.PostgresError):  # the server's system may have no way to notice
                await connection.execute("set client_connection_check_interval = '1s'")
            seen = await connection.fetchrow(_LOOK)
            assert seen is not None
            self.check(seen, connection.get_server_pid())
        except BaseException:
            connection.terminate()
            raise
        finally:
            timer.cancel()
        run = (host, port, seen["started_at"])
        if self._run not in (None, run):
            for session in self._sessions:
                session.end()
            logger.warning("PostgreSQL was started again, or another one has taken its place: %s:%d", host, port)
            self._changed()
        self._run = run
        self._hosts.sort(key=lambda each: each != (host, port))
        return connection

    @property
    def _times(self) -> Mapping[str, str]:
        """The server gives up a little earlier than this broker does."""
        ms = int(self.call_seconds * 1_000)
        return {"statement_timeout": f"{ms * 9 // 10}ms", "lock_timeout": f"{ms * 8 // 10}ms"}

    def check(self, seen: Mapping[str, object], pid: int) -> None:
        """Raise PostgresRefused unless the server that was seen keeps what it has confirmed, and its sessions."""
        if int(str(seen["version"])) < OLDEST_VERSION:
            raise PostgresRefused(f"PostgreSQL is of version {seen['version']}: {OLDEST_VERSION} or newer is needed")
        if seen["pid"] != pid:
            raise PostgresRefused("a pooler stands before PostgreSQL, which keeps no session locks: connect directly")
        for name in ("fsync", "full_page_writes"):
            if seen[name] != "on":
                raise PostgresRefused(
                    f"PostgreSQL has {name}={seen[name]}: a crash would lose what was confirmed; set it on"
                )
        self.has_standbys = bool(seen["standbys"])


class PostgresSession:
    """One connection, which one call at a time uses, in the order in which they come."""

    def __init__(
        self,
        server: PostgresServer,
        settings: Mapping[str, str],
        on_connected: Callable[[Connection], Awaitable[None]],
        *,
        once: bool,
    ) -> None:
        self._server = server
        self._on_connected = on_connected
        self._settings = settings
        self._once = once
        self._may_connect = True
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None
        self._warning = ""
        self.waiting = 0
        """The calls that wait or run."""

    async def run(self, work: Callable[[Connection], Awaitable[T]], seconds: float | None = None) -> T:
        """Run a call on the connection, which is made if there is none. Raises Doubt, PostgresRefused."""
        self.waiting += 1
        try:
            async with self._turn:
                return await self._run(work, seconds or self._server.call_seconds)
        finally:
            self.waiting -= 1

    async def _run(self, work: Callable[[Connection], Awaitable[T]], seconds: float) -> T:
        connection = self._connection
        if connection is None or connection.is_closed():
            if not self._may_connect:
                raise Doubt("PostgreSQL: the session was lost")
            self._may_connect = not self._once
            connection = await self._server.connect(self._settings)
            connection.add_log_listener(self._note)
            self._connection, self._warning = connection, ""
            await self._use(connection, self._on_connected, CONNECT_SECONDS)
        return await self._use(connection, work, seconds)

    async def _use(
        self,
        connection: Connection,
        work: Callable[[Connection], Awaitable[T]],
        seconds: float,
    ) -> T:
        is_late = False

        def give_up() -> None:
            nonlocal is_late
            is_late = True
            connection.terminate()

        timer = asyncio.get_running_loop().call_later(seconds, give_up)
        try:
            result = await work(connection)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            self.end()
            reason = f"it has not answered within {seconds:g} s" if is_late else _explained(error)
            raise Doubt(f"PostgreSQL: {reason}") from error
        except BaseException:
            self.end()
            raise
        finally:
            timer.cancel()
        if self._warning:
            self.end()
            raise Doubt(f"PostgreSQL warns: {self._warning}")
        return result

    def _note(self, connection: object, message: "asyncpg.PostgresLogMessage") -> None:
        self._warning = one_line(message)

    @property
    def is_connected(self) -> bool:
        """True if there is a connection."""
        return self._connection is not None and not self._connection.is_closed()

    def end(self) -> None:
        """End the connection at once; a call on it gets Doubt."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    def close(self) -> None:
        """End the connection, and make no other one."""
        self._may_connect = False
        self.end()


def one_line(error: object) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _explained(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"it has not answered within {CONNECT_SECONDS:g} s"
    if isinstance(error, socket.gaierror):
        return f"its name is not known ({error.strerror})"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "it takes no writes"
    text = one_line(error)
    if "unsupported startup parameter" in text:
        return f"a pooler stands before it ({text}): connect directly"
    return text
