"""The broker dies, the database dies, or somebody interrupts the program, at every point of a transaction."""

import contextlib
import logging
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest

import exacta
from tests.databases import shop
from tests.databases.conftest import NewPlace, each_kind, on_postgres, on_sqlite
from tests.databases.points import hooked
from tests.databases.postgresql import PostgresServer
from tests.shares import share_of

LOST = (exacta.TwoPhaseError, exacta.OutcomeUnknown, psycopg.Error)


def at_point(number: int, act: Callable[[], object]) -> Callable[[int, str], None]:
    """Return a hook that acts once."""

    def hook(at: int, name: str) -> None:
        if at == number:
            act()

    return hook


def points_of_a_life(place: shop.Place) -> list[str]:
    """Return the points of a life that finds the tables there, and nothing open."""
    shop.life(place, 1)
    names: list[str] = []
    with hooked(lambda at, name: names.append(name)):
        shop.life(place, 1)
    return names


@each_kind
@pytest.mark.timeout(600)
def test_the_broker_is_killed_at_each_point(place: shop.Place, broker: exacta.Broker) -> None:
    """It is back at once: the program does not notice."""
    count = len(points_of_a_life(place))
    for kills, number in enumerate(share_of(range(1, count + 1)), 1):
        with hooked(at_point(number, lambda: broker.restart(clean=False))):
            shop.life(place, 1)
        assert shop.check_quickly(place) == 2 + kills
    shop.check(place)


def give_up(both: Any, place: shop.Place) -> None:
    """Begin an order that an error undoes, when messages of it are in the log: none of them is a number."""
    with contextlib.suppress(ZeroDivisionError), both.transaction() as transaction:
        for _ in range(2):
            transaction.produce(place.topic, bytes(300_000), key=b"k")
        raise ZeroDivisionError


@each_kind
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [shop.order, give_up])
def test_an_interrupt_at_each_point(place: shop.Place, step: Callable[[Any, shop.Place], object]) -> None:
    """The program goes on after it, with the same object if that has started, and in another life."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    shop.life(place, 1)
    interrupts = number = 0
    while interrupts == number:
        number += 1
        both = place.both()
        try:
            with hooked(at_point(number, interrupt)):
                both.start()
                step(both, place)
                both.close()
        except KeyboardInterrupt:
            interrupts += 1
            before = shop.rows(place)
            if number % 2:
                both.close()
                both = place.both()
            with contextlib.suppress(exacta.TwoPhaseError):  # not started, or closed
                shop.order(both, place)
            if len(shop.rows(place)) == len(before):
                both.start()
                shop.order(both, place)
            assert len(shop.rows(place)) == len(before) + 1
            both.close()
        shop.check_quickly(place)
    assert interrupts > 50
    shop.check(place)


@on_postgres
@pytest.mark.timeout(1200)
def test_the_database_is_killed_at_each_point(place: shop.Place, request: pytest.FixtureRequest) -> None:
    """SQLite has no process of its own: `test_killed.py`."""
    server: PostgresServer = request.getfixturevalue("postgres")
    count = len(points_of_a_life(place))
    for number in range(1, count + 1):
        struck: list[int] = []

        def strike(number: int = number, struck: list[int] = struck) -> None:
            if not struck:
                struck.append(number)
                server.restart_killed()

        goal = len(shop.rows(place)) + 1
        while len(shop.rows(place)) < goal:
            with contextlib.suppress(*LOST), hooked(at_point(number, strike)):
                shop.life(place, 1)
        assert struck
        shop.life(place, 0)
        shop.check_quickly(place)
    assert shop.check(place) >= count


@on_postgres
def test_the_database_dies_within_a_block_and_between_two(place: shop.Place, request: pytest.FixtureRequest) -> None:
    """The same object goes on, whether the transaction had written messages or not."""
    server: PostgresServer = request.getfixturevalue("postgres")

    def die(both: Any, *, writes: bool) -> None:
        with both.transaction() as transaction:
            if writes:
                transaction.send_offsets("g", {(place.topic, 0): 1})
            server.restart_killed()
            transaction.execute("INSERT INTO orders VALUES (17)")

    with place.both() as both:
        for writes in (False, True):
            with pytest.raises(psycopg.OperationalError):
                die(both, writes=writes)
            shop.order(both, place)
            server.restart_killed()
            shop.order(both, place)
    assert shop.check(place) == 4


@on_postgres
def test_a_connection_of_the_users_that_is_lost(place: shop.Place) -> None:
    given = psycopg.connect(place.address)
    with exacta.two_phase(place.servers, transactional_id=place.topic, database=exacta.Postgres(given)) as both:
        shop.order(both, place)
        given.close()
        for _ in range(2):
            with pytest.raises(exacta.TwoPhaseError, match="the connection is closed"):
                shop.order(both, place)
    assert shop.check(place) == 1


# --- single failures --------------------------------------------------------------------------------------------------


def when_named(name: str, act: Callable[[], object]) -> Callable[[int, str], None]:
    """Return a hook that acts at the first point of that name."""
    done = False

    def hook(at: int, passed: str) -> None:
        nonlocal done
        if passed == name and not done:
            done = True
            act()

    return hook


@pytest.fixture
def hasty(new_place: NewPlace, kind: str) -> shop.Place:
    return new_place(kind, timeout_ms=2_000)


@each_kind
def test_the_log_is_away_before_the_decision(hasty: shop.Place, broker: exacta.Broker) -> None:
    with hasty.both() as both:
        shop.order(both, hasty)
        away = when_named("before Connection.send of ProduceRequest", broker.kill)
        with hooked(away), pytest.raises(exacta.TwoPhaseError, match=r"^the log: gave up after 2 s: "):
            shop.order(both, hasty)
        assert shop.rows(hasty) == [1]
        broker.start()
        assert shop.order(both, hasty) == 2
    assert shop.check(hasty) == 2


@each_kind
def test_the_log_is_away_after_the_decision(
    hasty: shop.Place, broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The transaction counts as committed: a program that repeats what has failed must not repeat this."""
    with hasty.both() as both:
        with hooked(when_named("before Connection.send of EndTxnRequest", broker.kill)):
            assert shop.order(both, hasty) == 1
        assert "the last transaction is committed, its messages will be shown later: the log: " in caplog.text
        with pytest.raises(exacta.TwoPhaseError, match=r"^the log: gave up after 2 s"):
            shop.order(both, hasty)
        broker.start()
        assert shop.order(both, hasty) == 2
    assert shop.check(hasty) == 2


@each_kind
def test_the_log_is_away_until_the_end(
    hasty: shop.Place, broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with hasty.both() as both, hooked(when_named("before Connection.send of EndTxnRequest", broker.kill)):
        assert shop.order(both, hasty) == 1
    broker.start()
    (said,) = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert said.startswith(
        f"the last transaction of '{hasty.topic}' is still open in the log, and holds readers back until the next start"
    )
    with hasty.both() as both:
        assert both.recovered == "committed"
    assert shop.check(hasty) == 1


def losing(place: shop.Place, *, commits: bool) -> AbstractContextManager[None]:
    """Let the next commit in the database lose its answer meanwhile, behind the commit or before it."""
    error = sqlite3.OperationalError if place.kind == "sqlite" else psycopg.OperationalError

    def lose() -> None:
        raise error("the line is dead")

    return hooked(when_named(f"{'after' if commits else 'before'} {type(place.database()).__name__}.commit", lose))


@each_kind
@pytest.mark.parametrize("commits", [True, False])
def test_a_commit_whose_answer_is_lost(place: shop.Place, commits: bool) -> None:
    """The row says what came of it: if it is there, nothing has failed."""
    with place.both() as both:
        shop.order(both, place)
        with losing(place, commits=commits):
            if commits:
                assert shop.order(both, place) == 2
            else:
                with pytest.raises(exacta.TwoPhaseError, match="the commit failed: the line is dead"):
                    shop.order(both, place)
        assert shop.check(place) == (2 if commits else 1)
        shop.order(both, place)
    assert shop.check(place) == (3 if commits else 2)


@each_kind
@pytest.mark.parametrize("commits", [True, False])
def test_a_commit_of_which_nobody_can_say_anything(
    place: shop.Place, monkeypatch: pytest.MonkeyPatch, commits: bool
) -> None:
    def open_nothing(_: Any, __: float) -> None:
        raise exacta.TwoPhaseError("it is away")

    with place.both() as both:
        shop.order(both, place)
        with losing(place, commits=commits), monkeypatch.context() as patched:
            patched.setattr(type(place.database()), "open", open_nothing)
            with pytest.raises(exacta.OutcomeUnknown) as unknown:
                shop.order(both, place)
            assert not isinstance(unknown.value, exacta.TwoPhaseError)
            said = "the commit failed: the line is dead; whether it has taken place is decided at the next start"
            assert said in str(unknown.value)
        assert shop.order(both, place) == (3 if commits else 2)
    assert shop.check(place) == (3 if commits else 2)


@each_kind
def test_a_commit_whose_answer_is_lost_counts_once_the_row_is_read(
    hasty: shop.Place, broker: exacta.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The log cannot be ended then, and that raises nothing: a program would repeat what is committed."""
    with hasty.both() as both:
        away = when_named("before Connection.send of EndTxnRequest", broker.kill)
        with losing(hasty, commits=True), hooked(away):
            assert shop.order(both, hasty) == 1
        assert "the last transaction is committed, its messages will be shown later: the log: " in caplog.text
        broker.start()
        assert shop.order(both, hasty) == 2
    assert shop.check(hasty) == 2


@each_kind
def test_rows_without_messages_whose_commit_is_lost(place: shop.Place) -> None:
    """No row tells of it."""
    with place.both() as both:
        with (
            losing(place, commits=True),
            pytest.raises(exacta.OutcomeUnknown),
            both.transaction() as transaction,
        ):
            transaction.execute("INSERT INTO orders VALUES (1)")
        shop.order(both, place)
    assert shop.rows(place) == [1, 2]


@on_sqlite
def test_a_database_that_another_program_has_locked(new_place: NewPlace, kind: str) -> None:
    place = new_place(kind, timeout_ms=50)
    with place.both() as both:
        other = sqlite3.connect(place.address, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(exacta.TwoPhaseError) as locked:
            shop.order(both, place)
        assert str(locked.value) == f"the database '{place.address}': no transaction could begin: database is locked"
        other.close()
        shop.order(both, place)
    assert shop.check(place) == 1


@each_kind
def test_a_start_that_meets_a_lock_is_repeated(new_place: NewPlace, kind: str) -> None:
    place = new_place(kind)._replace(timeout_ms=2_000)
    shop.life(place, 1)
    database = place.database()
    database.open(1000)
    with database.own_transaction():
        database.change("UPDATE exacta_decisions SET holder_producer_epoch = holder_producer_epoch")
        with pytest.raises(exacta.TwoPhaseError, match=r"it could not be taken over: .*lock"):
            place.both().start()
    database.close()
    shop.life(place, 1)
    assert shop.check(place) == 2
