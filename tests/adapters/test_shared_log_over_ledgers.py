"""A shared log over every ledger: what follower and journal rest on is what each of them does."""

import pytest

from exacta.adapters.memory import DatabaseWire
from exacta.ports.journal import Failed
from exacta.ports.shared import Ledger
from tests.adapters.ledger_benches import Ability, LedgerBench
from tests.adapters.shared.brokers import Brokers, event, events, fill, leader_and_follower, written


class BrokersOver(Brokers):
    """Brokers over the ledgers of a bench."""

    def __init__(self, bench: LedgerBench) -> None:
        super().__init__(loop=bench.loop)
        self.bench = bench

    def new_ledger(self, wire: DatabaseWire) -> Ledger:
        return self.bench.open()


@pytest.fixture
def brokers(ledgers: LedgerBench) -> BrokersOver:
    return BrokersOver(ledgers)


def test_a_follower_is_told_of_all_also_where_it_has_become_objects(brokers: BrokersOver):
    one, two = leader_and_follower(brokers)
    fill(one, 0, 30)
    brokers.until(lambda: two.follower.position == one.journal.position)
    brokers.until(lambda: two.follower.catalog == one.journal.catalog > 2)
    assert two.events == events(0) + [b"event of 1 at %d" % number for number in range(30)]
    assert one.read(1, 0, 30) == two.read(1, 0, 30) == written(0, 30)
    late = brokers.open(3).follow()
    brokers.until(lambda: late.events == two.events)
    assert late.read(1, 0, 30) == written(0, 30)


def test_a_leader_whose_session_ends_is_followed_by_another(brokers: BrokersOver):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.append(event(1))
    one.kill()
    brokers.until(lambda: two.led is not None)
    two.append(event(2))
    three = brokers.open(3).follow()
    brokers.until(lambda: three.events == events(0, 1, 2))


def test_a_leader_that_is_cut_off_is_replaced_and_knows_it(brokers: BrokersOver):
    if Ability.CUT not in brokers.bench.abilities:
        pytest.skip("this bench cannot cut")
    one, two = leader_and_follower(brokers)
    two.want_lead()
    brokers.bench.cut(one.ledger)
    brokers.until(lambda: two.led is not None and bool(one.failures))
    two.append(event(1))
    brokers.bench.mend(one.ledger)
    one = one.again().follow()
    brokers.until(lambda: one.events == events(0, 1))


def test_after_a_lost_reply_the_group_is_found_once(brokers: BrokersOver):
    if Ability.LOSE_REPLIES not in brokers.bench.abilities:
        pytest.skip("this bench cannot lose replies")
    one, _ = leader_and_follower(brokers)
    one.journal._pulse.stop()  # whose beats would lose theirs
    brokers.bench.lose_reply(one.ledger)
    results = one.begin_append(event(1))
    brokers.until(lambda: bool(results))
    assert isinstance(results[0], Failed)
    one = one.again().follow()
    one.lead()
    assert one.events == events(0, 1)
    one.append(event(2))


def test_a_restart_of_the_database_costs_the_lead_alone(brokers: BrokersOver):
    if Ability.RESTART not in brokers.bench.abilities:
        pytest.skip("this bench cannot restart")
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.append(event(1))
    brokers.bench.restart()
    brokers.until(lambda: two.led is not None and bool(one.failures))
    two.append(event(2))
    assert two.failures == []
    one = one.again().follow()
    brokers.until(lambda: one.events == events(0, 1, 2))


def test_the_store_is_closed_by_the_broker_that_owns_it(brokers: BrokersOver, monkeypatch: pytest.MonkeyPatch):
    """Else each change of roles would leave sessions of PostgreSQL behind."""
    closed: list[str] = []
    one, two = leader_and_follower(brokers)
    monkeypatch.setattr(brokers.store, "close", lambda: closed.append("closed"))
    two.follower.close()
    assert closed
    closed.clear()
    one.journal.close()
    assert closed
