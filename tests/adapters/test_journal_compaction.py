"""The journal port's contract of `compact`, run on every adapter."""

from functools import partial

import pytest

from exacta.ports.journal import Cleaned, CompactionOrder, Failed, Joining, Journal, JournalEntry
from tests.adapters.bench import EVERYTHING, Bench
from tests.adapters.compacting import RULES, keyed, keys_of, last_of_each_key
from tests.adapters.test_journal_cleaning import clean, save
from tests.adapters.turns import Turns, append, batch, first_offset, read

COUNT = 60
KEYS = "abcd"


@pytest.fixture
def filled(bench: Bench, turns: Turns) -> Journal:
    """Streams 1 and 2 in turn, their keys one after another, over many segments that are all sealed."""
    journal = bench.open()
    for number in range(COUNT):
        append(turns, journal, keyed(1 + number % 2, number // 2, KEYS[number // 2 % 4]))
    sealed(turns, journal, (1, COUNT // 2), (2, COUNT // 2))
    return journal


def is_compactable(journal: Journal, stream: int, offset: int) -> bool:
    """Return whether a stream can be compacted up to there."""
    return journal.compactable(stream, EVERYTHING)[1] == offset


def sealed(turns: Turns, journal: Journal, *next_offsets: tuple[int, int]) -> None:
    """Seal what is written, and wait until these streams can be compacted up to there."""
    journal.seal()
    append(turns, journal, JournalEntry(b"begins another segment"))
    for stream, offset in next_offsets:
        turns.run_until(partial(is_compactable, journal, stream, offset))


def compact(turns: Turns, journal: Journal, *streams: int, floors: dict[int, int] | None = None) -> None:
    orders = [CompactionOrder(stream, EVERYTHING, RULES) for stream in streams]
    floors = {1: 0, 2: 0} if floors is None else floors
    assert turns.wait(lambda done: journal.compact(orders, floors, last_of_each_key, done)) is None


def found(turns: Turns, journal: Journal, stream: int, offset: int = 0) -> list[tuple[int, str]]:
    return list(keys_of(read(turns, journal, journal.find(stream, offset, EVERYTHING, EVERYTHING))))


LAST = [(26, "c"), (27, "d"), (28, "a"), (29, "b")]


def test_the_last_of_each_key_stays(bench: Bench, turns: Turns, filled: Journal):
    whole = found(turns, filled, 2)
    assert filled.compactable(1, EVERYTHING) == (0, COUNT // 2)
    compact(turns, filled, 1)
    journal = filled
    for _ in range(2):
        assert found(turns, journal, 1) == LAST
        assert found(turns, journal, 1, 27) == LAST[1:]
        assert found(turns, journal, 2) == whole
        assert journal.compactable(1, EVERYTHING) == (COUNT // 2, COUNT // 2)
        assert journal.count_records(1, 0, EVERYTHING) == 4
        assert journal.size_bytes(1, 0, EVERYTHING) == 4 * 200
        assert first_offset(journal.find_by_time(1, 0, 0, EVERYTHING)) == 26
        assert first_offset(journal.find_latest(1, 0, EVERYTHING)) == 29
        journal = bench.open()


def test_what_comes_later_follows(bench: Bench, turns: Turns, filled: Journal):
    compact(turns, filled, 1, 2)
    append(turns, filled, keyed(1, 30, "c"), keyed(1, 31, "e"))
    later = [(30, "c"), (31, "e")]
    assert found(turns, filled, 1) == LAST + later
    assert filled.compactable(1, EVERYTHING) == (30, 30), "what is written to is not compacted"
    journal = bench.open()
    assert found(turns, journal, 1) == LAST + later
    sealed(turns, journal, (1, 32))
    assert journal.compactable(1, EVERYTHING) == (30, 32)
    assert journal.compactable(1, 31) in ((30, 30), (30, 31)), "as far as whole segments go"
    compact(turns, journal, 1)
    assert found(turns, journal, 1) == LAST[1:] + later
    assert found(turns, journal, 2) == LAST
    assert found(turns, bench.open(), 1) == LAST[1:] + later


def test_the_last_batch_stays_though_it_is_emptied(turns: Turns, bench: Bench):
    journal = bench.open()
    append(turns, journal, keyed(1, 0, "a"))
    append(turns, journal, keyed(1, 1, ""))
    sealed(turns, journal, (1, 2))
    compact(turns, journal, 1, floors={1: 0})
    assert found(turns, journal, 1)[0] == (0, "a")
    assert journal.find(1, 1, EVERYTHING, EVERYTHING)[0].last_offset == 1
    append(turns, journal, keyed(1, 2, "b"))
    with pytest.raises(ValueError, match="goes back"):
        append(turns, journal, keyed(1, 1, "b"))


def test_its_space_is_freed(bench: Bench, turns: Turns, filled: Journal):
    for name in (b"older", b"newer"):
        save(turns, filled, name)
        append(turns, filled, JournalEntry(b"after"))
    compact(turns, filled, 1)
    assert clean(turns, filled, {1: 0, 2: EVERYTHING}) > COUNT * 200 * 3 // 4
    assert found(turns, filled, 1) == LAST
    assert found(turns, bench.open(), 1) == LAST


def test_what_is_deleted_goes_from_what_was_compacted(bench: Bench, turns: Turns, filled: Journal):
    compact(turns, filled, 1, 2)
    clean(turns, filled, {1: 27})
    journal = bench.open()
    assert found(turns, journal, 1, 27) == LAST[1:]
    append(turns, journal, keyed(1, 30, "e"))
    sealed(turns, journal, (1, 31))
    compact(turns, journal, 1, floors={1: 28})
    assert found(turns, journal, 1, 28) == [*LAST[2:], (30, "e")]
    clean(turns, journal, {})


def test_what_is_sealed_is_told_before_it_can_be_compacted(turns: Turns, journal: Journal):
    """Else another segment would be begun for it at every look."""
    append(turns, journal, keyed(1, 0, "a"))
    assert (journal.sealed_to(1), journal.sealed_to(2)) == (0, 0)
    journal.seal()
    append(turns, journal, keyed(2, 0, "a"))
    assert (journal.sealed_to(1), journal.sealed_to(2)) == (1, 0)
    append(turns, journal, keyed(1, 1, "a"))
    assert journal.sealed_to(1) == 1


def test_a_stream_without_anything_that_is_compactable_stays(turns: Turns, journal: Journal):
    append(turns, journal, batch(1, 0, b"0:a="))
    assert journal.compactable(1, EVERYTHING) == (0, 0)
    assert journal.compactable(2, EVERYTHING) == (0, 0)
    compact(turns, journal, 1)
    assert found(turns, journal, 1) == [(0, "a")]


def test_where_nothing_is_written_there_is_nothing_to_seal(bench: Bench, turns: Turns):
    journal = bench.open()
    journal.seal()
    append(turns, journal, keyed(1, 0, "a"))
    append(turns, journal, keyed(1, 1, "a"))
    assert journal.compactable(1, EVERYTHING) == (0, 0)
    append(turns, journal, keyed(1, 2, "a"))
    assert journal.compactable(1, EVERYTHING) == (0, 0)


def test_a_failure_loses_nothing(bench: Bench, turns: Turns, filled: Journal):
    whole = found(turns, filled, 1)
    if not bench.fail_rewrites():
        pytest.skip("a fault of real files")
    orders = [CompactionOrder(1, EVERYTHING, RULES)]
    assert isinstance(turns.wait(lambda done: filled.compact(orders, {1: 0, 2: 0}, last_of_each_key, done)), Failed)
    assert found(turns, filled, 1) == whole
    bench.fail_rewrites(fails=False)
    compact(turns, filled, 1)
    assert found(turns, filled, 1) == LAST


@pytest.fixture
def with_others(bench: Bench, turns: Turns) -> Journal:
    """Stream 1 has offsets 0, 1, 5 and 8 of its own. Streams 2, 3 and 4 belong at 2 to 4, 6 to 7 and 9."""
    journal = bench.open()
    lies: list[tuple[int, int, str]] = [(3, 0, "d"), (1, 0, "a"), (2, 0, "b"), (2, 1, "a"), (1, 1, "c"), (2, 2, "e")]
    lies += [(1, 5, "b"), (4, 0, "d"), (3, 1, "a"), (1, 8, "c")]
    for stream, number, key in lies:
        append(turns, journal, keyed(stream, number, key))
    sealed(turns, journal, (1, 9), (2, 3), (3, 2), (4, 1))
    return journal


JOINING = [Joining(2, 2, -1, 600), Joining(3, 6, 77, 400), Joining(4, 9, -1, 200)]
JOINED = [(4, "e"), (5, "b"), (7, "a"), (8, "c"), (9, "d")]
ALL_FLOORS = dict.fromkeys(range(1, 5), 0)


def join(turns: Turns, journal: Journal, begin: int = 0, end: int = 10, floor: int = 0) -> None:
    places = [each for each in JOINING if begin <= each.first_offset < end]
    order = CompactionOrder(1, end, RULES, places)
    floors = ALL_FLOORS | {1: floor}
    assert turns.wait(lambda done: journal.compact([order], floors, last_of_each_key, done)) is None


def test_other_streams_join_the_one_that_is_compacted(bench: Bench, turns: Turns, with_others: Journal):
    alone = {stream: found(turns, with_others, stream) for stream in (2, 3, 4)}
    join(turns, with_others)
    journal = with_others
    for _ in range(2):
        assert found(turns, journal, 1) == JOINED
        assert found(turns, journal, 1, 6) == JOINED[2:]
        assert journal.compacted_to(1) == 10
        assert {stream: found(turns, journal, stream) for stream in (2, 3, 4)} == alone, "these are still there"
        assert [journal.compacted_to(stream) for stream in (2, 3, 4)] == [0, 0, 0]
        assert first_offset(journal.find_latest(1, 0, EVERYTHING)) == 9
        journal = bench.open()
    append(turns, journal, keyed(1, 10, "b"))
    for name in (b"older", b"newer"):
        save(turns, journal, name)
        append(turns, journal, JournalEntry(b"after"))
    clean(turns, journal, {1: 0})
    assert found(turns, journal, 1) == [*JOINED, (10, "b")]
    assert [found(turns, journal, stream) for stream in (2, 3, 4)] == [[], [], []]
    sealed(turns, journal, (1, 11))
    compact(turns, journal, 1, floors={1: 0})
    assert found(turns, bench.open(), 1) == [JOINED[0], *JOINED[2:], (10, "b")]


def test_of_what_joins_nothing_is_kept_that_is_below_the_floor(turns: Turns, with_others: Journal):
    join(turns, with_others, floor=7)
    assert found(turns, with_others, 1) == JOINED[2:]


def test_a_stream_that_has_nothing_of_its_own_is_made_of_what_joins_it(turns: Turns, bench: Bench):
    journal = bench.open()
    append(turns, journal, keyed(2, 0, "a"), keyed(2, 1, "b"), keyed(3, 0, "a"), keyed(3, 1, ""))
    sealed(turns, journal, (2, 2), (3, 2))
    order = CompactionOrder(1, 4, RULES, [Joining(2, 0, -1, 400), Joining(3, 2, -1, 400)])
    floors = {1: 0, 2: 0, 3: 0}
    assert turns.wait(lambda done: journal.compact([order], floors, last_of_each_key, done)) is None
    assert found(turns, journal, 1)[:2] == [(1, "b"), (2, "a")]
    assert journal.compacted_to(1) == 4, "the last batch stays, though it is emptied"
    append(turns, journal, keyed(1, 4, "a"))
    assert found(turns, journal, 1, 4) == [(4, "a")]


def test_streams_join_what_others_have_joined_before(turns: Turns, with_others: Journal):
    join(turns, with_others, end=6)
    assert with_others.compactable(1, EVERYTHING) == (6, 9)
    assert found(turns, with_others, 1) == [(1, "c"), (3, "a"), (4, "e"), (5, "b"), (8, "c")]
    join(turns, with_others, begin=6)
    assert found(turns, with_others, 1) == JOINED


def test_cleaning_goes_on_after_a_compaction(bench: Bench, turns: Turns, filled: Journal):
    compact(turns, filled, 1)
    result = turns.wait(lambda done: filled.clean({1: 0, 2: 0}, done))
    assert isinstance(result, Cleaned)
