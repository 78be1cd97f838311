"""The schema in PostgreSQL: made by the first broker, and looked at by each."""

from importlib.resources import files

import asyncpg

from exacta.adapters.postgres.sessions import Connection, PostgresRefused, PostgresServer, one_line

VERSION = 1
"""The version of `schema.sql`. A broker works on its own version only."""


async def prepare_schema(server: PostgresServer, connection: Connection) -> None:
    """Make the schema unless it is there. Raises PostgresRefused where it cannot be used."""
    name = server.schema
    try:
        async with connection.transaction():
            # Two brokers that start at once would both make it.
            await connection.execute("select pg_advisory_xact_lock(hashtext($1))", f"exacta {name}")
            if not await connection.fetchval("select to_regnamespace($1) is not null", f'"{name}"'):
                await connection.execute(f'create schema "{name}"')
            if not await connection.fetchval("select to_regclass($1) is not null", f'"{name}".cluster'):
                await connection.execute((files(__package__) / "schema.sql").read_text())
                await connection.execute("insert into cluster (version) values ($1)", VERSION)
                await connection.execute("insert into head default values; insert into pulse default values")
    except asyncpg.InsufficientPrivilegeError as error:
        raise PostgresRefused(f"PostgreSQL's user may not make the schema '{name}': {one_line(error)}") from error
    version = await connection.fetchval("select version from cluster")
    if version != VERSION:
        raise PostgresRefused(f"the schema '{name}' is of version {version}: this Exacta works with version {VERSION}")
