"""A block in which the database's transaction ends, by itself or by the program: both or neither, or it is said."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
import pytest

import exacta
from tests.databases import shop
from tests.databases.conftest import each_kind, on_postgres, on_sqlite
from tests.databases.test_two_phase import attempt, message, row
from tests.spark.clusters import read_committed

TRIGGER = """
CREATE TRIGGER no_seven BEFORE INSERT ON orders WHEN new.number = 7 BEGIN SELECT RAISE(ROLLBACK, 'no seven'); END
"""

Start = Callable[[shop.Place], Any]


def by_path(place: shop.Place) -> exacta.Sqlite:
    return exacta.Sqlite(place.address)


def given(place: shop.Place, **options: Any) -> exacta.Sqlite:
    return exacta.Sqlite(sqlite3.connect(place.address, **options))


def autocommitting(place: shop.Place) -> exacta.Sqlite:
    """Return a connection on which each statement is committed, and that knows the program's statement already."""
    connection = sqlite3.connect(place.address, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO orders VALUES (?)", (100,))
    connection.execute("ROLLBACK")
    return exacta.Sqlite(connection)


each_connection = pytest.mark.parametrize("open_database", [by_path, given, autocommitting])


@contextmanager
def both_of(place: shop.Place, database: Any) -> Iterator[Any]:
    """Run transactions over a database, and close its connection afterwards."""
    try:
        with exacta.two_phase(place.servers, transactional_id=place.topic, database=database) as both:
            yield both
    finally:
        if database.is_given:
            database.connection.close()


# --- SQLite rolls back by itself --------------------------------------------------------------------------------------


def conflict(connection: Any) -> None:
    connection.execute("INSERT OR ROLLBACK INTO orders VALUES (1)")


def trigger(connection: Any) -> None:
    connection.execute("INSERT INTO orders VALUES (7)")


def interrupted(connection: Any) -> None:
    """Be interrupted, as by another thread that calls `interrupt`."""
    connection.set_progress_handler(lambda: 1, 1)
    try:
        connection.execute("INSERT INTO orders SELECT value FROM json_each('[5, 6]')")
    finally:
        connection.set_progress_handler(None, 0)


def full_disk(connection: Any) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    try:
        connection.execute("INSERT INTO blobs VALUES (zeroblob(1000000))")
    finally:
        connection.execute("PRAGMA max_page_count = 1000000")


@pytest.mark.sweep
@on_sqlite
@each_connection
@pytest.mark.parametrize("fails", [conflict, trigger, interrupted, full_disk])
@pytest.mark.parametrize("goes_on", [True, False])
def test_what_sqlite_rolls_back_by_itself(
    place: shop.Place, open_database: Callable[[shop.Place], Any], fails: Callable[[Any], None], goes_on: bool
) -> None:
    """The program passes over the error, and goes on, or ends its block."""
    prepare = sqlite3.connect(place.address)
    prepare.execute(TRIGGER)
    prepare.execute("CREATE TABLE blobs (blob BLOB)")
    prepare.close()
    with both_of(place, open_database(place)) as both:

        def block(transaction: Any) -> None:
            transaction.execute("INSERT INTO orders VALUES (?)", (1,))
            transaction.produce(place.topic, "1")
            with pytest.raises(sqlite3.Error):
                fails(transaction.connection)
            assert not transaction.connection.in_transaction
            for statement in ("INSERT INTO orders VALUES (?)", "SELECT ?") if goes_on else ():
                with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                    transaction.execute(statement, (2,))
            transaction.produce(place.topic, "2")

        with pytest.raises(exacta.TwoPhaseError, match="SQLite has rolled the transaction back within the block"):
            attempt(both, block)
        assert shop.check(place) == 0
        shop.order(both, place)
    assert shop.check(place) == 1


@pytest.mark.sweep
@on_sqlite
@each_connection
@pytest.mark.parametrize(
    "ends",
    [
        lambda connection: connection.execute("COMMIT"),
        lambda connection: connection.execute("ROLLBACK"),
        lambda connection: connection.execute("END"),
        lambda connection: connection.executescript("INSERT INTO orders VALUES (8)"),
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        lambda connection: connection.__exit__(None, None, None),
        lambda connection: setattr(connection, "isolation_level", None),
    ],
)
def test_a_block_cannot_end_the_transaction_of_sqlite(
    place: shop.Place, open_database: Callable[[shop.Place], Any], ends: Callable[[Any], None]
) -> None:
    """The rows of before, and those of afterwards, belong to the transaction."""
    with both_of(place, open_database(place)) as both:
        with both.transaction() as transaction:
            transaction.execute("INSERT INTO orders VALUES (1)")
            transaction.produce(place.topic, "1")
            with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                ends(transaction.connection)
            transaction.execute("INSERT INTO orders VALUES (2)")
            transaction.produce(place.topic, "2")
        assert shop.rows(place) == shop.messages(place) == [1, 2]
        with pytest.raises(sqlite3.DatabaseError) as refused:
            attempt(both, row(3), lambda transaction: ends(transaction.connection))
        [note] = refused.value.__notes__
        assert "refuses" in note
        assert "within the block: the transaction ends with the block" in note
        assert shop.rows(place) == shop.messages(place) == [1, 2]


@on_sqlite
def test_a_block_has_savepoints_of_its_own(place: shop.Place) -> None:
    with place.both() as both, both.transaction() as transaction:
        for number in (1, 2):
            transaction.execute("SAVEPOINT mine")
            transaction.execute(f"INSERT INTO orders VALUES ({number})")
            transaction.execute("ROLLBACK TO mine" if number == 2 else "RELEASE mine")
        transaction.produce(place.topic, "1")
    assert shop.rows(place) == shop.messages(place) == [1]


@on_sqlite
@pytest.mark.parametrize("isolation_level", [None, "", "IMMEDIATE"])
def test_a_connection_of_the_users_is_as_it_was_afterwards(place: shop.Place, isolation_level: Any) -> None:
    connection = sqlite3.connect(place.address, isolation_level=isolation_level)
    with both_of(place, exacta.Sqlite(connection)) as both:
        for fails in (False, True, False):
            with pytest.raises(ZeroDivisionError) if fails else nullcontext(), both.transaction() as transaction:
                number = len(shop.messages(place)) + 1
                transaction.execute("INSERT INTO orders VALUES (?)", (number,))
                transaction.produce(place.topic, str(number))
                if fails:
                    raise ZeroDivisionError
            assert connection.isolation_level == isolation_level
            assert not connection.in_transaction
            connection.executescript("SELECT 1")
    assert shop.rows(place) == shop.messages(place) == [1, 2]


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def psycopg_given(place: shop.Place, **options: Any) -> exacta.Postgres:
    return exacta.Postgres(psycopg.connect(place.address, **options))


each_postgres = pytest.mark.parametrize(
    "open_database",
    [lambda place: exacta.Postgres(place.address), psycopg_given, lambda place: psycopg_given(place, autocommit=True)],
    ids=["by string", "given", "autocommitting"],
)


def execute_all(place: shop.Place, database: Any, *statements: str, fails: bool = False) -> None:
    """Run a block with these statements between two messages."""
    with both_of(place, database) as both, both.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES (1)")
        transaction.produce(place.topic, "1")
        for statement in statements:
            transaction.execute(statement)
        transaction.produce(place.topic, "2")
        if fails:
            raise ZeroDivisionError


@on_postgres
@each_postgres
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("then", [(), ("BEGIN",), ("BEGIN", "INSERT INTO orders VALUES (2)")])
def test_a_block_that_commits_in_postgresql_is_told_that_half_is_there(
    place: shop.Place, open_database: Callable[[shop.Place], Any], then: tuple[str, ...], fails: bool
) -> None:
    database = open_database(place)
    with pytest.raises(exacta.PartlyCommitted, match="the block has committed the transaction itself"):
        execute_all(place, database, "COMMIT", *then, fails=fails)
    assert (shop.rows(place), shop.messages(place)) == ([1], [])


@on_postgres
@each_postgres
@pytest.mark.parametrize("then", [(), ("BEGIN", "INSERT INTO orders VALUES (2)"), ("INSERT INTO orders VALUES (2)",)])
def test_a_block_that_rolls_back_in_postgresql(
    place: shop.Place, open_database: Callable[[shop.Place], Any], then: tuple[str, ...]
) -> None:
    database = open_database(place)
    autocommits = database.is_given and database.connection.autocommit
    error = exacta.PartlyCommitted if autocommits else exacta.TwoPhaseError
    with pytest.raises(error, match=r"rolled (the transaction )?back"):
        execute_all(place, database, "ROLLBACK", *then)
    stays = autocommits and then[:1] not in ((), ("BEGIN",))
    assert (shop.rows(place), shop.messages(place)) == ([2] if stays else [], [])


@on_postgres
def test_an_error_in_postgresql_that_is_passed_over(place: shop.Place) -> None:
    with place.both() as both:

        def pass_over(transaction: Any) -> None:
            with pytest.raises(psycopg.Error):
                transaction.execute("INSERT INTO orders VALUES (1)")

        with pytest.raises(exacta.TwoPhaseError, match="has failed, within the block"):
            attempt(both, row(1), message(place, "1"), pass_over)
        shop.order(both, place)
    assert shop.check(place) == 1


# --- partitions that are not there ------------------------------------------------------------------------------------


@each_kind
def test_a_named_partition_of_a_topic_that_is_not_there(place: shop.Place) -> None:
    """The topic is created, as without a partition: a write would be tried for a minute, under the database's lock."""
    with place.both() as both:
        with both.transaction() as transaction:
            transaction.produce(f"{place.topic}-new", "a", partition=0)
        assert [value for _, _, value in read_committed(place.servers, f"{place.topic}-new")] == [b"a"]
        for number in (1, -1):
            wrong = f"topic '{place.topic}' has 1 partitions, and none with the number {number}"
            with pytest.raises(exacta.TwoPhaseError, match=wrong):
                attempt(both, row(1), lambda each: each.produce(place.topic, "a", partition=number))  # noqa: B023
    assert shop.rows(place) == shop.messages(place) == []
