"""Snapshots are folded where the journal wants them, and not too often: each costs a process."""

from collections.abc import Callable
from typing import Any

from exacta.engine.deadlines import Deadlines
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS, SnapshotSchedule
from exacta.ports.journal import Failed, Fold
from tests.engine.rig import ManualLoop, Rig


def rolls(rig: Rig, count: int = 3) -> None:
    """Fill this many segments."""
    for _ in range(count):
        rig.append(bytes(300))
        rig.loop.settle()


def latest(rig: Rig) -> int:
    """Return the position of the latest snapshot."""
    return max(rig.storage.snapshots)


def wanting() -> Rig:
    """Return an engine whose journal wants a snapshot with every batch, and has just had one."""
    rig = Rig(segment_bytes=300)
    rig.topic()
    rolls(rig)
    assert rig.storage.snapshots
    return rig


def test_however_fast_segments_fill_an_interval_lies_between_two_folds() -> None:
    rig = wanting()
    first = latest(rig)
    rolls(rig, 10)
    rig.loop.pass_time(FOLD_EVERY_MS - 1)
    rolls(rig)
    assert latest(rig) == first
    rig.loop.pass_time(1)
    second = latest(rig)
    assert second == rig.storage.position, "though nothing is written that could remind of it"
    rolls(rig)
    assert latest(rig) == second
    rig.loop.pass_time(FOLD_EVERY_MS)
    assert latest(rig) == rig.storage.position > second


def test_after_a_rest_a_fold_waits_for_nothing() -> None:
    rig = wanting()
    rig.loop.pass_time(2 * FOLD_EVERY_MS)
    first = latest(rig)
    rolls(rig, 1)
    assert latest(rig) > first


class SlowJournal:
    """Wants a snapshot when the test says so, and has made it when the test says so."""

    def __init__(self) -> None:
        self.wants_snapshot = True
        self.under_way: list[Callable[[Failed | None], None]] = []

    def fold_snapshot(self, fold: Fold, done: Callable[[Failed | None], None]) -> None:
        self.wants_snapshot = False
        self.under_way.append(done)


class Slow:
    """SnapshotSchedule over such a journal, the first one under way."""

    def __init__(self) -> None:
        self.journal = SlowJournal()
        self.loop = ManualLoop()
        self.saved = 0
        journal: Any = self.journal
        deadlines = Deadlines(self.loop, self.now_ms)
        self.folding = SnapshotSchedule(journal, deadlines, self.now_ms, self.note, every_ms=1_000)
        self.folding.look()
        assert len(self.journal.under_way) == 1

    def now_ms(self) -> int:
        return self.loop.now_ms

    def note(self) -> None:
        self.saved += 1


def test_what_comes_while_one_is_made_gets_its_own_though_nobody_looks_again() -> None:
    slow = Slow()
    slow.loop.pass_time(1_500)
    slow.journal.wants_snapshot = True
    slow.journal.under_way.pop()(None)
    assert slow.saved == 1
    assert len(slow.journal.under_way) == 1


def test_after_a_failure_it_is_tried_again_when_somebody_looks_and_the_interval_is_over() -> None:
    slow = Slow()
    slow.journal.wants_snapshot = True
    slow.journal.under_way.pop()(Failed("disk full"))
    slow.loop.pass_time(3_000)
    assert slow.journal.under_way == [], "nor does a full disk get a process each time"
    slow.folding.look()
    assert len(slow.journal.under_way) == 1
    assert slow.saved == 0


def test_once_stopped_it_asks_for_none() -> None:
    slow = Slow()
    slow.folding.stop()
    slow.journal.wants_snapshot = True
    slow.journal.under_way.pop()(None)
    slow.loop.pass_time(3_000)
    slow.folding.look()
    assert slow.journal.under_way == []
