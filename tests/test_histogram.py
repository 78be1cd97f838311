"""Histograms count each value in the bucket whose bound is the first that is not below it."""

from hypothesis import given
from hypothesis import strategies as st

from exacta.histogram import ENTRIES, SECONDS, Histogram


def _bucket(bounds: list[float], value: float) -> int:
    return next((number for number, bound in enumerate(bounds) if value <= bound), len(bounds))


@given(st.floats(0, 100).filter(lambda value: value not in Histogram(SECONDS).bounds))
def test_a_time_is_counted_below_the_first_bound_that_it_does_not_exceed(seconds: float) -> None:
    histogram = Histogram(SECONDS)
    histogram.add(seconds)
    assert histogram.buckets.index(1) == _bucket(histogram.bounds, seconds)
    assert (histogram.count, histogram.sum) == (1, seconds)


@given(st.integers(1, 10_000))
def test_a_whole_number_that_is_a_bound_is_counted_below_it(number: int) -> None:
    histogram = Histogram(ENTRIES)
    histogram.add_whole(number)
    assert histogram.buckets.index(1) == _bucket(histogram.bounds, number)


def test_the_bounds_are_powers_of_two() -> None:
    assert Histogram(SECONDS).bounds[0] == 1 / 4096
    assert Histogram(SECONDS).bounds[-1] == 16
    assert Histogram(ENTRIES).bounds[:3] == [1, 2, 4]
