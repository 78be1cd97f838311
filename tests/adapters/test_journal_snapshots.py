"""The journal port's contract of snapshots and folds, run on every adapter."""

from collections.abc import Iterator

import pytest

from exacta.ports.journal import (
    GroupAppended,
    Journal,
    JournalEntry,
)
from tests.adapters.bench import SEGMENT_BYTES, Bench, events, replay
from tests.adapters.turns import Turns, append


def test_replay_begins_at_the_latest_snapshot(bench: Bench, turns: Turns):
    journal = bench.open()
    append(turns, journal, JournalEntry(b"a"))
    assert turns.wait(lambda done: journal.save_snapshot(b"one", journal.position, done)) is None
    append(turns, journal, JournalEntry(b"b"))
    journal.save_snapshot(b"two", journal.position)
    append(turns, journal, JournalEntry(b"c"))
    journal = bench.open()
    blob, replayed = replay(journal)
    assert (blob, list(replayed)) == (b"two", [b"c"])
    append(turns, journal, JournalEntry(b"d"))
    blob, replayed = replay(bench.open())
    assert (blob, list(replayed)) == (b"two", [b"c", b"d"])


def test_snapshot_of_an_empty_journal(bench: Bench, turns: Turns):
    journal = bench.open()
    assert turns.wait(lambda done: journal.save_snapshot(b"nothing yet", 0, done)) is None
    blob, replayed = replay(bench.open())
    assert (blob, list(replayed)) == (b"nothing yet", [])


def joined(blob: bytes | None, events: Iterator[bytes]) -> bytes:
    return b"+".join([*([] if blob is None else [blob]), *events])


def test_a_fold_takes_the_latest_snapshot_and_the_events_since(bench: Bench, turns: Turns):
    journal = bench.open()
    append(turns, journal, JournalEntry(b"a"), JournalEntry(b"b"))
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    append(turns, journal, JournalEntry(b"c"))
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None, "once more, of the same"
    append(turns, journal, JournalEntry(b"d"))
    blob, replayed = replay(bench.open())
    assert (blob, list(replayed)) == (b"a+b+c", [b"d"])


def test_a_fold_reaches_over_segments(bench: Bench, turns: Turns):
    journal = bench.open()
    while journal.position < 3 * SEGMENT_BYTES:
        append(turns, journal, JournalEntry(b"e" * 100))
    wanted = events(journal)
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    blob, replayed = replay(bench.open())
    assert (blob, list(replayed)) == (b"+".join(wanted), [])


def test_a_fold_leaves_out_what_is_in_flight_or_not_durable(bench: Bench, turns: Turns):
    journal = bench.open()
    append(turns, journal, JournalEntry(b"a"))
    ahead = [] if journal.write(journal.position, [JournalEntry(b"written")]) is None else [b"written"]
    results: list[object] = []
    journal.fold_snapshot(joined, results.append)
    end = journal.append(journal.position, [JournalEntry(b"in flight")], results.append)
    turns.run_until(lambda: len(results) == 2)
    assert set(results) == {None, GroupAppended(end)}
    blob, replayed = replay(bench.open())
    assert (blob, list(replayed)) == (b"a", [*ahead, b"in flight"])


def test_snapshot_of_any_other_position_is_refused(turns: Turns, journal: Journal):
    end = append(turns, journal, JournalEntry(b"a"))
    for position in (0, end - 1, end + 1):
        with pytest.raises(ValueError, match="not a position of a durable journal"):
            journal.save_snapshot(b"blob", position)


def test_snapshot_is_wanted_once_a_segment_is_full(turns: Turns, journal: Journal):
    while journal.position < SEGMENT_BYTES:
        assert not journal.wants_snapshot
        append(turns, journal, JournalEntry(b"e" * 100))
    append(turns, journal, JournalEntry(b"first of the next segment"))
    assert journal.wants_snapshot
    journal.save_snapshot(b"blob", journal.position)
    assert not journal.wants_snapshot
