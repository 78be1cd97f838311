"""What the figures must reach: a ratio to the peer measured in the same run, or a bound of their own.

The broker's peer is Apache Kafka: Exacta syncs to disk before each commit is answered, Kafka at its defaults syncs
nothing, and the ratios hold in spite of that. The peer of source and sink is Spark's own Kafka connector, whose sink is
at-least-once.
A requirement is what must be reached; an aim is what we work towards, and no verdict hangs on it.
"""

import enum
from dataclasses import dataclass

from benchmarks.figures import FigureKey, Summary


class Measure(enum.Enum):
    """What is compared with the bound."""

    RATIO_AT_LEAST = "≥ {} ×"
    RATIO_AT_MOST = "≤ {} ×"
    VALUE_AT_MOST = "≤ {}"


class Verdict(enum.Enum):
    """Whether a requirement is met; UNKNOWN where something it needs was not measured."""

    OK = "ok"
    NOT = "not"
    UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """A bound on a median, or on the ratio of two peers' medians."""

    measure: Measure
    bound: float
    aim: float | None = None

    def __str__(self) -> str:
        """Return it as the report prints it."""
        must = self.measure.value.format(f"{self.bound:g}")
        return must if self.aim is None else f"{must} (aim {self.measure.value.format(f'{self.aim:g}')})"


BROKER_REQUIREMENTS: dict[FigureKey, Requirement] = (
    {
        ("start", "first ack s"): Requirement(measure=Measure.VALUE_AT_MOST, bound=0.4),
        ("embedded-start", "first ack s"): Requirement(measure=Measure.VALUE_AT_MOST, bound=0.05),
        ("idle-memory", "RSS MB"): Requirement(measure=Measure.VALUE_AT_MOST, bound=70),
        ("txn-1", "txn/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=2.2, aim=2.8),
        ("txn-1", "p99 ms"): Requirement(measure=Measure.RATIO_AT_MOST, bound=0.25),
        ("txn-50", "txn/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=3),
        ("txn-50", "p99 ms"): Requirement(measure=Measure.RATIO_AT_MOST, bound=0.2),
        ("txn-1-to-1000", "p50 ms"): Requirement(measure=Measure.RATIO_AT_MOST, bound=0.4, aim=0.3),
        ("ctp-100", "txn/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=25, aim=35),
        ("end-to-end", "p99 ms"): Requirement(measure=Measure.VALUE_AT_MOST, bound=10, aim=5),
    }
    | {
        (f"bulk-{size}{kind} {way}", "msg/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=1)
        for size in ("100B", "1KB")
        for kind in ("", "-txn")
        for way in ("produce", "consume")
    }
    | {
        (f"bulk-{size}{kind} afterwards", "RSS MB"): Requirement(measure=Measure.VALUE_AT_MOST, bound=150)
        for size in ("100B", "1KB")
        for kind in ("", "-txn")
    }
)
SPARK_REQUIREMENTS: dict[FigureKey, Requirement] = {
    ("topic to topic, 100 B", "rows/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=1.3, aim=1.6),
    ("topic to topic, 1 KB", "rows/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=1.3, aim=1.6),
    ("source alone, 100 B", "rows/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=2, aim=2.5),
    ("source alone, 1 KB", "rows/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=2, aim=2.5),
    ("small batch, by the driver", "p50 ms"): Requirement(measure=Measure.RATIO_AT_MOST, bound=1, aim=0.8),
    ("small batch, by tasks", "p50 ms"): Requirement(measure=Measure.RATIO_AT_MOST, bound=2),
}
LEAST_RATIO_OF_EMPTY = 0.8
"""What a broker that knows, holds or has open a great deal must reach of an empty one's rate (`benchmarks.growth`)."""
REQUIREMENTS = BROKER_REQUIREMENTS | SPARK_REQUIREMENTS


def ratio(subject: Summary | None, reference: Summary | None) -> float | None:
    """Return the ratio of two medians, or None where one is missing or the reference is zero."""
    if subject is None or reference is None or reference.median == 0:
        return None
    return subject.median / reference.median


def judge(requirement: Requirement, subject: Summary | None, reference: Summary | None) -> Verdict:
    """Hold a figure of the subject, and the reference's where it needs one, against a requirement."""
    compared = subject.median if subject is not None else None
    if requirement.measure is not Measure.VALUE_AT_MOST:
        compared = ratio(subject, reference)
    if compared is None:
        return Verdict.UNKNOWN
    if requirement.measure is Measure.RATIO_AT_LEAST:
        met = compared >= requirement.bound
    else:
        met = compared <= requirement.bound
    return Verdict.OK if met else Verdict.NOT
