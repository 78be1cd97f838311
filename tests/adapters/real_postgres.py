"""One PostgreSQL for all tests of a process: started when the first one asks, and a schema for each.

It syncs as where it is used, to memory: processes are killed here, and never the machine.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import psycopg
import pytest
from psycopg import sql

from exacta.adapters.postgres import PostgresLedger, PostgresObjects
from exacta.store_addresses import PostgresAddress, postgres_address
from tests.databases.postgresql import PostgresServer, a_server, binaries

_ends = ExitStack()
_started: list[PostgresServer] = []
_numbers = count()
_made: set[str] = set()


def server() -> PostgresServer:
    """Return the server, which is started now if it is not yet."""
    if not _started:
        if binaries() is None:
            pytest.skip("there is no PostgreSQL: name one by EXACTA_TEST_POSTGRES")
        _started.append(_ends.enter_context(a_server(in_memory=True, fsync="on", max_connections="100")))
    return _started[0]


def end() -> None:
    """End the server, if there is one."""
    _started.clear()
    _ends.close()


def address(folder: object | None = None) -> PostgresAddress:
    """Return where the server is, or where it is reached through a socket in this folder."""
    return postgres_address(f"postgresql://postgres@/postgres?host={folder or server().folder}")


@contextmanager
def a_schema() -> Iterator[str]:
    """Yield the name of a schema that is not there yet, and is removed afterwards."""
    name = f"exacta_{next(_numbers)}"
    try:
        yield name
    finally:
        _drop(name)


def _drop(name: str) -> None:
    with psycopg.connect(server().conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(name)))


def objects(schema: str) -> PostgresObjects:
    """Return a store in this schema, which the first one makes."""
    if schema not in _made:
        asyncio.run(_make(schema))
        _made.add(schema)
    return PostgresObjects(address(), schema)


async def _make(schema: str) -> None:
    ledger = PostgresLedger(address(), schema)
    await ledger.open()
    ledger.close()


def fail_put(schema: str, carried_out: bool) -> None:
    """Let the next put fail: by an error, or by a commit that comes with a warning, as one of which a standby has not
    heard. The sequence counts on where a transaction is rolled back.
    """
    doing = "warning 'the standby may not have it'" if carried_out else "exception 'there is no room'"
    statements = f"""
        set search_path = {schema};
        create sequence puts;
        create function fail() returns trigger language plpgsql as $$
        begin
          if nextval('{schema}.puts') = 1 then raise {doing}; end if;
          return null;
        end $$;
        create constraint trigger fail after insert on object deferrable initially deferred
          for each row execute function fail();
    """
    with psycopg.connect(server().conninfo, autocommit=True) as connection:
        connection.execute(statements.encode())
