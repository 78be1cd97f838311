"""Each anomaly, planted into a history without any, is found, and called by its name."""

from collections.abc import Callable

import pytest

from simulation.analysis import anomalies
from simulation.history import History, Outcome, Partition, Poll, keyed

A, B = ("in", 0), ("in", 1)


def poll(answer: str, place: tuple[str, int], end: int, records: list[tuple[int, bytes]], stable: int = -1) -> Poll:
    return Poll("r/1", answer, True, place, 0, end, 0, end, end if stable < 0 else stable, records)


def clean() -> History:
    """Two transactions over two partitions, one committed and one aborted, and a pipeline's output."""
    history = History()
    first = history.begin("w/1.1", Outcome.COMMITTED)
    first.values = {b"w/1.1:0000": A, b"w/1.1:0001": B}
    first.acknowledged = {b"w/1.1:0000": 0, b"w/1.1:0001": 0}
    second = history.begin("w/1.2", Outcome.NO_COMMIT)
    second.values = {b"w/1.2:0000": A}
    second.acknowledged = {b"w/1.2:0000": 2}
    unknown = history.begin("u/1.1", Outcome.UNKNOWN)
    unknown.values = {b"u/1.1:0000": A, b"u/1.1:0001": B}
    unknown.acknowledged = {b"u/1.1:0000": 4, b"u/1.1:0001": 2}
    made = history.begin("p/1.1", Outcome.COMMITTED)
    made.values = {b"p/1.1:0000|in/1/0": ("out", 0)}
    made.acknowledged = {b"p/1.1:0000|in/1/0": 0}
    history.final[A] = Partition(
        records=[(0, b"w/1.1:0000", 7), (2, b"w/1.2:0000", 7), (4, b"u/1.1:0000", 8)],
        markers=[(1, 7), (3, 7), (5, 8)],
        committed={0: b"w/1.1:0000", 4: b"u/1.1:0000"},
    )
    history.final[B] = Partition(
        records=[(0, b"w/1.1:0001", 7), (2, b"u/1.1:0001", 8)],
        markers=[(1, 7), (3, 8)],
        committed={0: b"w/1.1:0001", 2: b"u/1.1:0001"},
    )
    history.final["out", 0] = Partition(
        records=[(0, b"p/1.1:0000|in/1/0", 9)], markers=[(1, 9)], committed={0: b"p/1.1:0000|in/1/0"}
    )
    history.pipeline_inputs = {B}
    history.committed_offsets = {B: 1}
    history.polls = [poll("1", A, 2, [(0, b"w/1.1:0000")]), poll("1", B, 2, [(0, b"w/1.1:0001")])]
    return history


def lose(history: History) -> None:
    del history.final[A].committed[0]


def show_aborted(history: History) -> None:
    history.final[A].committed[2] = b"w/1.2:0000"


def show_aborted_live(history: History) -> None:
    history.polls.append(poll("2", A, 4, [(0, b"w/1.1:0000"), (2, b"w/1.2:0000")]))


def tear(history: History) -> None:
    del history.final[B].committed[2]


def tear_live(history: History) -> None:
    history.polls += [
        poll("2", A, 6, [(0, b"w/1.1:0000"), (4, b"u/1.1:0000")]),
        poll("2", B, 3, [(0, b"w/1.1:0001"), (2, b"u/1.1:0001")]),
    ]


def double(history: History) -> None:
    history.final[A].records.append((6, b"w/1.1:0000", 7))


def swap(history: History) -> None:
    history.writings["w/1.0"] = history.writings.pop("w/1.1")


def invent(history: History) -> None:
    history.final[A].records.append((6, b"x/1.1:0000", 7))


def read_other(history: History) -> None:
    history.polls.append(poll("2", A, 2, []))


def move_back(history: History) -> None:
    history.polls.append(poll("2", A, 2, [(0, b"w/1.1:0000")], stable=1))


def consume_without_output(history: History) -> None:
    history.committed_offsets[B] = 3


def output_without_consuming(history: History) -> None:
    history.committed_offsets[B] = 0


def consume_twice(history: History) -> None:
    history.final["out", 0].committed[2] = b"p/1.1:0001|in/1/0"


def refuse(history: History) -> None:
    history.refusals.append("refused: something")


def push_what_is_not_there(history: History) -> None:
    history.pushed_uncommitted.append(("r/1", A, 6, b"w/1.2:0000"))


def push_what_nobody_wrote(history: History) -> None:
    history.pushed_uncommitted.append(("r/1", ("again", 0), 0, b"x/1.1:0000"))


def test_a_clean_history_has_none() -> None:
    history = clean()
    history.pushed_uncommitted.append(("r/1", A, 2, b"w/1.2:0000"))  # it is aborted
    assert anomalies(history) == []


@pytest.mark.parametrize(
    ("plant", "called"),
    [
        (lose, "lost write"),
        (show_aborted, "aborted read"),
        (show_aborted_live, "aborted read"),
        (push_what_is_not_there, "lost read"),
        (push_what_nobody_wrote, "inconsistent"),
        (tear, "torn transaction"),
        (tear_live, "torn transaction"),
        (double, "duplicate"),
        (swap, "reordering"),
        (invent, "inconsistent"),
        (read_other, "inconsistent"),
        (move_back, "moves back"),
        (consume_without_output, "offset and data apart"),
        (output_without_consuming, "offset and data apart"),
        (consume_twice, "offset and data apart"),
        (refuse, "refused"),
    ],
)
def test_a_planted_anomaly_is_found(plant: Callable[[History], None], called: str) -> None:
    history = clean()
    plant(history)
    assert any(each.startswith(called) for each in anomalies(history)), anomalies(history)


K = ("keyed", 0)
OLD, GONE, ABORTED, NEW, OTHER = (
    keyed(b"w/1.%d:0000" % number, key, is_tombstone=number == 2)
    for number, key in ((1, b"a"), (2, b"b"), (3, b"a"), (4, b"a"), (5, b"b"))
)


def keyed_poll(stable: int, records: list[tuple[int, bytes]], answer: str = "1") -> Poll:
    return Poll("r/1", answer, True, K, 0, stable, 0, stable, stable, records)


def compacted() -> History:
    """A value of b, one of a, a tombstone of b, an aborted value of a with its marker, the last value of a."""
    history = History()
    for value, offset in ((OTHER, 0), (OLD, 1), (GONE, 2), (NEW, 5)):
        writing = history.begin(value.split(b":")[0].decode(), Outcome.PLAIN)
        writing.values, writing.acknowledged = {value: K}, {value: offset}
    history.begin("w/1.3", Outcome.NO_COMMIT).values = {ABORTED: K}
    history.written[K] = Partition(
        records=[(0, OTHER, 7), (1, OLD, 7), (2, GONE, 7), (3, ABORTED, 8), (5, NEW, 7)],
        markers=[(4, 8)],
        committed={0: OTHER, 1: OLD, 2: GONE, 5: NEW},
    )
    history.writings["w/1.5"], history.writings["w/1.1"] = (history.writings.pop(name) for name in ("w/1.5", "w/1.1"))
    history.final[K] = Partition(records=[(2, GONE, 7), (5, NEW, 7)], committed={2: GONE, 5: NEW})
    history.polls = [keyed_poll(3, [(0, OTHER), (1, OLD), (2, GONE)]), keyed_poll(6, [(2, GONE), (5, NEW)], "2")]
    return history


def without_the_last(history: History) -> None:
    history.final[K] = Partition(records=[(2, GONE, 7)], committed={2: GONE})


def without_the_tombstone(history: History) -> None:
    history.final[K] = Partition(records=[(0, OTHER, 7), (5, NEW, 7)], committed={0: OTHER, 5: NEW})


def tombstone_too_early(history: History) -> None:
    history.tombstones_stay.add(K)
    history.final[K] = Partition(records=[(5, NEW, 7)], committed={5: NEW})


def with_the_aborted(history: History) -> None:
    history.final[K].committed[3] = ABORTED


def elsewhere(history: History) -> None:
    history.final[K] = Partition(records=[(2, GONE, 7), (6, NEW, 7)], committed={2: GONE, 6: NEW})


def superseded_too_early(history: History) -> None:
    history.polls.append(keyed_poll(3, [(0, OTHER), (2, GONE)], "3"))


def back_again(history: History) -> None:
    history.polls.append(keyed_poll(6, [(0, OTHER), (2, GONE), (5, NEW)], "3"))


def back_in_the_end(history: History) -> None:
    history.final[K].records.insert(0, (1, OLD, 7))
    history.final[K].committed[1] = OLD


def test_what_compaction_may_take_away_is_no_anomaly() -> None:
    history = compacted()
    assert anomalies(history) == []
    history.final[K] = Partition(records=[(5, NEW, 7)], committed={5: NEW})
    assert anomalies(history) == [], "a tombstone may go when all of its key are gone"


@pytest.mark.parametrize(
    ("plant", "called"),
    [
        (without_the_last, "lost write"),
        (without_the_tombstone, "tombstone gone"),
        (tombstone_too_early, "tombstone gone"),
        (with_the_aborted, "aborted read"),
        (elsewhere, "inconsistent"),
        (superseded_too_early, "lost write"),
        (back_again, "comes back"),
        (back_in_the_end, "comes back"),
    ],
)
def test_what_it_may_not_is_found(plant: Callable[[History], None], called: str) -> None:
    history = compacted()
    plant(history)
    assert any(each.startswith(called) for each in anomalies(history)), anomalies(history)
