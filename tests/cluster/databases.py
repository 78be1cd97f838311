"""PostgreSQL and its synchronous standby. The standby takes over when it is told to, and gets one of its own then."""

import contextlib
import time
from types import TracebackType
from typing import Self

import psycopg

from tests.databases.postgresql import PostgresServer, a_server

_SETTINGS = {"fsync": "on", "max_connections": "100"}
_STREAMS_WITHIN_S = 60.0


class Databases:
    """The primary, whose commits wait for its standby."""

    def __init__(self) -> None:
        self._stacks: list[contextlib.ExitStack] = []
        self.servers: list[PostgresServer] = []
        """The two, in the order of the hosts in the brokers' URL; which of them is the primary changes."""
        self._primary = 0

    def __enter__(self) -> Self:
        try:
            self.servers.append(self._start(0, None))
            self.servers.append(self._start(1, self.primary))
            with psycopg.connect(self.primary.conninfo, autocommit=True) as connection:
                # The standby gets this, too: it waits for its own standby once it has taken over.
                connection.execute("alter system set synchronous_standby_names = 'standby'")
                connection.execute("select pg_reload_conf()")
            self.wait_for_the_standby()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Leave nothing of them."""
        for each in self._stacks:
            each.close()

    @property
    def primary(self) -> PostgresServer:
        """The one that takes commits."""
        return self.servers[self._primary]

    def restart_killed(self) -> None:
        """Kill the primary, and start it again."""
        self.primary.restart_killed()

    def fail_over(self) -> int:
        """Kill the primary, let the standby take over, and give it a standby; return which of the two is new now."""
        lost = self._primary
        self.primary.kill()
        self._primary = 1 - lost
        with psycopg.connect(self.primary.conninfo, autocommit=True) as connection:
            connection.execute("select pg_promote()")
        self._stacks[lost].close()
        # What is committed meanwhile waits until it streams.
        self.servers[lost] = self._start(lost, self.primary)
        return lost

    def wait_for_the_standby(self) -> None:
        """Return when the standby streams."""
        deadline = time.monotonic() + _STREAMS_WITHIN_S
        asked = "select 1 from pg_stat_replication where state = 'streaming' and sync_state = 'sync'"
        while True:
            with psycopg.connect(self.primary.conninfo, autocommit=True) as connection:
                if connection.execute(asked).fetchone() is not None:
                    return
            assert time.monotonic() < deadline, "the standby does not stream"
            time.sleep(0.1)

    def _start(self, number: int, primary: PostgresServer | None) -> PostgresServer:
        stack = contextlib.ExitStack()
        server = stack.enter_context(a_server(primary, in_memory=True, **_SETTINGS))
        self._stacks[number : number + 1] = [stack]
        return server
