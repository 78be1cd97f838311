"""Figures: what one measured part yields, and how the rounds of a run are summed up.

A figure is a number with a case and a name ("txn-1", "txn/s"). `RESULT` figures are what a user gets and are held
against bounds; `COST` figures say what it took. Over the rounds a figure becomes a `Summary`: median, minimum
and maximum.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["result", "cost"]
RESULT: Kind = "result"
COST: Kind = "cost"

FigureKey = tuple[str, str]
"""Case and name."""

PERCENTILES = (("p50 ms", 50.0), ("p99 ms", 99.0), ("p99.9 ms", 99.9))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of one round."""

    case: str
    name: str
    value: float
    kind: Kind = RESULT

    @property
    def key(self) -> FigureKey:
        """Return case and name."""
        return self.case, self.name


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A figure over all rounds."""

    median: float
    minimum: float
    maximum: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class CaseFailure:
    """A case that failed: with which broker, in which round (from 1), and why in one line."""

    broker: str
    case: str
    round_number: int
    reason: str


@dataclass(kw_only=True)
class Results:
    """Everything a run has yielded so far, in the order in which it came."""

    brokers: list[str]
    figures: dict[str, dict[FigureKey, list[float]]] = field(default_factory=dict)
    kinds: dict[FigureKey, Kind] = field(default_factory=dict)
    failures: list[CaseFailure] = field(default_factory=list)
    sync_latencies_ms: list[float] = field(default_factory=list)
    """The median fdatasync latency of each probe of the disk during the run."""

    def add(self, broker: str, figure: Figure) -> None:
        """Add one number of one round."""
        self.kinds.setdefault(figure.key, figure.kind)
        self.figures.setdefault(broker, {}).setdefault(figure.key, []).append(figure.value)

    def keys(self, kind: Kind) -> list[FigureKey]:
        """Return the figures of a kind, in the order in which they first came."""
        return [key for key, each in self.kinds.items() if each == kind]

    def summary(self, broker: str, key: FigureKey) -> Summary | None:
        """Sum up a broker's figure, or None if it has none."""
        values = self.figures.get(broker, {}).get(key)
        return summarise(values) if values else None


def summarise(values: Sequence[float]) -> Summary:
    """Return median, minimum and maximum of at least one value."""
    return Summary(median=statistics.median(values), minimum=min(values), maximum=max(values), rounds=len(values))


def percentile(ascending: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of ascending values: the smallest that this many percent do not exceed."""
    if not ascending:
        raise ValueError("no values have no percentile")
    if not 0 < percent <= 100:
        raise ValueError(f"not a percentage above 0: {percent}")
    # Rounded first: 99.9 percent of 1,000 is a hair above 999 in binary, which must not make it the 1,000th.
    rank = math.ceil(round(percent * len(ascending) / 100, 9))
    return ascending[rank - 1]


def latency_figures(case: str, latencies_ms: Sequence[float]) -> list[Figure]:
    """Return the usual percentiles of latencies, or nothing if there are none."""
    if not latencies_ms:
        return []
    ascending = sorted(latencies_ms)
    return [Figure(case=case, name=name, value=percentile(ascending, percent)) for name, percent in PERCENTILES]
