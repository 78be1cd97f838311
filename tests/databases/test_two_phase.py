"""The promises of a transaction over log and database, where nothing crashes; and the errors of wrong use."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

import exacta
from exacta.client.group_offsets import fetch_offsets
from exacta.client.partitioner import partition_of_key
from exacta.client.routing import Client
from exacta.client.topics import LATEST, list_offsets
from exacta.client.transactions import TopicPartition as Partition
from tests.databases import shop
from tests.databases.conftest import NewPlace, each_kind
from tests.spark.clusters import read_committed

pytestmark = each_kind


def refusals(kind: str) -> type[Exception]:
    """Return the error by which the driver refuses a row."""
    return sqlite3.IntegrityError if kind == "sqlite" else psycopg.errors.IntegrityError


def attempt(both: Any, *steps: Callable[[Any], object]) -> None:
    """Run a transaction of these steps."""
    with both.transaction() as transaction:
        for step in steps:
            step(transaction)


def row(number: int) -> Callable[[Any], object]:
    return lambda transaction: transaction.execute(f"INSERT INTO orders VALUES ({number})")


def message(place: shop.Place, value: Any) -> Callable[[Any], object]:
    return lambda transaction: transaction.produce(place.topic, value)


def fail(_: Any) -> None:
    raise ZeroDivisionError


def interrupt(_: Any) -> None:
    raise KeyboardInterrupt


def test_rows_messages_and_offsets(place: shop.Place) -> None:
    with place.both() as both:
        assert both.recovered is None
        assert [shop.order(both, place) for _ in range(3)] == [1, 2, 3]
        assert shop.check(place) == 3


def test_an_error_of_the_block_undoes_both(place: shop.Place) -> None:
    with place.both() as both:
        shop.order(both, place)
        with pytest.raises(ZeroDivisionError):
            attempt(both, row(2), message(place, "2"), fail)
        assert shop.check(place) == 1
        shop.order(both, place)
    assert shop.check(place) == 2


def test_a_row_that_the_database_refuses_is_its_drivers_error(place: shop.Place) -> None:
    with place.both() as both:
        shop.order(both, place)
        with pytest.raises(refusals(place.kind)):
            attempt(both, message(place, "1"), row(1))
        shop.order(both, place)
    assert shop.check(place) == 2


def test_a_commit_that_the_database_refuses(place: shop.Place) -> None:
    """A deferred constraint speaks at the commit, when everything is prepared and the row is written."""
    parts = "CREATE TABLE parts (of INTEGER REFERENCES orders (number) DEFERRABLE INITIALLY DEFERRED)"
    with place.both() as both:
        connection: Any = None
        with both.transaction() as transaction:
            transaction.execute(parts)
            connection = transaction.connection
        if place.kind == "sqlite":
            connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(refusals(place.kind)):
            attempt(both, message(place, "1"), lambda transaction: transaction.execute("INSERT INTO parts VALUES (17)"))
        assert shop.check(place) == 0
        shop.order(both, place)
    assert shop.check(place) == 1


def test_only_rows_and_only_messages(place: shop.Place) -> None:
    with place.both() as both:
        for _ in range(2):
            with both.transaction() as transaction:
                transaction.execute("INSERT INTO orders SELECT coalesce(max(number), 0) + 1 FROM orders")
            with both.transaction() as transaction:
                transaction.produce(place.topic, "message")
            with both.transaction():
                pass
            with pytest.raises(ZeroDivisionError):
                attempt(both, row(9), fail)
    assert shop.rows(place) == [1, 2]
    assert len(read_committed(place.servers, place.topic)) == 2


def test_messages_have_what_was_said(new_place: NewPlace, kind: str) -> None:
    place = new_place(kind, partitions=3)
    keys = ["apple", "pear", "plum", "quince", "fig"]
    with place.both() as both, both.transaction() as transaction:
        for key in keys:
            transaction.produce(
                place.topic, b"by key", key=key, headers={"where": "here", "none": None}, timestamp_ms=17
            )
        transaction.produce(place.topic, None, key="gone", partition=2, headers=[("twice", b"1"), ("twice", b"2")])
        for _ in range(5):
            transaction.produce(place.topic, "no key")
    with reader(place) as consumer:
        messages = [message for message in consumer.consume(11, 30) if message.error() is None]
    assert len(messages) == 11
    by_key = {message.key(): message for message in messages if message.value() == b"by key"}
    assert {key: each.partition() for key, each in by_key.items()} == {
        key.encode(): partition_of_key(key.encode(), 3) for key in keys
    }
    assert {tuple(each.headers()) for each in by_key.values()} == {(("where", b"here"), ("none", None))}
    assert {each.timestamp()[1] for each in by_key.values()} == {17}
    (gone,) = (message for message in messages if message.key() == b"gone")
    assert (gone.value(), gone.partition(), gone.headers()) == (None, 2, [("twice", b"1"), ("twice", b"2")])
    assert len({message.partition() for message in messages if message.value() == b"no key"}) == 1


@contextmanager
def reader(place: shop.Place) -> Iterator[Any]:
    """Yield a reader of committed messages from the beginning of three partitions; close it at the end."""
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "g", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(place.topic, index, OFFSET_BEGINNING) for index in range(3)])
        yield consumer
    finally:
        consumer.close()


def test_many_large_messages_in_one_transaction(new_place: NewPlace, kind: str) -> None:
    place = new_place(kind, partitions=3)
    with place.both() as both, both.transaction() as transaction:
        for number in range(300):
            transaction.produce(place.topic, bytes(20_000), key=str(number))
        transaction.send_offsets(f"g-{place.topic}", {(place.topic, index): 5 + index for index in range(3)})
        transaction.send_offsets(f"g-{place.topic}", {})
        transaction.send_offsets(f"g-{place.topic}", {})
    assert len(read_committed(place.servers, place.topic)) == 300
    with Client(place.servers) as client:
        offsets = fetch_offsets(client, f"g-{place.topic}")
    assert {at.partition: each.offset for at, each in offsets.items()} == {0: 5, 1: 6, 2: 7}


def test_a_message_that_the_broker_refuses_undoes_both(place: shop.Place) -> None:
    with place.both() as both:
        with pytest.raises(exacta.TwoPhaseError, match=r"^the log: writing to .*: MESSAGE_TOO_LARGE"):
            attempt(both, row(1), message(place, bytes(3_000_000)))
        assert shop.check(place) == 0
        shop.order(both, place)
    assert shop.check(place) == 1


def test_an_error_of_the_log_that_is_caught_still_undoes_both(place: shop.Place) -> None:
    with place.both() as both:

        def caught(transaction: Any) -> None:
            with pytest.raises(exacta.TwoPhaseError):
                transaction.produce("no/topic", "1")

        with pytest.raises(exacta.TwoPhaseError, match=r"^the log: .*INVALID_TOPIC"):
            attempt(both, row(1), caught, message(place, "1"))
        with pytest.raises(exacta.TwoPhaseError, match=r"^the log: .*INVALID_TOPIC"):
            attempt(both, row(1), caught)
        assert shop.check(place) == 0
        shop.order(both, place)
    assert shop.check(place) == 1


def test_what_cannot_be_a_message(place: shop.Place) -> None:
    with place.both() as both:
        with pytest.raises(TypeError, match="bytes, a string or None, not int"):
            attempt(both, message(place, 42))
        shop.order(both, place)
    assert shop.check(place) == 1


def test_nothing_is_left_of_the_block_when_it_is_over(place: shop.Place) -> None:
    with place.both() as both:
        with both.transaction() as transaction:
            pass
        for call in (
            lambda: transaction.produce(place.topic, "1"),
            lambda: transaction.send_offsets("g", {}),
            lambda: transaction.execute("SELECT 1"),
        ):
            with pytest.raises(exacta.TwoPhaseError, match="the transaction is over"):
                call()


def test_one_transaction_at_a_time(place: shop.Place) -> None:
    with place.both() as both:
        with pytest.raises(exacta.TwoPhaseError, match="open already"), both.transaction(), both.transaction():
            pass
        shop.order(both, place)
    assert shop.check(place) == 1


def test_it_must_be_started(place: shop.Place) -> None:
    both = place.both()
    with pytest.raises(exacta.TwoPhaseError, match="not started"), both.transaction():
        pass
    both.close()


def database_of(place: shop.Place, given: Any) -> Any:
    """Return the database of a connection that the user gives."""
    return exacta.Sqlite(given) if place.kind == "sqlite" else exacta.Postgres(given)


def test_a_connection_of_the_users(place: shop.Place) -> None:
    given: Any
    if place.kind == "sqlite":
        given = sqlite3.connect(place.address)
        given.text_factory = bytes
        given.row_factory = lambda cursor, row: dict(zip([each[0] for each in cursor.description], row, strict=True))
    else:
        given = psycopg.connect(place.address, row_factory=psycopg.rows.dict_row)
    database = database_of(place, given)
    with exacta.two_phase(place.servers, transactional_id=place.topic, database=database) as both:
        for number in (1, 2):
            with both.transaction() as transaction:
                assert transaction.connection is given
                transaction.execute(f"INSERT INTO orders VALUES ({number})")
                transaction.produce(place.topic, str(number))
                transaction.send_offsets(f"{shop.GROUP}-{place.topic}", {(place.topic, 0): number})
        given.execute("INSERT INTO orders VALUES (3)")
        with pytest.raises(exacta.TwoPhaseError, match="has a transaction open already"), both.transaction():
            pass
        given.rollback()
        with pytest.raises(refusals(place.kind)):
            attempt(both, row(1))
    assert given.execute("SELECT count(*) AS number FROM orders").fetchone() == {"number": 2}
    given.close()
    assert shop.check(place) == 2


def test_a_transaction_that_the_user_has_open_is_refused_and_left_as_it_is(place: shop.Place) -> None:
    """Neither a start nor a recovery takes it for its own."""

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    given: Any = sqlite3.connect(place.address) if place.kind == "sqlite" else psycopg.connect(place.address)
    both = exacta.two_phase(place.servers, transactional_id=place.topic, database=database_of(place, given))
    for begin in (both.start, lambda: attempt(both)):
        given.execute("INSERT INTO orders VALUES (7)")
        with pytest.raises(exacta.TwoPhaseError, match="has a transaction open already"):
            begin()
        assert given.execute("SELECT number FROM orders").fetchall() == [(7,)]
        given.rollback()
        both.start()
        with pytest.raises(KeyboardInterrupt):
            attempt(both, message(place, "1"), interrupt)
    shop.order(both, place)
    both.close()
    given.close()
    assert shop.check(place) == 1


def test_commits_are_durable_whatever_the_user_has_set(place: shop.Place) -> None:
    with place.both() as both:
        if place.kind == "sqlite":
            with both.transaction() as transaction:
                assert transaction.execute("PRAGMA synchronous").fetchone() == (3,)
            return
        with both.transaction() as transaction:
            transaction.connection.execute("SET synchronous_commit = off")
        seen = []
        commit = exacta.Postgres.commit

        def noted(self):
            seen.extend(self.ask("SHOW synchronous_commit"))
            return commit(self)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(exacta.Postgres, "commit", noted)
            shop.order(both, place)
        assert seen == [("on",)]


def test_a_log_without_two_phase_commits(place: shop.Place) -> None:
    with exacta.Broker() as plain:
        elsewhere = place._replace(servers=plain.bootstrap_servers)
        with pytest.raises(exacta.TwoPhaseError) as refused:
            elsewhere.both().start()
    assert str(refused.value) == (
        f"{plain.bootstrap_servers} takes no part in two-phase commits (KIP-939); "
        "on an Exacta set transaction.two.phase.commit.enable=true"
    )


def test_a_log_that_is_not_there(place: shop.Place) -> None:
    nobody = place._replace(servers="127.0.0.1:1", timeout_ms=50)
    with pytest.raises(
        exacta.TwoPhaseError, match=r"^the log: gave up after 0.05 s: cannot connect to 127.0.0.1:1: .*"
    ):
        nobody.both().start()


def test_a_database_that_cannot_be_used(place: shop.Place) -> None:
    address = "/no/such/folder/a.db" if place.kind == "sqlite" else "host=/no/such/folder dbname=a"
    with pytest.raises(exacta.TwoPhaseError) as refused:
        place._replace(address=address).both().start()
    said = "cannot be opened: unable to open" if place.kind == "sqlite" else "there is no connection to PostgreSQL: "
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_decision_is_not_kept_in_memory(place: shop.Place) -> None:
    both = exacta.two_phase(place.servers, transactional_id="a", database=exacta.Sqlite(":memory:"))
    with pytest.raises(exacta.TwoPhaseError, match="':memory:' is in memory: a decision must outlive the process"):
        both.start()


def test_a_relative_path_is_the_same_file_after_the_program_has_gone_elsewhere(
    place: shop.Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place.kind != "sqlite":
        return
    monkeypatch.chdir(Path(place.address).parent)
    with place._replace(address=Path(place.address).name).both() as both:
        shop.order(both, place)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with pytest.raises(KeyboardInterrupt):
            attempt(both, message(place, "lost"), interrupt)  # then it connects again
        shop.order(both, place)
    assert shop.check(place) == 2


def test_settings_that_are_wrong_are_told_at_once(place: shop.Place) -> None:
    for config, said in (
        ({"security.protocol": "TLS"}, "config: 'security.protocol' must be one of PLAINTEXT, SSL"),
        ({"linger.ms": "5"}, "config: linger.ms does not say how a cluster is reached"),
    ):
        with pytest.raises(exacta.TwoPhaseError, match=said):
            exacta.two_phase(place.servers, transactional_id="a", database=place.database(), config=config)
    with pytest.raises(ValueError, match="transactional_id must not be empty"):
        exacta.two_phase(place.servers, transactional_id="", database=place.database())


def test_nothing_is_written_twice_into_the_log(place: shop.Place) -> None:
    """Neither by orders nor by a start: there is one marker for each transaction."""
    with place.both() as both:
        for _ in range(5):
            shop.order(both, place)
    with place.both(), Client(place.servers) as client:
        at = Partition(place.topic, 0)
        assert list_offsets(client, [at], LATEST, isolation_level=0)[at] == 10
