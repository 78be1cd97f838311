"""The journal port's contract, run on every adapter: whatever passes here may stand under the engine.

Files of their own have what is written ahead of its sync (`test_journal_writing_ahead.py`), snapshots, and space.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from exacta.ports.journal import (
    AppendResult,
    Buffer,
    Conflict,
    Failed,
    GroupAppended,
    IndexEntry,
    Journal,
    JournalEntry,
    TimeEntry,
)
from tests.adapters.bench import EVERYTHING, SEGMENT_BYTES, Bench, events, replay
from tests.adapters.turns import Turns, append, batch, read

# --- appending and replaying ------------------------------------------------------------------------------------------


def test_new_journal_is_empty(journal: Journal):
    blob, replayed = replay(journal)
    assert blob is None
    assert list(replayed) == []
    assert journal.position == 0
    assert not journal.wants_snapshot
    assert journal.find(1, 0, 100, EVERYTHING) == []
    assert journal.find_by_time(1, 0, 0, 100) is None


def test_events_come_back_in_order_after_reopening(bench: Bench, turns: Turns):
    journal = bench.open()
    ends = [
        append(turns, journal, JournalEntry(b"a"), JournalEntry(b""), JournalEntry(b"b", (b"payload",))),
        append(turns, journal, JournalEntry(b"c")),
    ]
    assert 0 < ends[0] < ends[1]
    journal = bench.open()
    assert journal.position == ends[1]
    assert events(journal) == [b"a", b"", b"b", b"c"]
    append(turns, journal, JournalEntry(b"d"))
    assert events(bench.open()) == [b"a", b"", b"b", b"c", b"d"]


def test_events_survive_many_segments(bench: Bench, turns: Turns):
    journal = bench.open()
    for number in range(40):
        append(turns, journal, batch(number % 3, number, b"%02d" % number * 300))
    for _ in range(2):
        journal = bench.open()
        assert events(journal) == [b"event of %d at %d" % (number % 3, number) for number in range(40)]
        extents = journal.find(1, 4, 30, EVERYTHING)
        assert read(turns, journal, extents) == b"".join(b"%02d" % number * 300 for number in range(4, 30, 3))


def test_done_is_never_called_from_inside_append(turns: Turns, journal: Journal):
    results: list[AppendResult] = []
    end = journal.append(0, [JournalEntry(b"a")], results.append)
    assert results == []
    assert journal.position == 0
    turns.run_until(lambda: bool(results))
    assert results == [GroupAppended(end)]


def test_next_append_may_start_inside_done(turns: Turns, journal: Journal):
    results: list[AppendResult] = []

    def done(result: AppendResult) -> None:
        results.append(result)
        if len(results) < 5:
            journal.append(journal.position, [JournalEntry(b"e%d" % len(results))], done)

    journal.append(0, [JournalEntry(b"e0")], done)
    turns.run_until(lambda: len(results) == 5)
    assert events(journal) == [b"e0", b"e1", b"e2", b"e3", b"e4"]


def test_append_at_another_position_conflicts_and_writes_nothing(bench: Bench, turns: Turns):
    journal = bench.open()
    end = append(turns, journal, JournalEntry(b"a"))
    for position in (0, end - 1, end + 1):
        assert turns.wait(lambda done, at=position: journal.append(at, [JournalEntry(b"b")], done)) == Conflict(end)
    assert journal.position == end
    append(turns, journal, JournalEntry(b"c"))
    assert events(bench.open()) == [b"a", b"c"]


def test_second_append_in_flight_is_a_bug(turns: Turns, journal: Journal):
    results: list[AppendResult] = []
    journal.append(0, [JournalEntry(b"a")], results.append)
    with pytest.raises(AssertionError):
        journal.append(0, [JournalEntry(b"b")], results.append)
    turns.run_until(lambda: bool(results))
    assert events(journal) == [b"a"]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [JournalEntry(b"a", (b"12345",), (IndexEntry(1, 0, 0, 0, 0, 6),))],
        [JournalEntry(b"a", (b"12345",), (IndexEntry(1, 0, 0, 0, 4, 2),))],
        [JournalEntry(b"a", (b"12345",), (IndexEntry(1, 0, 0, 0, -1, 2),))],
        [JournalEntry(b"a", (b"12345",), (IndexEntry(1, 3, 2, 0, 0, 5),))],
        [batch(1, 7, b"x"), batch(1, 7, b"y")],
        [batch(1, 4, b"x")],
    ],
    ids=["nothing", "too long", "past the end", "before the start", "last before first", "repeats", "goes back"],
)
def test_unsound_entries_are_refused_and_write_nothing(bench: Bench, turns: Turns, entries: list[JournalEntry]):
    journal = bench.open()
    end = append(turns, journal, batch(1, 4, b"stored"))
    with pytest.raises(ValueError, match=r"needs entries|outside its payload|goes back"):
        journal.append(end, entries, lambda result: None)
    append(turns, journal, batch(1, 5, b"next"))
    assert events(bench.open()) == [b"event of 1 at 4", b"event of 1 at 5"]


def test_payload_of_any_buffers_is_written_verbatim(bench: Bench, turns: Turns):
    journal = bench.open()
    large = bytes(range(256)) * 1024
    parts: list[Buffer] = [b"a", memoryview(b"..view..")[2:6], bytearray(b"b"), large, b"", b"x" * 4095, large, b"end"]
    payload = b"".join(parts)
    append(turns, journal, JournalEntry(b"e", tuple(parts), (IndexEntry(5, 10, 19, 0, 0, len(payload)),)))
    for _ in range(2):
        assert read(turns, journal, journal.find(5, 10, 20, EVERYTHING)) == payload
        journal = bench.open()


def test_more_buffers_than_one_system_call_takes(bench: Bench, turns: Turns):
    journal = bench.open()
    parts = [bytes([number % 256]) * 5000 for number in range(1100)]
    append(turns, journal, JournalEntry(b"e", tuple(parts), (IndexEntry(1, 0, 0, 0, 0, 5000 * len(parts)),)))
    for _ in range(2):
        assert read(turns, journal, journal.find(1, 0, 1, EVERYTHING)) == b"".join(parts)
        journal = bench.open()


def test_closing_finishes_the_append_in_flight(bench: Bench, turns: Turns):
    journal = bench.open()
    results: list[AppendResult] = []
    end = journal.append(0, [JournalEntry(b"a")], results.append)
    bench.close()
    assert results == [GroupAppended(end)]
    assert events(bench.open()) == [b"a"]


# --- finding ----------------------------------------------------------------------------------------------------------


def offsets(journal: Journal, *range_and_limit: int) -> list[tuple[int, int]]:
    """Return first and last offset of all that is found, and check that the extents follow each other."""
    extents = journal.find(*range_and_limit)
    assert all(a.last_offset < b.first_offsets[0] for a, b in pairwise(extents))
    return [(extents[0].first_offsets[0], extents[-1].last_offset)] if extents else []


@pytest.fixture
def filled(turns: Turns, journal: Journal) -> Journal:
    """Stream 7 has batches of 10 offsets and 100 bytes at 0, 10, … 190, in several segments; stream 8 lies between."""
    for number in range(20):
        append(
            turns,
            journal,
            batch(7, 10 * number, b"%c" % (65 + number) * 100, count=10, timestamp_ms=1000 + number),
            batch(8, number, b"other" * (number + 1)),
        )
    return journal


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((0, 200, EVERYTHING), [(0, 199)]),
        ((55, 200, EVERYTHING), [(50, 199)]),  # the batch that contains the offset, whole
        ((59, 61, EVERYTHING), [(50, 59)]),
        ((60, 200, 100), [(60, 69)]),
        ((60, 200, 399), [(60, 89)]),
        ((60, 200, 400), [(60, 99)]),
        ((60, 200, 1), [(60, 69)]),  # at least one batch
        ((60, 200, 0), [(60, 69)]),
        ((60, 90, EVERYTHING), [(60, 89)]),
        ((60, 89, EVERYTHING), [(60, 79)]),  # only whole batches below the end
        ((60, 69, EVERYTHING), []),
        ((200, 300, EVERYTHING), []),
        ((0, 0, EVERYTHING), []),
    ],
)
def test_find(filled: Journal, arguments: tuple[int, int, int], found: list[tuple[int, int]]):
    assert offsets(filled, 7, *arguments) == found


def test_found_batches_are_read_in_order(filled: Journal, turns: Turns):
    assert read(turns, filled, filled.find(7, 35, 171, EVERYTHING)) == b"".join(
        b"%c" % (65 + number) * 100 for number in range(3, 17)
    )


def test_several_streams_are_read_at_once(filled: Journal, turns: Turns):
    extents = [*filled.find(8, 2, 4, EVERYTHING), *filled.find(7, 0, 20, EVERYTHING)]
    assert read(turns, filled, extents) == b"other" * 7 + b"A" * 100 + b"B" * 100


def test_unknown_stream_has_nothing(filled: Journal):
    assert filled.find(9, 0, 100, EVERYTHING) == []


def test_offset_in_a_gap_finds_the_next_batch(turns: Turns, journal: Journal):
    append(turns, journal, batch(1, 0, b"a"), batch(1, 5, b"b"), batch(1, 9, b"c"))
    assert offsets(journal, 1, 1, 10, 1) == [(5, 5)]


def test_group_in_flight_is_not_found(turns: Turns, journal: Journal):
    append(turns, journal, batch(1, 0, b"a", timestamp_ms=5))
    results: list[AppendResult] = []
    journal.append(journal.position, [batch(1, 1, b"b", timestamp_ms=6)], results.append)
    assert offsets(journal, 1, 0, 10, EVERYTHING) == [(0, 0)]
    assert journal.find_by_time(1, 6, 0, 10) is None
    turns.run_until(lambda: bool(results))
    assert offsets(journal, 1, 0, 10, EVERYTHING) == [(0, 1)]
    assert journal.find_by_time(1, 6, 0, 10) == TimeEntry(1, 1, 6)


def test_extent_stays_readable_while_the_journal_grows(turns: Turns, journal: Journal):
    append(turns, journal, batch(1, 0, b"a" * 500), batch(1, 1, b"b" * 500))
    extents = journal.find(1, 0, 2, EVERYTHING)
    for number in range(20):
        append(turns, journal, batch(1, 2 + number, b"c" * 500))
    assert read(turns, journal, extents) == b"a" * 500 + b"b" * 500


def test_find_by_time_takes_the_first_that_is_late_enough(bench: Bench, turns: Turns):
    journal = bench.open()
    timestamps = [50, 40, 70, 60, 70, 10, 90, 80]
    for number, timestamp_ms in enumerate(timestamps):
        append(turns, journal, batch(1, number, b"x" * 600, timestamp_ms=timestamp_ms), batch(2, number, b"y"))
    for _ in range(2):
        for wanted, found in [(0, 0), (50, 0), (51, 2), (70, 2), (71, 6), (90, 6)]:
            assert journal.find_by_time(1, wanted, 0, 8) == TimeEntry(found, found, timestamps[found])
        assert journal.find_by_time(1, 91, 0, 8) is None
        assert journal.find_by_time(1, 71, 0, 6) is None  # it lies at the end, which is exclusive
        assert journal.find_by_time(1, 71, 0, 7) == TimeEntry(6, 6, 90)
        assert journal.find_by_time(3, 0, 0, 8) is None
        journal = bench.open()


def test_what_lies_before_an_offset_does_not_count_for_times(bench: Bench, turns: Turns):
    journal = bench.open()
    timestamps = [50, 40, 70, 60, 70, 10, 90, 80]
    for number, timestamp_ms in enumerate(timestamps):
        append(turns, journal, batch(1, number, b"x" * 600, timestamp_ms=timestamp_ms))
    for _ in range(2):
        for offset in range(9):
            for end_offset in range(9):
                there = range(offset, end_offset)
                for wanted in (0, 10, 41, 51, 61, 70, 71, 81, 91):
                    found = next((number for number in there if timestamps[number] >= wanted), None)
                    expected = None if found is None else TimeEntry(found, found, timestamps[found])
                    assert journal.find_by_time(1, wanted, offset, end_offset) == expected
                latest = max(there, key=lambda number: timestamps[number], default=None)
                expected = None if latest is None else TimeEntry(latest, latest, timestamps[latest])
                assert journal.find_latest(1, offset, end_offset) == expected
        journal = bench.open()


def test_many_small_batches_make_one_buffer_for_each_extent(turns: Turns, journal: Journal):
    entries = []
    for number in range(3000):
        entries += [batch(1, number, b"%04d" % number), batch(2, number, b"-" * (number % 90))]
    append(turns, journal, *entries)
    extents = journal.find(1, 100, 2900, EVERYTHING)
    assert read(turns, journal, extents) == b"".join(b"%04d" % number for number in range(100, 2900))


def test_records_are_counted_over_segments_markers_not(bench: Bench, turns: Turns):
    journal = bench.open()
    for first_offset in (0, 5, 10):
        append(turns, journal, batch(1, first_offset, b"x" * SEGMENT_BYTES, count=4))
        append(
            turns, journal, JournalEntry(b"e", (b"m",), (IndexEntry(1, first_offset + 4, first_offset + 4, 0, 0, 1),))
        )
    for again in (False, True):
        journal = bench.open() if again else journal
        ends = (0, 4, 5, 15)
        assert [journal.count_records(1, 0, end) for end in ends] == [0, 4, 4, 12]
        assert [journal.count_records(1, offset, 15) for offset in (1, 4, 6, 9, 13, 14, 15)] == [11, 8, 7, 4, 1, 0, 0]
        assert journal.count_records(1, 0, 3) == 0, "a batch counts whole or not at all"
        assert journal.count_records(2, 0, 15) == 0


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "simulated disk"])
def failing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Bench, Callable[[], None]]]:
    """Return a bench, and a function that makes its next write fail."""
    bench = Bench(request.param, tmp_path)

    def fail() -> None:
        if request.param == "memory":
            bench.storage.append_fault = "no more"
        else:
            bench.fail_sync()

    yield bench, fail
    bench.close()


def test_first_failure_is_final(failing: tuple[Bench, Callable[[], None]]):
    bench, fail = failing
    turns, journal = bench.turns, bench.open()
    end = append(turns, journal, batch(1, 0, b"a"))
    fail()
    results: list[object] = []
    failed_end = journal.append(end, [batch(1, 1, b"b")], results.append)
    turns.run_until(lambda: len(results) == 1)
    assert isinstance(results[0], Failed)
    assert journal.position == end
    assert offsets(journal, 1, 0, 10, EVERYTHING) == [(0, 0)]
    for position in (end, failed_end):
        assert isinstance(turns.wait(lambda done, at=position: journal.append(at, [JournalEntry(b"c")], done)), Failed)
    assert read(turns, journal, journal.find(1, 0, 10, EVERYTHING)) == b"a"
