"""The faults of the database in memory: each does what it says, so that the simulation's worlds mean something."""

import pickle
from collections.abc import Iterator

import pytest

from exacta.adapters.memory import DatabaseWire, MemoryDatabase, MemoryLedger, MemoryObjects, StoreFault
from exacta.adapters.memory.wire import KEEPALIVE_SECONDS
from exacta.ports.journal import Failed
from exacta.ports.shared import Appended, Claimed, Missing, SharedBroker, StoreFailed, Superseded
from tests.adapters.ledger_benches import (
    TIMEOUT_SECONDS,
    MemoryBench,
    call,
    group,
    run,
    tail,
    take_lead,
    together,
    wait,
)


@pytest.fixture
def bench() -> Iterator[MemoryBench]:
    bench = MemoryBench()
    bench.database.primary.commit_seconds = lambda: 0.001
    yield bench
    bench.loop.close()


def pass_seconds(bench: MemoryBench, seconds: float) -> None:
    future = bench.loop.create_future()
    bench.loop.call_later(seconds, future.set_result, None)
    bench.loop.run_until_complete(future)


def bodies(bench: MemoryBench) -> list[bytes]:
    """Return what is in the tail, for a broker that connects now."""
    return [bytes(each.body) for each in tail(bench, bench.open())]


# --- the standby ------------------------------------------------------------------------------------------------------


def test_nothing_is_visible_or_acknowledged_while_the_standby_is_away(bench: MemoryBench):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    bench.database.primary.standby_is_away = True
    appended = call(bench, ledger.append, group(epoch, 0))
    pass_seconds(bench, TIMEOUT_SECONDS / 2)
    assert not appended.done()
    assert bodies(bench) == []
    bench.database.primary.bring_standby_back()
    assert run(bench, appended) == Appended()
    assert bodies(bench) == [b"group"]


def test_cancelled_wait_is_visible_and_a_failover_takes_it_away(bench: MemoryBench):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    assert wait(bench, ledger.append, group(epoch, 0, b"durable")) == Appended()
    bench.database.primary.standby_is_away = True
    appended = call(bench, ledger.append, group(epoch, 7, b"cancelled"))
    pass_seconds(bench, 0.1)
    bench.database.primary.cancel_waits()
    assert isinstance(run(bench, appended), Failed)
    assert bodies(bench) == [b"durable", b"cancelled"]
    bench.database.fail_over()
    assert bodies(bench) == [b"durable"]


@pytest.mark.parametrize("how", ["confirm", "claim", "beat"])
def test_commit_after_a_cancelled_wait_replicates_it(bench: MemoryBench, how: str):
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    primary = bench.database.primary
    primary.standby_is_away = True
    appended = call(bench, ledger.append, group(epoch, 0, b"cancelled"))
    pass_seconds(bench, 0.1)
    primary.cancel_waits()
    run(bench, appended)
    primary.bring_standby_back()
    if how == "confirm":
        assert wait(bench, ledger.confirm, epoch) == Appended()
    elif how == "beat":
        assert wait(bench, ledger.beat, epoch, 0) == Appended()
    else:
        take_lead(bench, other)
    assert primary.unacknowledged() == []
    bench.database.fail_over()
    assert bodies(bench) == [b"cancelled"]


@pytest.mark.parametrize("how", ["read", "refused", "found"])
def test_reading_and_what_changes_nothing_replicate_nothing(bench: MemoryBench, how: str):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    assert wait(bench, ledger.found, b"about") == b"about"
    primary = bench.database.primary
    primary.standby_is_away = True
    appended = call(bench, ledger.append, group(epoch, 0))
    pass_seconds(bench, 0.1)
    primary.cancel_waits()
    run(bench, appended)
    primary.bring_standby_back()
    if how == "read":
        assert bodies(bench) == [b"group"]
    elif how == "refused":
        assert wait(bench, ledger.append, group(epoch, 0)) == Superseded(epoch)
    else:
        assert wait(bench, ledger.found, b"other") == b"about"
    bench.database.fail_over()
    assert bodies(bench) == []


def test_refused_call_waits_for_what_it_is_refused_for(bench: MemoryBench):
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    head = wait(bench, other.read_head)
    primary = bench.database.primary
    primary.standby_is_away = True
    claiming = call(bench, other.claim, head, 2, "instance")
    pass_seconds(bench, 0.1)
    appending = call(bench, ledger.append, group(epoch, 0))
    pass_seconds(bench, 0.1)
    assert not appending.done()
    primary.cancel_waits()
    assert run(bench, appending) == Superseded(epoch + 1)
    assert isinstance(run(bench, claiming), Failed)


# --- restart and failover ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1])
def test_restart_keeps_what_the_disk_had(bench: MemoryBench, kept: int):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    bench.database.primary.commit_seconds = lambda: 0.5
    appended = call(bench, ledger.append, group(epoch, 0))
    pass_seconds(bench, 0.1)
    bench.database.restart(kept=kept)
    assert isinstance(run(bench, appended), Failed)
    pass_seconds(bench, 1.0)
    assert bodies(bench) == [b"group"] * kept


def test_calls_fail_while_the_server_is_down(bench: MemoryBench):
    ledger = bench.open()
    primary = bench.database.primary
    epoch = take_lead(bench, ledger)
    primary.stop()
    began = bench.loop.time()
    assert isinstance(wait(bench, ledger.append, group(epoch, 0)), Failed)
    assert isinstance(wait(bench, ledger.read_head), Failed)
    assert isinstance(wait(bench, ledger.await_lead), Failed)
    assert bench.loop.time() - began < TIMEOUT_SECONDS
    primary.start()
    assert wait(bench, ledger.await_lead) is None
    assert wait(bench, ledger.confirm, epoch) == Appended()


@pytest.mark.parametrize(("received", "lost", "left"), [(0, 0, 2), (1, 0, 3), (0, 1, 1), (0, 2, 0)])
def test_failover_keeps_what_the_standby_had(bench: MemoryBench, received: int, lost: int, left: int):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    for position in (0, 5):
        assert wait(bench, ledger.append, group(epoch, position)) == Appended()
    bench.database.primary.commit_seconds = lambda: 0.5
    appended = call(bench, ledger.append, group(epoch, 10))
    pass_seconds(bench, 0.1)
    old = bench.database.fail_over(received=received, lost=lost)
    assert isinstance(run(bench, appended), Failed)
    assert not old.is_up
    assert bodies(bench) == [b"group"] * left
    assert wait(bench, bench.open().await_lead) is None


def test_old_primary_that_lives_on_is_read_and_commits_nothing(bench: MemoryBench):
    ledger, reader, new = bench.open(), bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    wait(bench, reader.read_head)
    old = bench.database.fail_over(old_lives=True)
    appended = call(bench, ledger.append, group(epoch, 0, b"old"))
    assert take_lead(bench, new, 2) == epoch + 1
    assert wait(bench, new.append, group(epoch + 1, 0, b"new")) == Appended()
    assert isinstance(run(bench, appended), Failed)  # no reply within the time-out
    assert wait(bench, reader.read_head).epoch == epoch
    old.cancel_waits()
    assert [each.body for each in tail(bench, reader)] == [b"old"]
    assert wait(bench, ledger.confirm, epoch) == Superseded(epoch + 1)  # it has connected once more
    old.stop()
    assert isinstance(wait(bench, reader.read_head), Failed)
    assert [each.body for each in tail(bench, reader)] == [b"new"]


def test_of_appends_in_flight_a_claim_takes_along_what_is_before_it(bench: MemoryBench):
    ledger, other = bench.open(), bench.open()
    epoch = take_lead(bench, ledger)
    head = wait(bench, other.read_head)
    primary = bench.database.primary
    primary.commit_seconds = lambda: 0.5
    appending = call(bench, ledger.append, group(epoch, 0))
    pass_seconds(bench, 0.01)
    primary.commit_seconds = lambda: 0.001  # the claim's commit is done first, and the append's with it
    claimed, appended = together(bench, call(bench, other.claim, head, 2, "instance"), appending)
    assert (claimed, appended) == (Claimed(epoch + 1), Appended())
    assert bodies(bench) == [b"group"]


# --- the wire ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["requests", "replies"])
def test_cut_of_one_direction(bench: MemoryBench, way: str):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    wire = bench.wires[ledger]
    wire.cut(requests=way == "requests", replies=way == "replies")
    assert isinstance(wait(bench, ledger.append, group(epoch, 0)), Failed)
    assert bodies(bench) == ([] if way == "requests" else [b"group"])
    wire.mend()
    pass_seconds(bench, 1.0)
    assert bodies(bench) == [b"group"]  # what was sent into the cut is late, and the epoch is still the present one


def test_cut_that_lasts_ends_the_sessions_and_a_short_one_does_not(bench: MemoryBench):
    ledger, other = bench.open(), bench.open()
    take_lead(bench, ledger)
    awaited = call(bench, other.await_lead)
    for _ in range(3):
        bench.cut(ledger)
        pass_seconds(bench, KEEPALIVE_SECONDS - 1)
        bench.mend(ledger)
        pass_seconds(bench, 2)
    assert not awaited.done()
    bench.cut(ledger)
    began = bench.loop.time()
    assert run(bench, awaited) is None
    assert KEEPALIVE_SECONDS - 0.1 < bench.loop.time() - began < KEEPALIVE_SECONDS + 0.1


@pytest.mark.parametrize("way", ["requests", "replies"])
def test_lost_message_fails_its_call_at_once(bench: MemoryBench, way: str):
    ledger = bench.open()
    wire = bench.wires[ledger]
    direction = wire.requests if way == "requests" else wire.replies
    for start in (ledger.await_lead, ledger.read_head):
        direction.to_lose = 1
        assert isinstance(wait(bench, start), Failed)
        assert bench.loop.time() < TIMEOUT_SECONDS
    assert wait(bench, ledger.await_lead) is None


def test_append_of_a_closed_ledger_may_arrive_late(bench: MemoryBench):
    ledger = bench.open()
    epoch = take_lead(bench, ledger)
    call(bench, ledger.append, group(epoch, 0))
    ledger.close()
    assert wait(bench, bench.open().await_lead) is None
    pass_seconds(bench, 1.0)
    assert bodies(bench) == [b"group"]


def test_claim_that_arrives_after_its_session_has_ended_does_not_keep_the_lead(bench: MemoryBench):
    ledger, other = bench.open(), bench.open()
    head = wait(bench, other.read_head)
    wire = bench.wires[ledger]
    wire.requests.seconds = lambda: 0.5
    claiming = call(bench, ledger.claim, head, 1, "instance")
    wire.requests.seconds = lambda: 0.001
    ledger.close()
    pass_seconds(bench, 1.0)
    assert not claiming.done()
    assert wait(bench, other.read_head).epoch == 1
    assert wait(bench, other.await_lead) is None


def test_broker_that_is_refused_may_begin_when_the_first_one_is_cut_off(bench: MemoryBench):
    first, second = bench.open(), bench.open()
    assert wait(bench, first.announce, SharedBroker(1, "first", b"", 0, 0)) == Appended()
    assert wait(bench, second.announce, SharedBroker(1, "second", b"", 0, 0)) == Superseded(0)
    bench.cut(first)
    pass_seconds(bench, KEEPALIVE_SECONDS)
    assert wait(bench, second.announce, SharedBroker(1, "second", b"", 0, 0)) == Appended()
    bench.mend(first)
    told = [wait(bench, first.announce, SharedBroker(1, "first", b"", 0, 0)) for _ in range(2)]
    assert told[-1] == Superseded(0)


def test_ledgers_without_a_wire_take_no_time(bench: MemoryBench):
    database = MemoryDatabase(bench.loop, lambda: 0)
    ledger = MemoryLedger(database, bench.loop)
    epoch = take_lead(bench, ledger)
    assert wait(bench, ledger.append, group(epoch, 0)) == Appended()
    assert bench.loop.time() == 0
    slow = MemoryLedger(database, bench.loop, DatabaseWire(bench.loop), timeout_seconds=2.0)
    slow._wire.cut()
    assert isinstance(wait(bench, slow.read_head), Failed)
    assert bench.loop.time() == pytest.approx(2.0)


# --- objects ----------------------------------------------------------------------------------------------------------


def test_faults_of_a_store_are_made_before_or_after_the_call():
    store = MemoryObjects()
    store.put("a", [b"data"])
    store.fault = lambda call, key: StoreFault.REFUSED if key == "b" else StoreFault.UNANSWERED
    with pytest.raises(StoreFailed, match="503"):
        store.put("b", [b"data"])
    with pytest.raises(StoreFailed, match="not answered") as failure:
        store.get("a")
    assert not isinstance(failure.value, Missing)
    with pytest.raises(StoreFailed, match="not answered"):
        store.put("c", [b"data"])
    with pytest.raises(StoreFailed, match="not answered"):
        store.delete(["a"])
    assert store.objects == {"c": b"data"}


def test_objects_are_altered_and_lost():
    store = MemoryObjects()
    for key in ("a", "b"):
        store.put(key, [b"data"])
    store.alter("a", 1)
    assert store.get("a") == b"d\x9eta"
    store.lose("b")
    with pytest.raises(Missing):
        store.get("b")


def test_object_that_is_put_with_other_bytes_is_a_bug():
    store = MemoryObjects()
    store.put("a", [b"data"])
    with pytest.raises(AssertionError, match="other bytes"):
        store.put("a", [b"other"])


def test_pickled_store_is_the_store_itself():
    store = MemoryObjects()
    assert pickle.loads(pickle.dumps(store)) is store
