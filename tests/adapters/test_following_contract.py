"""The contract of following a shared log, and of taking its lead, over the ledger and the store in memory."""

from collections.abc import Callable, Iterator

import pytest

from exacta.adapters.shared.shared_log import Witness
from exacta.ports.following import Delivered, Follower, LedJournal
from exacta.ports.journal import Conflict, Failed, GroupAppended, JournalDamaged, JournalEntry
from exacta.ports.shared import Appended, Superseded
from tests.adapters.shared.brokers import BrokerOf, Brokers
from tests.adapters.turns import batch


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    brokers = Brokers()
    yield brokers
    brokers.loop.close()


def event(number: int) -> JournalEntry:
    return JournalEntry(b"%d" % number)


def events(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def leader_and_follower(brokers: Brokers) -> tuple[BrokerOf, BrokerOf]:
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    one.lead()
    one.append(event(0))
    brokers.until(lambda: two.events == events(0))
    return one, two


def test_adapters_are_what_the_ports_ask_for(brokers: Brokers):
    one = brokers.open(1).follow()
    follower: Follower = one.follower
    journal: LedJournal = one.lead()
    assert (follower.position, journal.position) == (0, 0)
    assert not journal.is_exclusive


# --- following --------------------------------------------------------------------------------------------------------


def test_a_follower_is_told_of_each_group_in_order(brokers: Brokers):
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    one.lead()
    for number in range(20):
        end = one.append(batch(number % 3, number, b"%02d" % number * 100))
    brokers.until(lambda: two.follower.position == end)
    assert two.events == [b"event of %d at %d" % (number % 3, number) for number in range(20)]
    assert [each.position for each in two.delivered] == sorted({each.position for each in two.delivered})
    found = [broker.read(1, 4, 20) for broker in (one, two)]
    assert found == [b"".join(b"%02d" % number * 100 for number in range(4, 20, 3))] * 2


def test_batches_are_found_when_their_events_are_delivered(brokers: Brokers):
    one, two = brokers.open(1).follow(), brokers.open(2)
    found: list[int] = []

    def deliver(delivered: Delivered) -> None:
        assert two.follower.position == delivered.position
        found.append(two.follower.find(1, 0, 100, 1 << 20)[-1].last_offset)

    brokers.until(lambda: two.opened is not None)
    list(two.follower.begin()[1])
    two.follower.follow(deliver)
    one.lead()
    for number in range(5):
        one.append(batch(1, number, b"batch"))
        brokers.until(lambda: found[-1:] == [number])  # noqa: B023  # it is called in this turn of the loop


def test_who_opens_late_begins_with_what_is_there(brokers: Brokers):
    one = brokers.open(1).follow()
    one.lead()
    end = one.append(event(0), event(1))
    brokers.pass_seconds(0.3)
    two = brokers.open(2).follow()
    assert (two.begun, two.follower.position) == (events(0, 1), end)
    one.append(event(2))
    brokers.until(lambda: two.events == events(0, 1, 2))


def test_what_is_appended_is_shown_by_a_follower_soon(brokers: Brokers):
    """A beat follows the last group, so that it need not wait for the next one."""
    one, two = leader_and_follower(brokers)
    for number in range(1, 5):
        brokers.pass_seconds(0.5)
        one.append(event(number))
        began = brokers.loop.time()
        brokers.until(lambda: two.events[-1:] == events(number))  # noqa: B023  # it is called in this turn of the loop
        assert brokers.loop.time() - began < 0.03


def test_catching_up_waits_for_what_was_durable(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    end = one.append(event(1))
    assert two.events == events(0)
    results: list[Failed | None] = []
    two.follower.catch_up(results.append)
    brokers.until(lambda: bool(results))
    assert results == [None]
    assert two.follower.position == end


def test_catching_up_fails_where_the_ledger_is_away(brokers: Brokers):
    _, two = leader_and_follower(brokers)
    two.wire.cut()
    results: list[Failed | None] = []
    two.follower.catch_up(results.append)
    brokers.until(lambda: bool(results))
    assert isinstance(results[0], Failed)


def test_a_follower_says_who_leads(brokers: Brokers):
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    changes: list[object] = []
    two.follower.on_leader(lambda: changes.append(two.follower.leader))
    assert two.follower.leader is None
    one.lead()
    brokers.until(lambda: len(changes) == 1)
    assert changes == [(1, 1)]
    two.wire.cut()
    brokers.until(lambda: len(changes) == 2)
    assert changes[1] is None, "nobody knows"
    two.wire.mend()
    brokers.until(lambda: len(changes) == 3)
    assert changes[2] == (1, 1)


# --- what is in objects -----------------------------------------------------------------------------------------------


def fill(broker: BrokerOf, begin: int, end: int) -> None:
    for number in range(begin, end):
        broker.append(batch(1, number, b"%03d" % number * 100))


def written(begin: int, end: int) -> bytes:
    return b"".join(b"%03d" % number * 100 for number in range(begin, end))


def test_a_follower_reads_on_when_segments_have_become_objects(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    fill(one, 0, 40)
    brokers.until(lambda: two.follower.position == one.journal.position)
    brokers.until(lambda: two.follower.catalog == one.journal.catalog > 3)
    assert two.follower.tail_from == one.journal.tail_from > 0
    assert one.read(1, 0, 40) == two.read(1, 0, 40) == written(0, 40)


def test_a_follower_that_was_cut_off_reads_from_objects_what_has_left_the_tail(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.wire.cut()
    fill(one, 0, 40)
    brokers.pass_seconds(70)  # nobody waits for it any more
    assert one.journal.tail_from > two.follower.position
    two.wire.mend()
    brokers.until(lambda: two.follower.position == one.journal.position)
    assert two.events == events(0) + [b"event of 1 at %d" % number for number in range(40)]
    assert two.read(1, 0, 40) == written(0, 40)


def test_the_catalog_that_a_group_names_is_loaded_before_its_events_are_delivered(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    known: list[tuple[int, int]] = []
    named = {each.end: each.catalog for each in brokers.database.primary.visible.tail}
    two.follower._deliver = lambda delivered: known.append((delivered.position, two.follower.catalog))
    for number in range(30):
        fill(one, number, number + 1)
        named |= {each.end: each.catalog for each in brokers.database.primary.visible.tail}
    brokers.until(lambda: two.follower.position == one.journal.position)
    assert all(catalog >= named[position] for position, catalog in known)
    assert max(named.values()) > 3


def test_events_wait_for_a_catalog_that_cannot_be_had(brokers: Brokers, monkeypatch: pytest.MonkeyPatch):
    one, two = leader_and_follower(brokers)

    def fail(done: Callable[[Failed], None]) -> None:
        brokers.loop.call_soon(done, Failed("away"))

    with monkeypatch.context() as away:
        away.setattr(two.ledger, "read_catalog", fail)
        fill(one, 0, 20)
        brokers.pass_seconds(1)
        assert two.follower.catalog < one.journal.catalog
        assert len(two.events) < 20
    brokers.until(lambda: two.follower.position == one.journal.position)
    assert two.events == events(0) + [b"event of 1 at %d" % number for number in range(20)]


# --- what is durable --------------------------------------------------------------------------------------------------


def test_what_the_tail_shows_is_not_delivered_before_it_is_known_to_be_durable(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    one.wire.cut(requests=False)
    one.begin_append(event(1))
    brokers.pass_seconds(0.5)
    assert len(brokers.database.primary.visible.tail) == 2
    assert two.events == events(0)
    three = brokers.open(3).follow()
    assert three.events == events(0)
    three.lead()
    assert three.events == events(0, 1), "the lead proves it"
    three.append(event(2))
    brokers.until(lambda: two.events == events(0, 1, 2))


def test_what_was_shown_and_lost_by_a_failover_is_never_delivered(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    brokers.pass_seconds(0.5)
    primary = brokers.database.primary
    primary.standby_is_away = True
    results = one.begin_append(event(1))
    brokers.pass_seconds(0.1)
    primary.cancel_waits()
    brokers.until(lambda: bool(results))
    assert isinstance(results[0], Failed)
    brokers.pass_seconds(0.1)
    assert len(primary.visible.tail) == 2
    brokers.database.fail_over()
    two.lead()
    two.append(event(2))
    one = one.again().follow()
    two.append(event(3))
    brokers.until(lambda: one.events == events(0, 2, 3))
    assert two.events == events(0)
    assert two.failures == []


# --- the lead ---------------------------------------------------------------------------------------------------------


def test_a_killed_leader_is_followed_by_another_at_once(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    end = one.append(event(1))
    one.kill()
    before = brokers.loop.time()
    brokers.until(lambda: two.led is not None)
    assert brokers.loop.time() - before < 0.1
    assert two.journal.position == end
    assert two.events == events(0, 1)
    assert two.append(event(2)) > end


def test_a_clean_stop_hands_the_lead_over_at_once(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    results = one.begin_append(event(1))
    one.journal.close()
    before = brokers.loop.time()
    brokers.until(lambda: two.led is not None)
    assert brokers.loop.time() - before < 0.1
    assert isinstance(results[0], GroupAppended)
    assert two.events == events(0, 1)


def test_who_does_not_want_the_lead_never_gets_it(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    one.kill()
    brokers.pass_seconds(5)
    assert two.led is None


def test_a_leader_that_is_cut_off_is_replaced_after_a_second_and_refused(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    brokers.pass_seconds(1)
    one.wire.cut()
    began = brokers.loop.time()
    brokers.until(lambda: two.led is not None)
    assert 0.6 < brokers.loop.time() - began < 1.2
    two.append(event(1))
    brokers.until(lambda: bool(one.failures))
    assert brokers.loop.time() - began < 1.5, "it gives up by itself"
    assert isinstance(one.begin_append(event(9)), list)
    one.wire.mend()
    one = one.again().follow()
    two.append(event(2))
    brokers.until(lambda: one.events == events(0, 1, 2))


def test_a_leader_that_was_paused_is_refused_whatever_it_asks(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    one.journal._pulse.stop()  # its timers stand still
    two.lead()
    two.append(event(1))
    confirmed: list[object] = []
    one.journal.confirm(confirmed.append)
    brokers.until(lambda: bool(confirmed))
    assert isinstance(confirmed[0], Conflict)
    appended = one.begin_append(event(9))
    brokers.until(lambda: bool(appended))
    assert isinstance(appended[0], Failed), "everything after the first refusal fails"
    assert two.failures == []


def test_a_leader_that_was_paused_is_told_that_another_leads(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    one.journal._pulse.stop()
    two.lead()
    one.journal._pulse._is_stopped = False
    one.journal._pulse._beat()
    brokers.until(lambda: bool(one.failures))
    assert one.failures == [Failed("another broker leads, in epoch 2")]


def test_a_leader_that_was_closed_does_not_beat_for_the_append_that_it_finished(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
):
    one, two = leader_and_follower(brokers)
    one.delay_appends(monkeypatch, 0.1)
    results = one.begin_append(event(1))
    one.journal.close()
    two.lead()
    assert isinstance(results[0], GroupAppended)
    assert two.events == events(0, 1)


def test_of_several_who_want_the_lead_one_gets_it(brokers: Brokers):
    others = [brokers.open(number).follow().want_lead() for number in range(2, 6)]
    brokers.pass_seconds(5)
    assert [broker.led is not None for broker in others].count(True) == 1
    leader = next(broker for broker in others if broker.led is not None)
    leader.append(event(0))
    leader.kill()
    brokers.pass_seconds(5)
    assert [broker.led is not None for broker in others].count(True) == 2


def test_an_append_in_flight_is_delivered_by_the_next_leader_or_refused(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
):
    one, two = leader_and_follower(brokers)
    one.delay_appends(monkeypatch, 2)
    results = one.begin_append(event(1))
    one.journal._pulse.stop()
    two.lead()
    assert two.events == events(0)
    brokers.until(lambda: bool(results))
    assert isinstance(results[0], Conflict)
    two.append(event(2))
    three = brokers.open(3).follow()
    brokers.until(lambda: three.events == events(0, 2))


def test_the_lead_lasts_while_appends_are_slow(brokers: Brokers, monkeypatch: pytest.MonkeyPatch):
    """Beats go on while a large group is on its way."""
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.delay_appends(monkeypatch, 3)
    one.append(event(1))
    assert two.led is None


# --- confirming -------------------------------------------------------------------------------------------------------


def test_one_commit_confirms_all_who_ask_in_one_turn(brokers: Brokers, monkeypatch: pytest.MonkeyPatch):
    one, _ = leader_and_follower(brokers)
    asked: list[int] = []
    confirm = one.ledger.confirm

    def ask(epoch: int, done: Callable[[Appended | Superseded | Failed], None]) -> None:
        asked.append(epoch)
        confirm(epoch, done)

    monkeypatch.setattr(one.ledger, "confirm", ask)
    results: list[object] = []
    for _ in range(5):
        one.journal.confirm(results.append)
    brokers.until(lambda: len(results) == 5)
    assert asked == [1]
    one.journal.confirm(results.append)
    appended = one.begin_append(event(1))
    brokers.until(lambda: len(results) == 6 and bool(appended))
    assert asked == [1], "an append that begins later serves"
    assert all(isinstance(each, GroupAppended) for each in results)


def test_a_confirm_does_not_wait_for_an_append_that_began_before(brokers: Brokers, monkeypatch: pytest.MonkeyPatch):
    one, _ = leader_and_follower(brokers)
    one.delay_appends(monkeypatch, 3)
    appended, confirmed = one.begin_append(event(1)), list[object]()
    one.journal.confirm(confirmed.append)
    brokers.until(lambda: bool(confirmed))
    assert appended == []
    assert isinstance(confirmed[0], GroupAppended)


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["requests", "replies"])
def test_after_a_lost_message_the_row_is_found_or_not(brokers: Brokers, way: str):
    one, two = leader_and_follower(brokers)
    brokers.pass_seconds(1)
    (one.wire.requests if way == "requests" else one.wire.replies).to_lose = 1
    results = one.begin_append(event(1))
    brokers.until(lambda: bool(results))
    assert isinstance(results[0], Failed)
    later = one.begin_append(event(2))
    brokers.until(lambda: bool(later))
    assert isinstance(later[0], Failed)
    one = one.again().follow()
    one.lead()
    found = events(0, 1) if way == "replies" else events(0)
    assert one.events == found
    one.append(event(3))
    brokers.until(lambda: two.events == [*found, b"3"])


@pytest.mark.parametrize("way", ["requests", "replies"])
@pytest.mark.parametrize("seconds", [0.3, 3.0, 8.0])
def test_a_cut_of_one_direction_loses_and_doubles_nothing(brokers: Brokers, way: str, seconds: float):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.wire.cut(requests=way == "requests", replies=way == "replies")
    results = one.begin_append(event(1))
    brokers.pass_seconds(seconds)
    one.wire.mend()
    brokers.pass_seconds(6)
    assert len(results) == 1
    leader = two if two.led is not None else one
    leader.append(event(2))
    three = brokers.open(3).follow()
    brokers.until(lambda: three.events[-1:] == events(2))
    assert three.events in (events(0, 1, 2), events(0, 2))
    if isinstance(results[0], GroupAppended):
        assert three.events == events(0, 1, 2)


def test_after_a_restart_of_the_database_somebody_leads_and_nothing_is_lost(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.append(event(1))
    results = one.begin_append(event(2))
    brokers.database.restart()
    brokers.until(lambda: bool(results))
    brokers.until(lambda: two.led is not None)
    two.append(event(3))
    assert two.events == events(0, 1)
    three = brokers.open(3).follow()
    brokers.until(lambda: three.events == events(0, 1, 3))


def test_while_the_database_is_down_nobody_leads_and_followers_wait(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    brokers.database.primary.stop()
    brokers.pass_seconds(20)
    assert two.led is None
    assert one.failures != []
    brokers.database.primary.start()
    brokers.until(lambda: two.led is not None)
    assert two.failures == []


def test_a_failover_that_loses_what_was_durable_is_refused_and_told(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    for number in range(1, 4):
        one.append(event(number))
    brokers.until(lambda: two.events == events(0, 1, 2, 3))
    brokers.database.fail_over(lost=3)
    brokers.until(lambda: bool(two.failures))
    assert isinstance(two.led, Failed)
    brokers.until(lambda: bool(one.failures))
    for broker in (one, two):
        assert isinstance(broker.again().open(), JournalDamaged)
    other = brokers.open(3)
    assert isinstance(other.open(), JournalDamaged), "who has seen it has said so in the head"


def test_another_log_in_the_place_of_what_was_durable_is_refused(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    for number in range(1, 4):
        one.append(event(number))
    brokers.until(lambda: two.events == events(0, 1, 2, 3))
    two.follower.close()
    one.kill()
    brokers.database.fail_over(lost=3)
    other = brokers.open(3).follow()
    other.lead()
    for number in range(5, 9):
        other.append(event(number))
    again = BrokerOf(brokers, 2, two.witness)
    assert isinstance(again.open(), JournalDamaged)


def test_a_snapshot_bears_witness_of_what_was_durable(brokers: Brokers):
    one, _ = leader_and_follower(brokers)
    one.append(event(1))
    saved: list[Failed | None] = []
    one.journal.save_snapshot(b"state", one.journal.position, saved.append)
    brokers.until(lambda: bool(saved))
    assert saved == [None]
    one.kill()
    tables = brokers.database.primary.visible
    three = brokers.open(3).follow()
    assert (three.blob, three.begun) == (b"state", []), "it proves that the last group is durable"
    three.kill()
    brokers.database.primary.visible = type(tables)(
        **{name: getattr(tables, name) for name in tables.__struct_fields__} | {"tail": tables.tail[:-1]}
    )
    four = brokers.open(4, Witness())
    assert isinstance(four.open(), JournalDamaged)
