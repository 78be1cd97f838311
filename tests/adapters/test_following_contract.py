"""The contract of following a shared log, and of taking its lead, over the ledger and the store in memory."""

from collections.abc import Iterator

import pytest

from exacta.ports.journal import JournalEntry
from tests.adapters.shared.brokers import Brokers
from tests.adapters.turns import batch


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    brokers = Brokers()
    yield brokers
    brokers.loop.close()


def test_a_follower_is_told_of_each_group_in_order(brokers: Brokers):
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    one.lead()
    for number in range(20):
        end = one.append(batch(number % 3, number, b"%02d" % number * 100))
    brokers.until(lambda: two.follower.position == end)
    assert two.events == [b"event of %d at %d" % (number % 3, number) for number in range(20)]
    found = [broker.read(1, 4, 20) for broker in (one, two)]
    assert found == [b"".join(b"%02d" % number * 100 for number in range(4, 20, 3))] * 2


def test_who_opens_late_begins_with_what_is_there(brokers: Brokers):
    one = brokers.open(1).follow()
    one.lead()
    end = one.append(JournalEntry(b"a"), JournalEntry(b"b"))
    brokers.pass_seconds(0.3)
    two = brokers.open(2).follow()
    assert (two.begun, two.follower.position) == ([b"a", b"b"], end)
    one.append(JournalEntry(b"c"))
    brokers.until(lambda: two.events == [b"a", b"b", b"c"])


def test_a_killed_leader_is_followed_by_another_at_once(brokers: Brokers):
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    one.lead()
    two.want_lead()
    end = one.append(JournalEntry(b"a"))
    one.kill()
    before = brokers.loop.time()
    brokers.until(lambda: two.led is not None)
    assert brokers.loop.time() - before < 0.1
    assert two.journal.position == end
    assert two.events == [b"a"]
    assert two.append(JournalEntry(b"b")) > end


def test_catching_up_waits_for_what_was_durable(brokers: Brokers):
    one, two = brokers.open(1).follow(), brokers.open(2).follow()
    one.lead()
    end = one.append(JournalEntry(b"a"))
    assert two.follower.position == 0
    results: list[object] = []
    two.follower.catch_up(results.append)
    brokers.until(lambda: bool(results))
    assert results == [None]
    assert two.follower.position == end
