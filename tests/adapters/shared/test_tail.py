"""The tail beyond what is kept of it in memory: it is read from the ledger again, or from the object that it became."""

from collections.abc import Callable

import pytest

from exacta.ports.journal import Buffer, Failed
from tests.adapters.shared.brokers import BrokerOf, Brokers, fill, written
from tests.adapters.turns import batch

SMALL = 1_000


@pytest.fixture
def leader(brokers: Brokers) -> BrokerOf:
    """A leader whose tail has forty batches of 300 bytes in one segment, of which three are in memory."""
    brokers.segment_bytes = 1 << 20
    leader = brokers.open(1).follow()
    leader.lead()._tail._memory_bytes = SMALL
    fill(leader, 0, 40)
    return leader


def asked_for(leader: BrokerOf, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list in which reads of the ledger are noted from now on."""
    asked: list[str] = []

    def note(name: str, method: Callable[..., None]) -> Callable[..., None]:
        def noted(*arguments: object) -> None:
            asked.append(name)
            method(*arguments)

        return noted

    for name in ("read_tail", "read_body"):
        monkeypatch.setattr(leader.ledger, name, note(name, getattr(leader.ledger, name)))
    return asked


def test_what_is_in_memory_is_had_at_once(leader: BrokerOf, monkeypatch: pytest.MonkeyPatch):
    asked = asked_for(leader, monkeypatch)
    assert leader.read(1, 38, 40) == written(38, 40)
    assert asked == []


def test_what_is_not_in_memory_is_read_again(leader: BrokerOf, monkeypatch: pytest.MonkeyPatch):
    asked = asked_for(leader, monkeypatch)
    assert leader.journal.read_cached(leader.journal.find(1, 0, 40, 1 << 20)) is None
    for begin, end in ((0, 40), (0, 1), (5, 9), (35, 40)):
        assert leader.read(1, begin, end) == written(begin, end)
    assert set(asked) == {"read_tail"}


def test_of_a_large_group_a_part_is_read(leader: BrokerOf, monkeypatch: pytest.MonkeyPatch):
    leader.append(*(batch(stream, 0, b"%d" % stream * 300) for stream in range(2, 9)))
    fill(leader, 40, 50)
    asked = asked_for(leader, monkeypatch)
    assert [leader.read(stream, 0, 1) for stream in range(2, 9)] == [b"%d" % stream * 300 for stream in range(2, 9)]
    assert asked == ["read_body"] * 7


def test_a_ledger_that_is_away_fails_the_read_alone(leader: BrokerOf):
    leader.wire.requests.to_lose = 1
    journal, results = leader.journal, list[list[Buffer | Failed]]()
    journal.read([*journal.find(1, 0, 2, 1 << 20), *journal.find(1, 39, 40, 1 << 20)], results.append)
    leader.brokers.until(lambda: bool(results))
    assert isinstance(results[0][0], Failed)
    assert results[0][1] == written(39, 40)


def test_what_has_become_an_object_meanwhile_is_read_there(leader: BrokerOf):
    journal, results = leader.journal, list[list[Buffer | Failed]]()
    extents = journal.find(1, 0, 10, 1 << 20)
    leader.wire.requests.seconds = lambda: 0.5
    journal.read(extents, results.append)
    leader.wire.requests.seconds = lambda: 0.0
    journal.seal()
    fill(leader, 40, 41)
    leader.brokers.until(lambda: bool(results))
    assert journal.tail_from > 0
    assert results == [[written(0, 10)]]
