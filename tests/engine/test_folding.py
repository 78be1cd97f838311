"""Snapshots are folded where the journal wants them, and not too often: each costs a process."""

from exacta.engine.folding import FOLD_EVERY_MS
from tests.engine.rig import Rig


def rolls(rig: Rig, count: int = 3) -> None:
    """Fill so many segments."""
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


def test_an_engine_that_stops_folds_no_more() -> None:
    rig = wanting()
    rolls(rig)
    rig.close()
    saved = dict(rig.storage.snapshots)
    rig.loop.pass_time(2 * FOLD_EVERY_MS)
    assert rig.storage.snapshots == saved
