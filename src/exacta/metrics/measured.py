"""A metric with its values, as it was read: what the modules of this folder hand to `exposition`."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from typing import TypeAlias

from msgspec import Struct

from exacta.histogram import Histogram
from exacta.metrics.families import OTHERS, Family, MetricKind

Labels: TypeAlias = tuple[str, ...]


class Distribution(Struct, frozen=True):
    """A histogram as it was at one moment."""

    buckets: tuple[tuple[float, int], ...]
    """The upper bounds, with the number of values up to each; the last bound is infinite."""
    sum: float


class Measured(Struct):
    """A metric and its values by the values of its labels, in the order that the family has."""

    family: Family
    values: Mapping[Labels, float | Distribution]


def single(family: Family, value: float) -> Measured:
    """Return a metric without labels."""
    return Measured(family, {(): value})


def labelled(family: Family, values: Iterable[tuple[str, float]]) -> Measured:
    """Return a metric with one label."""
    return Measured(family, {(label,): value for label, value in values})


def distribution(histogram: Histogram) -> Distribution:
    """Return what a histogram has counted so far."""
    total, buckets = 0, []
    for bound, count in zip([*histogram.bounds, float("inf")], histogram.buckets, strict=True):
        total += count
        buckets.append((bound, total))
    return Distribution(tuple(buckets), histogram.sum)


def largest(
    family: Family,
    values: Mapping[Labels, float],
    most: int,
    together: Callable[[Iterable[float]], float] = sum,
) -> Measured:
    """Return the largest values of a gauge; the others are one series, whose value `together` makes of theirs."""
    assert family.kind is MetricKind.GAUGE
    if len(values) <= most:
        return Measured(family, values)
    chosen = nlargest(most, values, key=lambda labels: (values[labels], labels))
    shown = {labels: values[labels] for labels in chosen}
    rest = together(value for labels, value in values.items() if labels not in shown)
    return Measured(family, shown | {(OTHERS,) * len(family.labels): rest})
