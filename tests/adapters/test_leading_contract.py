"""The contract of taking the lead of a shared log, and of confirming it, over the ledger and the store in memory."""

from collections.abc import Callable
from typing import Any

import pytest

from exacta.ports.journal import Conflict, Failed, GroupAppended
from exacta.ports.shared import Appended, Superseded
from tests.adapters.shared.brokers import Brokers, event, events, leader_and_follower

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


def test_a_lead_that_cannot_be_finished_is_given_up_and_claimed_again(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    claim, read_tail = two.ledger.claim, two.ledger.read_tail

    def fail_once(position: int, max_bytes: int, done: Callable[[Failed], None]) -> None:
        monkeypatch.setattr(two.ledger, "read_tail", read_tail)
        brokers.loop.call_soon(done, Failed("away"))

    def claim_once(*arguments: Any) -> None:
        monkeypatch.setattr(two.ledger, "claim", claim)
        monkeypatch.setattr(two.ledger, "read_tail", fail_once)
        claim(*arguments)

    monkeypatch.setattr(two.ledger, "claim", claim_once)
    one.append(event(1))
    one.kill()
    brokers.until(lambda: two.led is not None)
    assert two.journal.epoch == 3
    assert two.events == events(0, 1)
    brokers.pass_seconds(1)
    assert two.failures == []
    assert brokers.database.primary.visible.epoch == 3


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
