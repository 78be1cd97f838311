"""The bounds that the figures are held against: a ratio to the peer measured in the same run, or a value.

The broker's peer is Apache Kafka: Exacta syncs to disk before each commit is answered, and Kafka at its defaults syncs
nothing. For Pulsar's clients the peer is Apache Pulsar, which syncs as well. The peer of source and sink is Spark's own
Kafka connector, whose sink is at-least-once.

Owns which bound is required. A *requirement* is a bound that the code alone decides, such as memory: a run that misses
one fails. An *aim* is a bound that the machine decides as well: times, rates, and every ratio to a peer. Other people's
work on the same processors and disk moves such a figure by more than its distance from the bound, so the report says
whether an aim was reached, and no run fails because of it.
"""

import enum
from dataclasses import dataclass

from benchmarks.figures import FigureKey, Summary


class Measure(enum.Enum):
    """The figure that is compared with the bound."""

    RATIO_AT_LEAST = "≥ {} ×"
    RATIO_AT_MOST = "≤ {} ×"
    VALUE_AT_MOST = "≤ {}"


class Verdict(enum.Enum):
    """The answer to whether a bound is reached; UNKNOWN where something that it needs was not measured."""

    OK = "ok"
    NOT = "not"
    UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A bound on a median, or on the ratio of two peers' medians: an aim, unless it is `required`.

    `further` is a second aim behind the first one, which has no verdict.
    """

    measure: Measure
    value: float
    further: float | None = None
    required: bool = False

    def __post_init__(self) -> None:
        """Refuse to require a ratio to a peer: the machine decides it as well."""
        assert not self.required or self.measure is Measure.VALUE_AT_MOST

    def __str__(self) -> str:
        """Return it as the report prints it."""
        text = ("required " if self.required else "aim ") + self.measure.value.format(f"{self.value:g}")
        return text if self.further is None else f"{text}, then {self.measure.value.format(f'{self.further:g}')}"


BROKER_BOUNDS: dict[FigureKey, Bound] = (
    {
        ("start", "first ack s"): Bound(measure=Measure.VALUE_AT_MOST, value=0.3),
        ("embedded-start", "first ack s"): Bound(measure=Measure.VALUE_AT_MOST, value=0.01),
        ("idle-memory", "RSS MB"): Bound(measure=Measure.VALUE_AT_MOST, value=70, required=True),
        ("idle-memory-metrics", "RSS MB"): Bound(measure=Measure.VALUE_AT_MOST, value=60, required=True),
        ("txn-1", "txn/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=2.2, further=2.8),
        ("txn-1", "p99 ms"): Bound(measure=Measure.RATIO_AT_MOST, value=0.25),
        ("txn-50", "txn/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=3),
        ("txn-50", "p99 ms"): Bound(measure=Measure.RATIO_AT_MOST, value=0.2),
        ("txn-1-to-1000", "p50 ms"): Bound(measure=Measure.RATIO_AT_MOST, value=0.4, further=0.3),
        ("ctp-100", "txn/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=25, further=35),
        ("end-to-end", "p99 ms"): Bound(measure=Measure.VALUE_AT_MOST, value=10, further=5),
    }
    | {
        (f"bulk-{size}{kind} {way}", "msg/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=1)
        for size in ("100B", "1KB")
        for kind in ("", "-txn")
        for way in ("produce", "consume")
    }
    | {
        (f"bulk-{size}{kind} afterwards", "RSS MB"): Bound(measure=Measure.VALUE_AT_MOST, value=150, required=True)
        for size in ("100B", "1KB")
        for kind in ("", "-txn")
    }
)
SPARK_BOUNDS: dict[FigureKey, Bound] = {
    ("topic to topic, 100 B", "rows/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=1.3, further=1.6),
    ("topic to topic, 1 KB", "rows/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=1.3, further=1.6),
    ("source alone, 100 B", "rows/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=2, further=2.5),
    ("source alone, 1 KB", "rows/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=2, further=2.5),
    ("small batch, by the driver", "p50 ms"): Bound(measure=Measure.RATIO_AT_MOST, value=1, further=0.8),
    ("small batch, by tasks", "p50 ms"): Bound(measure=Measure.RATIO_AT_MOST, value=2),
}
PULSAR_BOUNDS: dict[FigureKey, Bound] = {
    ("pulsar-txn-1", "txn/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=4),
    ("pulsar-txn-50", "txn/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=2),
    ("pulsar-ctp-100", "txn/s"): Bound(measure=Measure.RATIO_AT_LEAST, value=6),
    ("pulsar-first", "first in its process ms"): Bound(measure=Measure.RATIO_AT_MOST, value=0.05),
    ("pulsar-first", "further p50 ms"): Bound(measure=Measure.RATIO_AT_MOST, value=0.05),
}
LEAST_RATIO_OF_EMPTY = 0.8
"""The part of an empty broker's rate that one which knows, holds or has open a great deal must reach
(`benchmarks.growth`)."""
BOUNDS = BROKER_BOUNDS | PULSAR_BOUNDS | SPARK_BOUNDS


def ratio(subject: Summary | None, reference: Summary | None) -> float | None:
    """Return the ratio of two medians, or None where one is missing or the reference is zero."""
    if subject is None or reference is None or reference.median == 0:
        return None
    return subject.median / reference.median


def judge(bound: Bound, subject: Summary | None, reference: Summary | None) -> Verdict:
    """Hold a figure of the subject, and the reference's where it needs one, against a bound."""
    compared = subject.median if subject is not None else None
    if bound.measure is not Measure.VALUE_AT_MOST:
        compared = ratio(subject, reference)
    if compared is None:
        return Verdict.UNKNOWN
    if bound.measure is Measure.RATIO_AT_LEAST:
        met = compared >= bound.value
    else:
        met = compared <= bound.value
    return Verdict.OK if met else Verdict.NOT
