"""What a leader tells the others, and when it gives up; what a standby takes for the end of a leader."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from exacta.adapters.shared.pulse import Pulse
from exacta.adapters.shared.standby import Standby
from exacta.ports.journal import Failed
from exacta.ports.shared import Appended, Head, Superseded
from tests.adapters.shared.brokers import Brokers


class Told:
    """A ledger that notes what it is told, and answers as the test says."""

    def __init__(self, brokers: Brokers) -> None:
        self.loop: Any = brokers.loop
        self.beats: list[tuple[float, int]] = []
        self.hints: list[float] = []
        self.heads = 0
        self.answer: object = Appended()
        self.head: Head | Failed | None = None
        self.awaited: list[Callable[[Failed | None], None]] = []

    def beat(self, epoch: int, durable: int, done: Callable[[Any], None]) -> None:
        self.beats.append((round(self.loop.time(), 3), durable))
        if self.answer is not None:
            self.loop.call_soon(done, self.answer)

    def hint(self) -> None:
        self.hints.append(round(self.loop.time(), 3))

    def read_head(self, done: Callable[[Any], None]) -> None:
        self.heads += 1
        if self.head is not None:
            self.loop.call_soon(done, self.head)

    def await_lead(self, done: Callable[[Failed | None], None]) -> None:
        self.awaited.append(done)


@pytest.fixture
def ledger(brokers: Brokers) -> Told:
    return Told(brokers)


@pytest.fixture
def lost() -> list[Failed]:
    return []


@pytest.fixture
def pulse(brokers: Brokers, ledger: Told, lost: list[Failed]) -> Iterator[Pulse]:
    pulse = Pulse(ledger, brokers.loop, 1, 100, lost.append)  # type: ignore[arg-type]  # it is asked for nothing else
    yield pulse
    pulse.stop()


def head(epoch: int, beat: int = 0) -> Head:
    return Head(epoch, 1, beat, 0, 0, 0, 0)


def test_a_leader_beats_while_it_appends_nothing(brokers: Brokers, ledger: Told, pulse: Pulse):
    brokers.pass_seconds(0.9)
    assert ledger.beats == [(0.0, 100), (0.2, 100), (0.4, 100), (0.6, 100), (0.8, 100)]


def test_appends_stand_for_beats_and_the_last_one_is_told_soon(brokers: Brokers, ledger: Told, pulse: Pulse):
    brokers.pass_seconds(0.05)
    for number in range(100):
        pulse.appended(101 + number)
        brokers.pass_seconds(0.003)
    assert ledger.beats == [(0.0, 100)]
    brokers.pass_seconds(0.02)
    assert [durable for _, durable in ledger.beats] == [100, 200]


def test_hints_come_at_most_each_five_milliseconds_and_for_the_last_append(
    brokers: Brokers, ledger: Told, pulse: Pulse
):
    brokers.pass_seconds(0.05)
    del ledger.hints[:]
    for number in range(20):
        pulse.appended(101 + number)
        brokers.pass_seconds(0.001)
    brokers.pass_seconds(0.006)
    assert 4 <= len(ledger.hints) <= 6
    assert all(later - earlier >= 0.0049 for earlier, later in zip(ledger.hints, ledger.hints[1:], strict=False))


@pytest.mark.parametrize("answer", [Superseded(2), Failed("away")])
def test_a_refused_beat_or_a_failed_one_ends_the_lead(
    brokers: Brokers, ledger: Told, pulse: Pulse, lost: list[Failed], answer: object
):
    brokers.pass_seconds(0.1)
    ledger.answer = answer
    brokers.pass_seconds(0.2)
    assert len(lost) == 1
    brokers.pass_seconds(5)
    assert (len(lost), len(ledger.beats)) == (1, 2)


def test_a_ledger_that_is_silent_for_a_second_ends_the_lead(
    brokers: Brokers, ledger: Told, pulse: Pulse, lost: list[Failed]
):
    brokers.pass_seconds(0.1)
    ledger.answer = None
    brokers.pass_seconds(1.0)
    assert lost == []
    brokers.pass_seconds(0.3)
    assert len(lost) == 1


def test_a_slow_commit_is_no_silence_where_reads_are_answered(
    brokers: Brokers, ledger: Told, pulse: Pulse, lost: list[Failed]
):
    brokers.pass_seconds(0.1)
    ledger.answer, ledger.head = None, head(1)
    brokers.pass_seconds(4)
    assert (lost, len(ledger.beats)) == ([], 2)
    ledger.head = head(2)
    brokers.pass_seconds(0.3)
    assert lost == [Failed("another broker leads, in epoch 2")]


def standby(brokers: Brokers, ledger: Told) -> Standby:
    found = Standby(ledger, brokers.loop.time, lambda: None)  # type: ignore[arg-type]  # it is asked for nothing else
    found.is_wanted = True
    return found


def polls(brokers: Brokers, watching: Standby, count: int, seconds: float, seen: Head) -> bool:
    """Let it hear the same head again and again; return whether it may claim then."""
    for _ in range(count):
        watching.hear(seen, 0)
        brokers.pass_seconds(seconds)
    watching.hear(seen, 0)
    return watching.may_claim(seen)


def test_a_leader_is_suspected_after_silence_and_several_polls(brokers: Brokers, ledger: Told):
    watching = standby(brokers, ledger)
    assert not polls(brokers, watching, 15, 0.05, head(1))
    assert polls(brokers, watching, 2, 0.05, head(1))
    watching.tried()
    assert not polls(brokers, watching, 3, 0.05, head(1)), "it begins again"


def test_a_standby_that_was_paused_itself_suspects_nobody(brokers: Brokers, ledger: Told):
    watching = standby(brokers, ledger)
    watching.hear(head(1, 1), 0)
    brokers.pass_seconds(60)
    watching.hear(head(1, 200), 0)
    assert not watching.may_claim(head(1, 200))
    watching.hear(head(1, 201), 0)
    brokers.pass_seconds(60)
    watching.hear(head(1, 201), 0)
    assert not watching.may_claim(head(1, 201)), "one poll is not enough"


def test_the_end_of_a_session_counts_for_its_own_epoch(brokers: Brokers, ledger: Told):
    watching = standby(brokers, ledger)
    watching.hear(head(1), 0)
    ledger.awaited.pop()(None)
    assert watching.may_claim(head(1))
    assert not watching.may_claim(head(2)), "another was faster"
    watching.hear(head(2), 0)
    ledger.awaited.pop()(Failed("away"))
    assert not watching.may_claim(head(2))
    watching.hear(head(2), 0)
    assert len(ledger.awaited) == 1, "it waits again"
