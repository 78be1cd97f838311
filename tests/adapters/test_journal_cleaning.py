"""The journal port's contract of `clean`, run on every adapter."""

import pytest

from exacta.ports.journal import Cleaned, Failed, Journal, JournalEntry
from tests.adapters.bench import EVERYTHING, Bench, events, replay
from tests.adapters.turns import Turns, append, batch, first_offset, read

SIZE = 300
COUNT = 40


@pytest.fixture
def filled(bench: Bench, turns: Turns) -> Journal:
    """Two streams, 1 and 2, of twenty batches each over many segments, with two snapshots at the end."""
    journal = bench.open()
    for number in range(COUNT):
        append(turns, journal, batch(1 + number % 2, number // 2, b"%02d" % number * (SIZE // 2), timestamp_ms=number))
    for name in (b"older", b"newer"):
        save(turns, journal, name)
        append(turns, journal, JournalEntry(b"after " + name))
    return journal


def save(turns: Turns, journal: Journal, blob: bytes) -> None:
    assert turns.wait(lambda done: journal.save_snapshot(blob, journal.position, done)) is None


def clean(turns: Turns, journal: Journal, floors: dict[int, int]) -> int:
    """Clean until nothing is left to clean; return how many bytes that freed."""
    total = 0
    while True:
        result = turns.wait(lambda done: journal.clean(floors, done))
        assert isinstance(result, Cleaned)
        if not result.freed_bytes:
            return total
        total += result.freed_bytes


def content(turns: Turns, journal: Journal, stream: int, offset: int = 0) -> bytes:
    return read(turns, journal, journal.find(stream, offset, EVERYTHING, EVERYTHING))


def test_what_is_above_the_floors_stays_as_it_is(bench: Bench, turns: Turns, filled: Journal):
    left = {stream: content(turns, filled, stream, floor) for stream, floor in ((1, 7), (2, 20 - 1))}
    assert clean(turns, filled, {1: 7, 2: 19}) > SIZE * 10
    journal = filled
    for _ in range(2):
        assert content(turns, journal, 1, 7) == left[1]
        assert content(turns, journal, 2, 19) == left[2]
        assert journal.find(1, 7, EVERYTHING, 0)[0].first_offsets[0] == 7
        assert first_offset(journal.find_by_time(1, 20, 7, EVERYTHING)) == 10
        assert journal.count_records(1, 7, EVERYTHING) == 13
        assert journal.size_bytes(1, 8, EVERYTHING) == 12 * SIZE
        journal = bench.open()
    append(turns, journal, batch(1, 20, b"new"))
    assert content(turns, bench.open(), 1, 7) == left[1] + b"new"


def test_cleaning_again_frees_nothing(turns: Turns, filled: Journal):
    assert clean(turns, filled, {1: 7, 2: 19}) > 0
    assert clean(turns, filled, {1: 7, 2: 19}) == 0


def test_floors_that_rise_bit_by_bit_free_bit_by_bit(bench: Bench, turns: Turns, filled: Journal):
    for floor in range(0, 21, 3):
        clean(turns, filled, {1: floor, 2: 20})
        wanted = b"".join(b"%02d" % (2 * number) * (SIZE // 2) for number in range(floor, 20))
        assert content(turns, filled, 1, floor) == wanted
        filled = bench.open()
        assert content(turns, filled, 1, floor) == wanted


def test_a_stream_without_a_floor_is_gone(bench: Bench, turns: Turns, filled: Journal):
    left = content(turns, filled, 2)
    assert clean(turns, filled, {2: 0}) > 10 * SIZE
    journal = bench.open()
    assert content(turns, journal, 2) == left


def test_everything_may_be_gone(bench: Bench, turns: Turns, filled: Journal):
    assert clean(turns, filled, {}) > 20 * SIZE
    journal = bench.open()
    blob, replayed = replay(journal)
    assert (blob, list(replayed)) == (b"newer", [b"after newer"])
    append(turns, journal, batch(3, 0, b"new"))
    assert content(turns, bench.open(), 3) == b"new"


def test_events_that_may_be_replayed_stay(bench: Bench, turns: Turns):
    """With one snapshot it could turn out damaged, and what is before it be needed."""
    journal = bench.open()
    for number in range(COUNT):
        append(turns, journal, batch(1, number, bytes(SIZE)))
    assert clean(turns, journal, {1: COUNT}) == 0
    save(turns, journal, b"first")
    assert clean(turns, journal, {1: COUNT}) == 0
    journal = bench.open()
    assert events(journal) == []
    append(turns, journal, JournalEntry(b"later"))
    save(turns, journal, b"second")
    assert clean(turns, journal, {1: COUNT}) > 10 * SIZE


def test_appends_go_on_while_it_is_cleaned(turns: Turns, filled: Journal):
    results: list[object] = []
    filled.clean({1: 20, 2: 3}, results.append)
    for number in range(20, 30):
        append(turns, filled, batch(1, number, b"%02d" % number))
        assert content(turns, filled, 2, 3)[:2] == b"07"
    turns.run_until(lambda: bool(results))
    assert isinstance(results[0], Cleaned)
    assert content(turns, filled, 1, 20) == b"".join(b"%02d" % number for number in range(20, 30))


def test_a_failure_loses_nothing(bench: Bench, turns: Turns, filled: Journal):
    if bench.files is not None:
        pytest.skip("the disk's faults are in test_local_cleaning.py")
    bench.fail_rewrites()
    left = content(turns, filled, 2)
    assert isinstance(turns.wait(lambda done: filled.clean({2: 0}, done)), Failed)
    assert content(turns, filled, 2) == left


def test_offset_after_counts_whole_batches(turns: Turns, filled: Journal):
    for offset in (0, 3, 19, 20):
        for batches in (0, 1, 4, 30):
            reached = min(20, offset + batches)
            assert filled.offset_after(1, offset, EVERYTHING, batches * SIZE) == reached
            assert filled.offset_after(1, offset, EVERYTHING, batches * SIZE + SIZE - 1) == reached
    assert filled.offset_after(1, 3, 5, EVERYTHING) == 5
    assert filled.offset_after(7, 3, 5, EVERYTHING) == 3
