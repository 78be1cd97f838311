"""The journal port's contract, where the event loop itself writes: `Journal.write`, on every adapter that takes it so.

A shared journal refuses every group: what is not durable in its ledger is nowhere.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.adapters.local.sync_pace import QUICK_SYNCS
from exacta.ports.journal import AppendResult, Conflict, GroupAppended, IndexEntry, Journal, JournalEntry
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.bench import EVERYTHING, SEGMENT_BYTES, Bench, events, replay
from tests.adapters.turns import Turns, append, batch, become_quick, read, wants_snapshot


@pytest.fixture(params=["memory", "local", "simulated disk"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(request.param, tmp_path)
    yield bench
    bench.end()


@pytest.fixture
def refusing(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench("shared", tmp_path)
    yield bench
    bench.end()


def test_a_journal_may_refuse_every_group(refusing: Bench):
    bench = refusing
    bench.be_quick()
    journal = bench.open()
    become_quick(bench.turns, journal)
    end = journal.position
    assert (journal.is_quick, journal.may_have_lost) == (False, False)
    for durably in (False, True):
        assert journal.write(end, [JournalEntry(b"a")], durably=durably) is None
        result = journal.write(end - 1, [JournalEntry(b"a")], durably=durably)
        assert isinstance(result, Conflict)
        assert result.position == end
        with pytest.raises(ValueError, match="needs entries"):
            journal.write(end, [], durably=durably)
    results: list[AppendResult] = []
    journal.append(end, [JournalEntry(b"b")], results.append)
    with pytest.raises(AssertionError):
        journal.write(end, [JournalEntry(b"c")])
    bench.turns.run_until(lambda: bool(results))
    assert events(journal)[-1:] == [b"b"]


class Stopping:
    """An adapter whose machine can stop."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def stop_machine(self) -> None:
        """Lose what was only written; to be opened again."""
        if isinstance(self.bench.files, SimulatedDisk):
            self.bench.files = self.bench.files.crashed()
        else:
            self.bench.storage.stop_machine()
        self.bench.abandon()


@pytest.fixture(params=["memory", "simulated disk"])
def stopping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stopping]:
    bench = Bench(request.param, tmp_path)
    yield Stopping(bench)
    bench.close()


def write(journal: Journal, *entries: JournalEntry) -> int:
    """Write one group and return the position after it."""
    before = journal.position
    result = journal.write(before, entries)
    assert isinstance(result, GroupAppended)
    assert before < journal.position == result.position
    return result.position


def test_what_is_written_is_found_at_once_and_outlives_the_journal(bench: Bench, turns: Turns):
    journal = bench.open()
    append(turns, journal, batch(1, 0, b"durable"))
    ends = [write(journal, batch(1, 1, b"written")), write(journal, batch(1, 2, b"as well"), JournalEntry(b"event"))]
    assert read(turns, journal, journal.find(1, 0, 3, EVERYTHING)) == b"durablewrittenas well"
    assert journal.position == ends[1]
    journal = bench.open()
    assert not journal.may_have_lost
    assert journal.position == ends[1]
    assert len(events(journal)) == 4


def test_an_append_makes_durable_what_was_written_even_without_entries(bench: Bench, turns: Turns):
    journal = bench.open()
    append(turns, journal, JournalEntry(b"a"))
    end = write(journal, JournalEntry(b"b"))
    with pytest.raises(ValueError, match="not a position of a durable journal"):
        journal.save_snapshot(b"state", end)
    assert turns.wait(lambda done: journal.append(end, [], done)) == GroupAppended(end)
    assert turns.wait(lambda done: journal.save_snapshot(b"state", end, done)) is None
    with pytest.raises(ValueError, match="all is durable"):
        journal.append(end, [], lambda _: None)
    write(journal, JournalEntry(b"c"))
    append(turns, journal, JournalEntry(b"d"))
    blob, replayed = replay(bench.open())
    assert (blob, list(replayed)) == (b"state", [b"c", b"d"])


def test_nothing_is_written_ahead_before_the_first_append(bench: Bench, turns: Turns):
    journal = bench.open()
    assert journal.write(0, [JournalEntry(b"a")]) is None
    append(turns, journal, JournalEntry(b"a"))
    write(journal, JournalEntry(b"b"))
    journal = bench.open()
    assert journal.write(journal.position, [JournalEntry(b"c")]) is None
    assert events(journal) == [b"a", b"b"]


def test_what_is_large_or_begins_a_segment_is_left_to_append(turns: Turns, journal: Journal):
    append(turns, journal, JournalEntry(b"a"))
    end = journal.position
    assert journal.write(end, [JournalEntry(b"large", (bytes(64 << 10),))]) is None
    while journal.position < SEGMENT_BYTES:
        write(journal, JournalEntry(b"e" * 100))
    assert journal.write(journal.position, [JournalEntry(b"next segment")]) is None
    assert not wants_snapshot(journal)
    append(turns, journal, JournalEntry(b"next segment"))
    assert wants_snapshot(journal)
    write(journal, JournalEntry(b"goes on"))


def test_whether_a_write_may_be_missing(stopping: Stopping):
    bench, turns = stopping.bench, stopping.bench.turns
    assert not bench.open().may_have_lost
    journal = bench.open()
    append(turns, journal, JournalEntry(b"a"))
    write(journal, JournalEntry(b"b"))
    stopping.stop_machine()
    for _ in range(2):  # until a group was appended
        journal = bench.open()
        assert journal.may_have_lost
        assert events(journal) == [b"a"]
    append(turns, journal, JournalEntry(b"c"))
    write(journal, JournalEntry(b"d"))
    bench.close()
    stopping.stop_machine()
    journal = bench.open()
    assert not journal.may_have_lost, "it was closed"
    assert events(journal) == [b"a", b"c", b"d"]


def test_who_opens_it_not_for_unsynced_writes_is_never_told_that_one_is_missing(stopping: Stopping):
    bench, turns = stopping.bench, stopping.bench.turns
    append(turns, bench.open(), JournalEntry(b"a"))
    stopping.stop_machine()
    bench.unsynced_writes = False
    journal = bench.open()
    assert journal.may_have_lost, "of the time before"
    append(turns, journal, JournalEntry(b"b"))
    assert journal.write(journal.position, [JournalEntry(b"c")]) is None
    stopping.stop_machine()
    journal = bench.open()
    assert not journal.may_have_lost
    assert events(journal) == [b"a", b"b"]


def test_a_write_at_another_position_conflicts(turns: Turns, journal: Journal):
    end = append(turns, journal, JournalEntry(b"a"))
    for position in (0, end - 1, end + 1):
        assert journal.write(position, [JournalEntry(b"b")]) == Conflict(end)
    with pytest.raises(ValueError, match="needs entries"):
        journal.write(end, [])
    with pytest.raises(ValueError, match="outside its payload"):
        journal.write(end, [JournalEntry(b"b", (b"abc",), (IndexEntry(1, 0, 0, 0, 0, 4),))])
    assert journal.position == end
    assert events(journal) == [b"a"]


def test_a_write_while_an_append_is_in_flight_is_a_bug(turns: Turns, journal: Journal):
    append(turns, journal, JournalEntry(b"a"))
    results: list[AppendResult] = []
    journal.append(journal.position, [JournalEntry(b"b")], results.append)
    with pytest.raises(AssertionError):
        journal.write(journal.position, [JournalEntry(b"c")])
    turns.run_until(lambda: bool(results))


def quick(bench: Bench) -> Journal:
    """Open the journal on a disk that is known to be quick."""
    bench.be_quick()
    journal = bench.open()
    become_quick(bench.turns, journal)
    return journal


def test_what_is_written_durably_is_durable_with_all_before_it(stopping: Stopping):
    bench = stopping.bench
    journal = quick(bench)
    write(journal, batch(1, 0, b"ahead"))
    end = journal.position
    result = journal.write(end, [batch(1, 1, b"durable")], durably=True)
    assert result == GroupAppended(journal.position)
    assert journal.position > end
    assert read(bench.turns, journal, journal.find(1, 0, 2, EVERYTHING)) == b"aheaddurable"
    with pytest.raises(ValueError, match="all is durable"):
        journal.append(journal.position, [], lambda _: None)
    write(journal, JournalEntry(b"lost"))
    stopping.stop_machine()
    journal = bench.open()
    assert journal.position == result.position
    assert len(events(journal)) == QUICK_SYNCS + 2


def test_who_opens_it_not_for_unsynced_writes_may_still_write_durably(bench: Bench):
    bench.unsynced_writes = False
    journal = quick(bench)
    assert journal.write(journal.position, [JournalEntry(b"ahead")]) is None
    assert isinstance(journal.write(journal.position, [JournalEntry(b"durable")], durably=True), GroupAppended)


def test_a_slow_disk_is_not_waited_for(bench: Bench, turns: Turns):
    journal = quick(bench)
    bench.be_quick(quick=False)
    append(turns, journal, JournalEntry(b"slow"))
    assert journal.write(journal.position, [JournalEntry(b"durable")], durably=True) is None
    assert isinstance(journal.write(journal.position, [JournalEntry(b"ahead")]), GroupAppended)


def test_what_is_large_or_begins_a_segment_is_not_waited_for(bench: Bench):
    journal = quick(bench)
    assert journal.write(journal.position, [JournalEntry(b"large", (bytes(64 << 10),))], durably=True) is None
    while journal.position < SEGMENT_BYTES:
        write(journal, JournalEntry(b"e" * 100))
    assert journal.write(journal.position, [JournalEntry(b"next segment")], durably=True) is None


def test_nothing_is_written_durably_before_the_first_append(bench: Bench):
    quick(bench)
    journal = bench.open()
    assert journal.write(journal.position, [JournalEntry(b"a")], durably=True) is None


def test_what_was_written_ahead_counts_as_large_too(bench: Bench, turns: Turns):
    bench.segment_bytes = 1 << 20
    journal = quick(bench)
    write(journal, JournalEntry(b"", (bytes(40 << 10),)))
    assert isinstance(journal.write(journal.position, [JournalEntry(b"small")], durably=True), GroupAppended)
    for _ in range(2):
        write(journal, JournalEntry(b"", (bytes(40 << 10),)))
    assert journal.write(journal.position, [JournalEntry(b"small")], durably=True) is None, "it is all synced along"
    assert isinstance(journal.write(journal.position, [JournalEntry(b"small")]), GroupAppended)
    append(turns, journal, JournalEntry(b"makes all of it durable"))
    for durably in (False, True):
        assert journal.write(journal.position, [JournalEntry(b"e", (bytes(64 << 10),))], durably=durably) is None
        assert (
            journal.write(journal.position, [JournalEntry(b"e", (bytes((64 << 10) - 1),))], durably=not durably)
            is not None
        )
        append(turns, journal, JournalEntry(b"makes it durable"))
