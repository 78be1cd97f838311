"""The contract of following a shared log, over the ledger and the store in memory."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from exacta.ports.following import Delivered, Follower, LedJournal
from exacta.ports.journal import Cleaned, Failed
from tests.adapters.shared.brokers import Brokers, event, events, fill, leader_and_follower, written
from tests.adapters.turns import batch


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


def joined(blob: bytes | None, folded: Iterator[bytes]) -> bytes:
    return b"+".join([*([] if blob is None else [blob]), *folded])


def test_a_follower_whose_next_events_are_cleaned_away_begins_again_with_a_snapshot(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.wire.cut()
    for part in range(3):
        fill(one, 20 * part, 20 * part + 20)
        folded: list[Failed | None] = []
        one.journal.fold_snapshot(joined, folded.append)
        brokers.until(lambda: bool(folded))  # noqa: B023  # it is called in this turn of the loop
        assert folded == [None]
    brokers.pass_seconds(70)
    while True:
        cleaned: list[Cleaned | Failed] = []
        one.journal.clean({1: 50}, cleaned.append)
        brokers.until(lambda: bool(cleaned))  # noqa: B023  # it is called in this turn of the loop
        assert isinstance(cleaned[0], Cleaned)
        if not cleaned[0].freed_bytes:
            break
    two.wire.mend()
    brokers.until(lambda: bool(two.failures))
    assert two.events == events(0), "nothing was skipped"
    two = two.again().follow()
    end = one.append(event(100))
    brokers.until(lambda: two.follower.position == end)
    everything = events(0) + [b"event of 1 at %d" % number for number in range(60)] + events(100)
    assert two.blob is not None
    assert two.blob.split(b"+") + two.events == everything
    assert two.read(1, 50, 60) == written(50, 60)


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

    reads: list[int] = []
    read_tail = two.ledger.read_tail

    def read(position: int, max_bytes: int, done: Callable[[Any], None]) -> None:
        reads.append(position)
        read_tail(position, max_bytes, done)

    with monkeypatch.context() as away:
        away.setattr(two.ledger, "read_catalog", fail)
        away.setattr(two.ledger, "read_tail", read)
        fill(one, 0, 20)
        brokers.pass_seconds(1)
        del reads[:]
        for number in range(100, 200):
            one.append(event(number))
            brokers.pass_seconds(0.01)
        assert len(reads) < 8, "a follower that cannot go on does not read at each hint"
        assert two.follower.catalog < one.journal.catalog
        assert len(two.events) < 20
    brokers.until(lambda: two.follower.position == one.journal.position)
    assert two.events == events(0) + [b"event of 1 at %d" % number for number in range(20)] + events(*range(100, 200))


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
