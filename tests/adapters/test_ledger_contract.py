"""The contract of the ledger's port: the lead, the tail, and what is known after a failure.

It is run on every ledger that is there (`ledger_benches.py`). The catalog and the brokers have a file of their own.
"""

import asyncio

import pytest

from exacta.ports.journal import Failed
from exacta.ports.shared import Appended, CatalogChange, Claimed, Ledger, Superseded
from tests.adapters.ledger_benches import Ability, LedgerBench, call, group, run, tail, take_lead, together, wait

# --- the lead ---------------------------------------------------------------------------------------------------------


def test_new_ledger_is_empty_and_nobody_leads(ledgers: LedgerBench):
    ledger = ledgers.open()
    head = wait(ledgers, ledger.read_head)
    assert head._replace(now_ms=0) == (0, None, 0, 0, 0, 0, 0)
    assert head.now_ms > 0
    assert wait(ledgers, ledger.await_lead) is None
    assert wait(ledgers, ledger.read_tail, 0, 100) == []
    catalog = wait(ledgers, ledger.read_catalog)
    assert (catalog.version, catalog.tail_from, list(catalog.entries)) == (0, 0, [])
    assert wait(ledgers, ledger.read_brokers) == []


def test_cluster_is_founded_once(ledgers: LedgerBench):
    first, second = ledgers.open(), ledgers.open()
    founded = together(ledgers, call(ledgers, first.found, b"first"), call(ledgers, second.found, b"second"))
    assert founded[0] == founded[1]
    assert founded[0] in (b"first", b"second")
    assert wait(ledgers, ledgers.open().found, b"third") == founded[0]


def test_claim_begins_the_epoch_after_the_one_that_was_seen(ledgers: LedgerBench):
    first, second = ledgers.open(), ledgers.open()
    head = wait(ledgers, first.read_head)
    assert str(wait(ledgers, first.claim, head, 1, "instance")) == str(Claimed(1))
    assert str(wait(ledgers, second.claim, head, 2, "instance")) == str(Superseded(1))
    assert wait(ledgers, second.read_head)[:2] == (1, 1)
    assert take_lead(ledgers, second, 2) == 2
    assert wait(ledgers, first.read_head)[:2] == (2, 2)


def test_of_claims_at_once_one_wins(ledgers: LedgerBench):
    brokers = [ledgers.open() for _ in range(3)]
    for epoch in range(1, 21):
        head = wait(ledgers, brokers[0].read_head)
        claims = [call(ledgers, each.claim, head, number, "instance") for number, each in enumerate(brokers)]
        told = [*map(str, together(ledgers, *claims))]  # as text: tuples of two types can be equal
        assert sorted(told) == [str(Claimed(epoch)), str(Superseded(epoch)), str(Superseded(epoch))]
        assert wait(ledgers, brokers[0].read_head).leader == told.index(str(Claimed(epoch)))


@pytest.mark.parametrize("how", ["resigns", "closes"])
def test_lead_is_awaited_until_the_leader_resigns_or_its_session_ends(ledgers: LedgerBench, how: str):
    leader, other = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, leader)
    awaited = call(ledgers, other.await_lead)
    for position in range(0, 100, 5):
        assert wait(ledgers, leader.append, group(epoch, position)) == Appended()
        wait(ledgers, other.read_head)
    assert not awaited.done()
    if how == "resigns":
        leader.resign(epoch)
    else:
        leader.close()
    assert run(ledgers, awaited) is None
    assert take_lead(ledgers, other, 2) == 2
    third = ledgers.open()
    awaited = call(ledgers, third.await_lead)
    for _ in range(20):
        assert wait(ledgers, other.beat, 2, 0) == Appended()
    assert not awaited.done()
    other.resign(2)
    assert run(ledgers, awaited) is None


def test_broker_that_resigned_may_lead_again(ledgers: LedgerBench):
    ledger = ledgers.open()
    for epoch in (1, 2, 3):
        assert take_lead(ledgers, ledger) == epoch
        assert wait(ledgers, ledger.append, group(epoch, 5 * (epoch - 1))) == Appended()
        ledger.resign(epoch)
    assert [each.epoch for each in tail(ledgers, ledger)] == [1, 2, 3]


def test_leader_that_is_suspected_is_superseded_in_all_that_it_does(ledgers: LedgerBench):
    old, new = ledgers.open(), ledgers.open()
    take_lead(ledgers, old)
    wait(ledgers, old.intend, ["key"])
    take_lead(ledgers, new, 2)
    assert wait(ledgers, old.append, group(1, 0)) == Superseded(2)
    assert wait(ledgers, old.confirm, 1) == Superseded(2)
    assert wait(ledgers, old.beat, 1, 0) == Superseded(2)
    assert wait(ledgers, old.change_catalog, 1, CatalogChange()) == Superseded(2)
    assert wait(ledgers, new.read_head)._replace(now_ms=0) == (2, 2, 0, 0, 0, 0, 0)
    assert tail(ledgers, new) == []


def test_epoch_that_has_not_begun_is_refused(ledgers: LedgerBench):
    ledger = ledgers.open()
    take_lead(ledgers, ledger)
    assert wait(ledgers, ledger.append, group(2, 0)) == Superseded(1)
    assert wait(ledgers, ledger.confirm, 2) == Superseded(1)
    assert wait(ledgers, ledger.beat, 2, 0) == Superseded(1)
    assert wait(ledgers, ledger.change_catalog, 2, CatalogChange()) == Superseded(1)


def test_beat_moves_and_what_is_durable_never_goes_back(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    assert wait(ledgers, ledger.append, group(epoch, 0)) == Appended()
    beats = []
    for durable in (5, 0):
        assert wait(ledgers, ledger.beat, epoch, durable) == Appended()
        head = wait(ledgers, ledger.read_head)
        assert head.durable == 5
        beats.append(head.beat)
    assert beats[0] < beats[1]


def test_hint_reaches_the_others(ledgers: LedgerBench):
    leader, other = ledgers.open(), ledgers.open()
    heard = asyncio.Event()
    other.on_hint(heard.set)
    for _ in range(100):  # hints may be lost, and the others may begin to listen a little later
        leader.hint()
        wait(ledgers, other.read_head)
        if heard.is_set():
            return
    pytest.fail("of a hundred hints none was heard")


# --- the tail ---------------------------------------------------------------------------------------------------------


def test_groups_come_back_in_order_as_they_were_appended(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    groups = [group(epoch, 0, b"one"), group(epoch, 3, b"twelve", durable=3), group(epoch, 9, b"two", catalog=7)]
    for each in groups:
        assert wait(ledgers, ledger.append, each) == Appended()
    other = ledgers.open()
    assert tail(ledgers, other) == groups
    assert tail(ledgers, other, 3) == groups[1:]
    assert tail(ledgers, other, 12) == []


def test_groups_are_read_up_to_a_size_and_one_in_any_case(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    for position in range(0, 1000, 100):
        assert wait(ledgers, ledger.append, group(epoch, position, b"x" * 100)) == Appended()
    for max_bytes, count in ((0, 1), (99, 1), (100, 1), (199, 1), (200, 2), (350, 3)):
        read = wait(ledgers, ledger.read_tail, 500, max_bytes)
        assert [each.position for each in read] == [500 + 100 * number for number in range(count)]


def test_nothing_is_read_where_no_group_begins(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    for position in (0, 5):
        assert wait(ledgers, ledger.append, group(epoch, position)) == Appended()
    for position in (1, 4, 6, 10, 11, 1 << 40):
        assert wait(ledgers, ledger.read_tail, position, 100) == []
        assert wait(ledgers, ledger.read_body, position, 0, 100) == b""


def test_append_is_refused_where_the_tail_does_not_end(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    assert wait(ledgers, ledger.append, group(epoch, 5)) == Superseded(epoch)
    for position in (0, 5):
        assert wait(ledgers, ledger.append, group(epoch, position)) == Appended()
    for position in (0, 3, 5, 9, 11, 15):
        assert wait(ledgers, ledger.append, group(epoch, position, b"wrong")) == Superseded(epoch)
    assert [each.body for each in tail(ledgers, ledger)] == [b"group", b"group"]
    assert wait(ledgers, ledger.append, group(epoch, 10)) == Appended()


def test_bodies_are_read_by_part(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    assert wait(ledgers, ledger.append, group(epoch, 0, b"0123456789")) == Appended()
    for start, size in ((0, 10), (0, 3), (4, 3), (8, 100), (10, 5), (20, 5)):
        assert wait(ledgers, ledger.read_body, 0, start, size) == b"0123456789"[start : start + size]


def test_large_groups_come_back_whole_and_by_part(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    mebibyte = 1 << 20
    body = bytes(range(256)) * (9 * mebibyte // 256) + b"end"
    groups = [group(epoch, 0, memoryview(bytearray(body))), group(epoch, len(body), b"small")]
    for each in groups:
        assert wait(ledgers, ledger.append, each) == Appended()
    assert [bytes(each.body) for each in tail(ledgers, ledger)] == [body, b"small"]
    for start, size in ((0, 100), (4 * mebibyte - 50, 100), (3 * mebibyte, 5 * mebibyte), (8 * mebibyte, 1 << 30)):
        assert wait(ledgers, ledger.read_body, 0, start, size) == body[start : start + size]


def test_second_append_in_flight_is_a_bug(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    first = call(ledgers, ledger.append, group(epoch, 0))
    with pytest.raises(AssertionError):
        ledger.append(group(epoch, 5), print)
    assert run(ledgers, first) == Appended()


def test_next_append_may_begin_in_the_callback(ledgers: LedgerBench):
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    all_done: asyncio.Future[object] = ledgers.loop.create_future()

    def go_on(position: int) -> None:
        if position == 50:
            all_done.set_result(None)
        else:
            ledger.append(group(epoch, position), lambda result: go_on(position + 5) if result == Appended() else None)

    go_on(0)
    run(ledgers, all_done)
    assert len(tail(ledgers, ledger)) == 10


# --- two leaders ------------------------------------------------------------------------------------------------------


def test_append_beside_a_claim_is_in_the_tail_or_refused(ledgers: LedgerBench):
    leader, other = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, leader)
    position = 0
    for turn in range(50):
        head = wait(ledgers, other.read_head)
        racing = call(ledgers, leader.append, group(epoch, position, b"%05d" % turn))
        claiming = call(ledgers, other.claim, head, 1, "instance")
        assert str(run(ledgers, claiming)) == str(Claimed(epoch + 1))
        found = [each.body for each in tail(ledgers, other, position)]  # from now on the tail stands
        appended = run(ledgers, racing)
        assert (appended, found) in [(Appended(), [b"%05d" % turn]), (Superseded(epoch + 1), [])]
        assert [each.body for each in tail(ledgers, other, position)] == found
        position += 5 * len(found)
        leader, other, epoch = other, leader, epoch + 1
        assert wait(ledgers, leader.append, group(epoch, position)) == Appended()
        position += 5


async def _write(ledgers: LedgerBench, ledger: Ledger, name: int, turns: int, told: dict[bytes, object]) -> None:
    """Append, and claim the lead whenever another has it; never stop believing."""
    epoch, position = 0, 0
    for turn in range(turns):
        body = b"%d/%d" % (name, turn)
        told[body] = await call(ledgers, ledger.append, group(epoch, position, body))
        if told[body] == Appended():
            position += len(body)
            continue
        head = await call(ledgers, ledger.read_head)
        claimed = await call(ledgers, ledger.claim, head, name, "instance")
        if isinstance(claimed, Claimed):
            epoch = claimed.epoch
        while groups := await call(ledgers, ledger.read_tail, position, 1 << 20):
            position = groups[-1].end


def test_writers_that_never_stop_believing_write_one_log(ledgers: LedgerBench):
    told: dict[bytes, object] = {}
    brokers = [ledgers.open() for _ in range(4)]
    together(ledgers, *(_write(ledgers, each, name, 100, told) for name, each in enumerate(brokers)))
    found = tail(ledgers, ledgers.open())
    assert [each.position for each in found] == [0, *(each.end for each in found[:-1])]
    assert [each.epoch for each in found] == sorted(each.epoch for each in found)
    acknowledged = [body for body, result in told.items() if result == Appended()]
    assert sorted(bytes(each.body) for each in found) == sorted(acknowledged)
    assert len({each.epoch for each in found}) > 10
    assert all(isinstance(result, Appended | Superseded) for result in told.values())


# --- failures ---------------------------------------------------------------------------------------------------------


def test_append_whose_reply_was_lost_is_found(ledgers: LedgerBench):
    _needs(ledgers, Ability.LOSE_REPLIES)
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    ledgers.lose_reply(ledger)
    assert isinstance(wait(ledgers, ledger.append, group(epoch, 0)), Failed)
    assert [each.body for each in tail(ledgers, ledgers.open())] == [b"group"]
    assert [each.body for each in tail(ledgers, ledger)] == [b"group"]
    assert wait(ledgers, ledger.append, group(epoch, 0)) == Superseded(epoch)
    assert wait(ledgers, ledger.confirm, epoch) == Appended()


def test_claim_whose_reply_was_lost_leaves_the_lead_to_others(ledgers: LedgerBench):
    _needs(ledgers, Ability.LOSE_REPLIES)
    ledger, other = ledgers.open(), ledgers.open()
    head = wait(ledgers, ledger.read_head)
    ledgers.lose_reply(ledger)
    assert isinstance(wait(ledgers, ledger.claim, head, 1, "instance"), Failed)
    assert wait(ledgers, other.read_head).epoch == 1
    assert wait(ledgers, other.await_lead) is None
    assert take_lead(ledgers, other, 2) == 2


def test_calls_fail_in_a_cut_and_succeed_after_it(ledgers: LedgerBench):
    _needs(ledgers, Ability.CUT)
    ledger, other = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    ledgers.cut(ledger)
    assert isinstance(wait(ledgers, ledger.append, group(epoch, 0)), Failed)
    assert isinstance(wait(ledgers, ledger.read_head), Failed)
    assert wait(ledgers, other.read_head).epoch == epoch
    ledgers.mend(ledger)
    assert take_lead(ledgers, other, 2) == epoch + 1
    found = tail(ledgers, other)  # what was sent into the cut has arrived before the claim, or is refused
    assert [each.body for each in found] in ([], [b"group"])
    while isinstance(head := wait(ledgers, ledger.read_head), Failed):
        pass
    assert head.epoch == epoch + 1
    assert tail(ledgers, ledger) == found


def test_leader_that_is_cut_off_loses_the_lead(ledgers: LedgerBench):
    _needs(ledgers, Ability.CUT)
    ledger, other = ledgers.open(), ledgers.open()
    take_lead(ledgers, ledger)
    awaited = call(ledgers, other.await_lead)
    ledgers.cut(ledger)
    assert run(ledgers, awaited) is None
    ledgers.mend(ledger)


def test_restart_keeps_what_was_acknowledged_and_ends_the_lead(ledgers: LedgerBench):
    _needs(ledgers, Ability.RESTART)
    ledger = ledgers.open()
    epoch = take_lead(ledgers, ledger)
    for position in (0, 5, 10):
        assert wait(ledgers, ledger.append, group(epoch, position)) == Appended()
    racing = call(ledgers, ledger.append, group(epoch, 15, b"in flight"))
    ledgers.restart()
    assert isinstance(run(ledgers, racing), Appended | Failed)
    other = ledgers.open()
    assert wait(ledgers, other.await_lead) is None
    assert take_lead(ledgers, other, 2) == epoch + 1
    found = tail(ledgers, other)
    assert [each.body for each in found[:3]] == [b"group"] * 3
    assert [each.body for each in found[3:]] in ([], [b"in flight"])
    assert racing.result() != Appended() or len(found) == 4


def test_restart_fails_the_call_that_awaits_the_lead(ledgers: LedgerBench):
    _needs(ledgers, Ability.RESTART)
    ledger, other = ledgers.open(), ledgers.open()
    take_lead(ledgers, ledger)
    awaited = call(ledgers, other.await_lead)
    wait(ledgers, other.read_head)
    ledgers.restart()
    assert isinstance(run(ledgers, awaited), Failed | None)
    assert wait(ledgers, ledgers.open().await_lead) is None


def test_nobody_is_called_back_after_the_end(ledgers: LedgerBench):
    ledger, other = ledgers.open(), ledgers.open()
    epoch = take_lead(ledgers, ledger)
    calls = [
        call(ledgers, ledger.append, group(epoch, 0)),
        call(ledgers, ledger.read_head),
        call(ledgers, ledger.await_lead),
    ]
    ledger.close()
    assert wait(ledgers, other.await_lead) is None
    assert take_lead(ledgers, other, 2) == epoch + 1
    assert not any(each.done() for each in calls)


def _needs(ledgers: LedgerBench, ability: Ability) -> None:
    if ability not in ledgers.abilities:
        pytest.skip(f"this bench cannot: {ability.name}")
