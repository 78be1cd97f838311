"""What only PostgreSQL does to a ledger: standbys, cancelled commits, other servers, tail tables, settings."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from exacta.adapters.postgres import Doubt, PostgresRefused, leading
from exacta.adapters.postgres.sessions import PostgresServer
from exacta.ports.journal import Failed
from exacta.ports.shared import Appended, CatalogChange, Claimed, SharedBroker, StoreFailed, Superseded
from exacta.store_addresses import PostgresAddress, postgres_address
from tests.adapters import real_postgres
from tests.adapters.ledger_benches import call, group, run, tail, take_lead, wait
from tests.adapters.postgres_bench import PostgresBench, postgres_bench
from tests.databases.postgresql import a_server


@pytest.fixture
def bench() -> Iterator[PostgresBench]:
    """Ledgers that wait long enough for any machine."""
    with postgres_bench(30.0) as bench:
        yield bench


@pytest.fixture
def hasty_bench() -> Iterator[PostgresBench]:
    with postgres_bench(1.0) as bench:
        yield bench


@contextmanager
def no_standby_answers() -> Iterator[None]:
    """Let every commit wait for a standby that is not there."""
    with psycopg.connect(real_postgres.server().conninfo, autocommit=True) as connection:
        try:
            _ask("alter system set synchronous_standby_names = 'nobody'")
            _ask("select pg_reload_conf()")
            while True:  # the server takes it up a little later
                connection.pgconn.send_query(b"select pg_logical_emit_message(true, 'exacta', '')")
                while connection.pgconn.is_busy() and not _ask(_WAITING.format(pid=connection.info.backend_pid)):
                    connection.pgconn.consume_input()
                if connection.pgconn.is_busy():
                    break
                while connection.pgconn.get_result() is not None:
                    pass
            yield
        finally:
            _ask("alter system reset all")
            _ask("select pg_reload_conf()")
            while connection.pgconn.get_result() is not None:
                pass


_WAITING = "select pid from pg_stat_activity where wait_event = 'SyncRep' and pid = {pid}"
_LEDGER_WAITS = "select pid from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'exacta'"

_GET_WAITS = "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%from object%'"


def _ask(statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(real_postgres.server().conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def _turn_until(bench: PostgresBench, holds: Callable[[], bool]) -> None:
    """Let the loop run until it holds, or fail."""

    async def look() -> None:
        while not holds():
            await asyncio.sleep(0.01)

    run(bench, look())


# --- doubts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["append", "confirm", "claim"])
def test_commit_whose_wait_for_the_standby_was_cancelled_is_no_success(bench: PostgresBench, what: str):
    """PostgreSQL answers it with success and a warning. Another commit that waits for the standby proves it durable."""
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    head = wait(bench, other.read_head)
    with no_standby_answers():
        if what == "append":
            called = call(bench, ledger.append, group(epoch, 0))
        elif what == "confirm":
            called = call(bench, ledger.confirm, epoch)
        else:
            called = call(bench, other.claim, head, 2, "instance 2")
        _turn_until(bench, lambda: bool(_ask(_LEDGER_WAITS)))
        _ask(f"select pg_cancel_backend(({_LEDGER_WAITS}))")
        result = run(bench, called)
    assert isinstance(result, Failed)
    assert "might not have been replicated" in result.reason or "canceling wait" in result.reason
    if what == "append":
        assert [each.body for each in tail(bench, other)] == [b"group"]
        assert wait(bench, ledger.append, group(epoch, 5)) != Appended()


def test_call_that_takes_too_long_is_given_up_and_the_lead_with_it(hasty_bench: PostgresBench):
    bench = hasty_bench
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    with no_standby_answers():
        result = wait(bench, ledger.append, group(epoch, 0))
        assert result == Failed("PostgreSQL: it has not answered within 1 s")
    assert wait(bench, other.await_lead) is None
    assert take_lead(bench, other, 2) == epoch + 1


@pytest.mark.parametrize("how", ["closes", "resigns", "gives up"])
def test_commit_that_waits_for_the_standby_is_not_cancelled_by_its_own_broker(
    bench: PostgresBench, hasty_bench: PostgresBench, how: str
):
    """Others would see it then, and a standby that takes over would not have it."""
    bench = hasty_bench if how == "gives up" else bench
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    with no_standby_answers():
        appending = call(bench, ledger.append, group(epoch, 0))
        _turn_until(bench, lambda: bool(_ask(_LEDGER_WAITS)))
        if how == "closes":
            ledger.close()
        elif how == "resigns":
            ledger.resign(epoch)
        else:
            run(bench, appending)
        run(bench, asyncio.sleep(0.2))  # a request to cancel would be there by now
        assert _ask(f"select count(*) from {bench.schema}.tail") == [(0,)]
        assert _ask(_LEDGER_WAITS)


def test_who_waits_for_a_store_that_is_closed_is_told(bench: PostgresBench):
    wait(bench, bench.open().read_head)  # the schema is there
    store = real_postgres.objects(bench.schema)
    store.put("key", [b"data"])
    with psycopg.connect(real_postgres.server().conninfo, autocommit=True) as connection, ThreadPoolExecutor() as pool:
        connection.execute("begin")
        connection.execute(f"lock table {bench.schema}.object in access exclusive mode".encode())
        calls = [pool.submit(store.get, "key") for _ in range(3)]
        _turn_until(bench, lambda: len(_ask(_GET_WAITS)) == 3)
        store.close()
        for each in calls:
            with pytest.raises(StoreFailed, match=r"^the store was closed$|^PostgreSQL: "):
                each.result(10)
    with pytest.raises(StoreFailed, match=r"^the store was closed$"):
        store.get("key")
    store.close()


def test_lead_ends_with_its_session_and_no_append_follows_on_another(bench: PostgresBench):
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    assert wait(bench, ledger.append, group(epoch, 0)) == Appended()
    awaited = call(bench, other.await_lead)
    _ask("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid <> 0 and granted")
    assert run(bench, awaited) in (None, Failed("PostgreSQL: terminating connection due to administrator command"))
    assert isinstance(wait(bench, ledger.append, group(epoch, 5)), Failed)
    assert isinstance(wait(bench, ledger.append, group(epoch, 5)), Failed)
    assert len(tail(bench, other)) == 1


def test_server_that_was_started_again_makes_void_what_was_shown(bench: PostgresBench):
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    assert wait(bench, ledger.append, group(epoch, 0)) == Appended()
    assert len(tail(bench, other)) == 1
    bench.restart()
    while isinstance(head := wait(bench, other.read_head), Failed):
        pass
    for answer in (wait(bench, other.claim, head, 2, "instance 2"), wait(bench, other.read_tail, 0, 100)):
        assert isinstance(answer, Failed)
        assert "must be read again" in answer.reason
    assert len(tail(bench, other)) == 1
    assert take_lead(bench, other, 2) > epoch


# --- the lock of the lead ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["append", "confirm", "beat", "change_catalog"])
def test_call_beside_a_claim_looks_at_the_epoch_after_it_has_the_lock(bench: PostgresBench, what: str):
    """The other way round, it would go by the epoch of before the claim, for which it has waited."""
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    arguments: dict[str, tuple[object, ...]] = {
        "append": (group(epoch, 0),),
        "confirm": (epoch,),
        "beat": (epoch, 0),
        "change_catalog": (epoch, CatalogChange()),
    }
    with psycopg.connect(real_postgres.server().conninfo) as claim:
        claim.execute(f"set search_path = {bench.schema}".encode())
        claim.execute("select pg_advisory_xact_lock(hashtext(current_schema()), 0)")
        claim.execute("update head set epoch = epoch + 1")
        called = call(bench, getattr(ledger, what), *arguments[what])
        waiting = "select pid from pg_locks where locktype = 'advisory' and objid = 0 and not granted"
        _turn_until(bench, lambda: bool(_ask(waiting)))
    assert str(run(bench, called)) == str(Superseded(epoch + 1))
    assert tail(bench, ledger) == []


def test_claim_waits_for_an_append_whose_commit_waits(bench: PostgresBench):
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    head = wait(bench, other.read_head)
    with no_standby_answers():
        appending = call(bench, ledger.append, group(epoch, 0))
        _turn_until(bench, lambda: bool(_ask(_LEDGER_WAITS)))
        claiming = call(bench, other.claim, head, 2, "instance 2")
        waiting = "select pid from pg_locks where locktype = 'advisory' and objid = 0 and not granted"
        _turn_until(bench, lambda: bool(_ask(waiting)))
    assert run(bench, appending) == Appended()
    assert isinstance(run(bench, claiming), Claimed)
    assert len(tail(bench, other)) == 1


# --- other servers ----------------------------------------------------------------------------------------------------


def test_standby_that_was_promoted_has_all_that_was_acknowledged(bench: PostgresBench):
    """The standby is the first host: it is passed over until it is promoted."""
    with a_server(in_memory=True, fsync="on") as primary, a_server(primary, in_memory=True, fsync="on") as standby:
        with psycopg.connect(primary.conninfo, autocommit=True) as connection:
            connection.execute("alter system set synchronous_standby_names = 'standby'")
            connection.execute("select pg_reload_conf()")
        url = f"postgresql://postgres@/postgres?host={standby.folder},{primary.folder}"
        leader, follower = bench.open_at(postgres_address(url)), bench.open_at(postgres_address(url))
        epoch = take_lead(bench, leader)
        for position in range(0, 500, 5):
            assert wait(bench, leader.append, group(epoch, position)) == Appended()
        in_flight = call(bench, leader.append, group(epoch, 500, b"doubt"))
        primary.kill()
        assert isinstance(run(bench, in_flight), Appended | Failed)
        assert isinstance(wait(bench, follower.read_head), Failed)
        with psycopg.connect(standby.conninfo, autocommit=True) as connection:
            connection.execute("select pg_promote()")
        while isinstance(wait(bench, follower.read_tail, 0, 1), Failed):
            pass
        assert take_lead(bench, follower, 2) == epoch + 1
        assert len(tail(bench, follower)) in (100, 101)


def test_host_that_is_not_there_is_passed_over(bench: PostgresBench, tmp_path_factory: pytest.TempPathFactory):
    nobody = tmp_path_factory.mktemp("nobody")
    url = f"postgresql://postgres@/postgres?host={nobody},{real_postgres.server().folder}"
    ledger = bench.open_at(postgres_address(url))
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(nobody / ".s.PGSQL.5432"))
        silent.listen()
        silent.setblocking(False)
        take_lead(bench, ledger)  # on a session of its own
        with pytest.raises(BlockingIOError):  # nobody has come: the host that was there is tried first
            silent.accept()


# --- tail tables ------------------------------------------------------------------------------------------------------


def test_tail_tables_take_turns_and_are_emptied(bench: PostgresBench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leading, "TABLE_BYTES", 1_000)
    monkeypatch.setattr(leading, "FREE_SECONDS", 0.02)
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    broker = SharedBroker(2, "instance", b"", 0, 0)
    assert wait(bench, other.announce, broker) == Appended()
    position = 0

    def append(count: int) -> None:
        nonlocal position
        for _ in range(count):
            assert wait(bench, ledger.append, group(epoch, position, b"x" * 400)) == Appended()
            position += 400

    def filled() -> list[bool]:
        tables = [f"exists (select from {bench.schema}.tail_{number})" for number in range(8)]
        return [bool(each) for each in _ask(f"select {', '.join(tables)}")[0]]

    append(30)  # more than the tables of their size take: the last one takes the rest
    assert filled() == [True] * 8
    assert [each.position for each in tail(bench, other)] == [*range(0, position, 400)]
    assert wait(bench, ledger.change_catalog, epoch, CatalogChange(tail_from=position)) == 1
    append(1)
    assert filled() == [True] * 8  # the other broker does not know the catalog yet
    with psycopg.connect(real_postgres.server().conninfo) as reader:
        reader.execute(f"select * from {bench.schema}.tail_3".encode())
        assert wait(bench, other.announce, broker._replace(catalog=1)) == Appended()
        _turn_until(bench, lambda: filled().count(True) == 2)
        assert not _ask("select pid from pg_locks where not granted")  # who waits makes later readers wait
    _turn_until(bench, lambda: filled().count(True) == 1)
    append(30)
    assert [each.position for each in tail(bench, other, 30 * 400)] == [*range(30 * 400, position, 400)]
    assert wait(bench, other.read_tail, 0, 100) == []
    later = bench.open()
    epoch = take_lead(bench, later, 3)
    assert wait(bench, later.append, group(epoch, position)) == Appended()


def test_reader_does_not_hold_up_a_claim(bench: PostgresBench):
    """A session that reads the tail for long keeps its tables from being emptied, and nobody from leading."""
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    assert wait(bench, ledger.append, group(epoch, 0)) == Appended()
    with psycopg.connect(real_postgres.server().conninfo) as reader:
        reader.execute(f"select * from {bench.schema}.tail".encode())
        begun = time.monotonic()
        assert take_lead(bench, bench.open(), 2) == epoch + 1
        assert time.monotonic() - begun < 5.0
    assert wait(bench, ledger.append, group(epoch, 5)) == Superseded(epoch + 1)


# --- what a server must be --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({"fsync": "off"}, "PostgreSQL has fsync=off: a crash would lose what was confirmed; set it on"),
        (
            {"full_page_writes": "off"},
            "PostgreSQL has full_page_writes=off: a crash would lose what was confirmed",
        ),
        ({"version": 13}, "PostgreSQL is of version 13: 14 or newer is needed"),
        ({"pid": 7}, "a pooler stands before PostgreSQL, which keeps no session locks: connect directly"),
    ],
)
def test_server_that_cannot_keep_its_word_is_refused(seen: dict[str, object], told: str):
    fine = {"pid": 1, "version": 15, "fsync": "on", "full_page_writes": "on", "standbys": "s1"}
    server = PostgresServer(PostgresAddress("", []), "exacta", 1.0)
    server.check(fine, 1)
    with pytest.raises(PostgresRefused, match=told):
        server.check({**fine, **seen}, 1)


def test_missing_standby_is_warned_of(bench: PostgresBench, caplog: pytest.LogCaptureFixture):
    bench.open()
    assert caplog.messages == ["PostgreSQL has no synchronous standby: what is acknowledged is lost with its disk"]


def test_newer_schema_is_refused(bench: PostgresBench):
    bench.open()
    _ask(f"update {bench.schema}.cluster set version = 2")
    with pytest.raises(PostgresRefused, match=r"'exacta_\d+' is of version 2: this Exacta works with version 1"):
        bench.open()


def test_unreachable_server_is_told_in_one_line(bench: PostgresBench, tmp_path_factory: pytest.TempPathFactory):
    nobody = tmp_path_factory.mktemp("nobody")
    with pytest.raises(Doubt, match=rf"^no PostgreSQL is reached \({nobody}:5432: [^\n]*\)$"):
        bench.open_at(postgres_address(f"postgresql://postgres@/postgres?host={nobody}"))
