"""Crash points of appending, offloading and taking the lead: a broker is killed at each call of its ledger.

Whatever is killed, the next leader has all that was acknowledged, once and in order, and followers see the same.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from exacta.adapters.memory import DatabaseWire, MemoryLedger
from exacta.ports.journal import GroupAppended, JournalEntry
from tests.adapters.shared.brokers import BrokerOf, Brokers
from tests.adapters.turns import batch

WRITES = ("append", "confirm", "beat", "claim", "intend", "change_catalog", "sweep", "forget", "resign", "hint")


CRASH_POINTS = 40


class Crashing:
    """A ledger whose broker is killed at one of its calls that change something; the call is carried out, or is not."""

    def __init__(self, ledger: MemoryLedger, dies_at: int, *, carried_out: bool) -> None:
        self._ledger = ledger
        self._dies_at = dies_at
        self._carried_out = carried_out
        self.calls: list[str] = []
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        return partial(self._write, name, method) if name in WRITES else method

    def _write(self, name: str, method: Callable[..., None], *arguments: object) -> None:
        self.calls.append(name)
        dies = len(self.calls) == self._dies_at
        if not dies or self._carried_out:
            method(*arguments)
        if dies:
            self.is_dead = True
            self._ledger.close()


class CrashingBrokers(Brokers):
    """Brokers of which the next that is opened will be killed at a call."""

    dies_at = 0
    carried_out = False
    crashing: Crashing | None = None

    def new_ledger(self, wire: DatabaseWire) -> Any:
        ledger = MemoryLedger(self.database, self.loop, wire)
        if not self.dies_at:
            return ledger
        self.crashing = Crashing(ledger, self.dies_at, carried_out=self.carried_out)
        self.dies_at = 0
        return self.crashing


@pytest.fixture(params=[False, True], ids=["not carried out", "carried out"])
def brokers(request: pytest.FixtureRequest) -> Iterator[CrashingBrokers]:
    brokers = CrashingBrokers()
    brokers.carried_out = request.param
    yield brokers
    brokers.loop.close()


def entry(number: int) -> JournalEntry:
    return batch(1, number, b"%03d" % number * 100)


def append_until_dead(broker: BrokerOf, crashing: Crashing, begin: int, end: int) -> tuple[int, int]:
    """Append one after another; return how many were acknowledged, and how many begun."""
    for number in range(begin, end):
        results = broker.begin_append(entry(number))
        broker.brokers.until(lambda: bool(results) or crashing.is_dead)  # noqa: B023  # it is called at once
        if not (results and isinstance(results[0], GroupAppended)):
            return number, number + 1
    return end, end


def check(brokers: Brokers, follower: BrokerOf, acknowledged: int, begun: int) -> None:
    """Let the follower lead, and append; what it and another one have is all that was acknowledged."""
    journal = follower.lead()
    found = len(follower.events)
    assert acknowledged <= found <= begun
    assert follower.events == [entry(number).event for number in range(found)]
    for number in range(found, found + 8):
        follower.append(entry(number))
    late = brokers.open(9).follow()
    brokers.until(lambda: late.follower.position == journal.position)
    assert late.events == [entry(number).event for number in range(found + 8)]
    whole = b"".join(b"%03d" % number * 100 for number in range(found + 8))
    assert follower.read(1, 0, 100) == late.read(1, 0, 100) == whole


def test_the_crash_points_are_all_that_a_leader_changes(brokers: CrashingBrokers):
    brokers.dies_at = CRASH_POINTS
    one = brokers.open(1).follow()
    one.lead()
    crashing = brokers.crashing
    assert crashing is not None
    append_until_dead(one, crashing, 0, 30)
    assert {"claim", "append", "hint", "beat", "intend", "change_catalog"} <= set(crashing.calls)


@pytest.mark.parametrize("dies_at", range(1, CRASH_POINTS))
def test_a_leader_killed_at_any_call_loses_nothing(brokers: CrashingBrokers, dies_at: int):
    brokers.dies_at = dies_at
    one = brokers.open(1)
    crashing = brokers.crashing
    assert crashing is not None
    two = brokers.open(2).follow()
    one.follow().want_lead()
    brokers.until(lambda: one.led is not None or crashing.is_dead)
    acknowledged, begun = (0, 0) if one.led is None else append_until_dead(one, crashing, 0, 30)
    if not crashing.is_dead:
        one.kill()
    check(brokers, two, acknowledged, begun)


@pytest.mark.parametrize("dies_at", range(1, 8))
def test_a_standby_killed_while_it_takes_the_lead_loses_nothing(brokers: CrashingBrokers, dies_at: int):
    one = brokers.open(1).follow()
    one.lead()
    for number in range(10):
        one.append(entry(number))
    brokers.dies_at = dies_at
    two = brokers.open(2)
    crashing = brokers.crashing
    assert crashing is not None
    three = brokers.open(3).follow()
    two.follow().want_lead()
    results = one.begin_append(entry(10))
    one.kill()
    brokers.until(lambda: two.led is not None or crashing.is_dead)
    acknowledged = 11 if results else 10
    begun = 11
    if two.led is not None and not crashing.is_dead:
        found = len(two.events)
        acknowledged, begun = append_until_dead(two, crashing, found, found + 10)
    if not crashing.is_dead:
        two.kill()
    check(brokers, three, acknowledged, begun)
