"""Statistics of the benchmark: percentiles, summaries, and how results are kept."""

import pytest
from benchmarks.figures import COST, RESULT, Figure, Results, latency_figures, percentile, summarise


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        (1, 50, 1),
        (1, 99.9, 1),
        (2, 50, 1),
        (3, 50, 2),
        (100, 50, 50),
        (100, 99, 99),
        (100, 99.9, 100),
        (1000, 99.9, 999),
    ],
)
def test_percentile_is_the_nearest_rank(count, percent, expected):
    assert percentile([float(value) for value in range(1, count + 1)], percent) == expected


def test_percentile_refuses_what_has_none():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    for percent in (0, 100.1):
        with pytest.raises(ValueError, match="percentage"):
            percentile([1.0], percent)


def test_summary_is_median_and_extremes_in_any_order():
    summary = summarise([5.0, 1.0, 3.0])
    assert (summary.median, summary.minimum, summary.maximum, summary.rounds) == (3.0, 1.0, 5.0, 3)
    assert summarise([1.0, 2.0]).median == 1.5


def test_latency_figures_sort_for_themselves_and_may_be_none():
    figures = latency_figures("txn-1", [3.0, 1.0, 2.0])
    assert [(figure.name, figure.value) for figure in figures] == [("p50 ms", 2.0), ("p99 ms", 3.0), ("p99.9 ms", 3.0)]
    assert latency_figures("bulk", []) == []


def test_results_keep_rounds_apart_by_broker_and_first_come_order():
    results = Results(brokers=["A", "B"])
    results.add("A", Figure(case="two", name="x", value=1.0))
    results.add("A", Figure(case="one", name="x", value=7.0, kind=COST))
    results.add("A", Figure(case="one", name="y", value=2.0))
    results.add("B", Figure(case="two", name="x", value=9.0))
    results.add("A", Figure(case="two", name="x", value=3.0))
    assert results.keys(RESULT) == [("two", "x"), ("one", "y")]
    assert results.keys(COST) == [("one", "x")]
    assert results.summary("A", ("two", "x")) == summarise([1.0, 3.0])
    assert results.summary("B", ("two", "x")) == summarise([9.0])
    assert results.summary("B", ("one", "y")) is None
