"""Runs against sets of numbers: the same after every step, and always in the one form that they may have."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from exacta.core.ids import Offset
from exacta.core.values.runs import Run, add, count, missing, overlaps, runs_between, subtract

OFFSETS = st.integers(0, 20)
RUN = st.tuples(OFFSETS, OFFSETS).map(lambda pair: (Offset(min(pair)), Offset(max(pair))))


def numbers(runs: list[Run]) -> set[int]:
    return {number for first, last in runs for number in range(first, last + 1)}


@given(st.lists(st.tuples(st.booleans(), RUN), max_size=12), RUN)
def test_runs_are_sets(steps: list[tuple[bool, Run]], asked: Run) -> None:
    runs: list[Run] = []
    expected: set[int] = set()
    for adds, (first, last) in steps:
        (add if adds else subtract)(runs, first, last)
        expected = expected | set(range(first, last + 1)) if adds else expected - set(range(first, last + 1))
        assert numbers(runs) == expected
        assert all(run[0] <= run[1] for run in runs)
        assert all(run[1] + 1 < after[0] for run, after in pairwise(runs)), "no two touch"
    named = set(range(asked[0], asked[1] + 1))
    assert overlaps(runs, *asked) is bool(named & expected)
    assert numbers(missing(runs, *asked)) == named - expected
    assert numbers(runs_between(runs, *asked)) & named == named & expected
    assert all(numbers([run]) & named for run in runs_between(runs, *asked))
    assert count(runs) == len(expected)
