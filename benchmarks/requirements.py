"""What the figures must reach: a ratio to Apache Kafka measured in the same run, or a bound of their own.

Exacta syncs to disk before each answer, Kafka at its defaults syncs nothing: the ratios hold in spite of that.
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
    """A bound on a median, or on the ratio of two brokers' medians."""

    measure: Measure
    bound: float

    def __str__(self) -> str:
        """Return it as the report prints it."""
        return self.measure.value.format(f"{self.bound:g}")


REQUIREMENTS: dict[FigureKey, Requirement] = {
    ("bulk-100B produce", "msg/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=0.8),
    ("bulk-100B consume", "msg/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=0.8),
    ("bulk-1KB produce", "msg/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=0.8),
    ("bulk-1KB consume", "msg/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=0.8),
    ("txn-1", "txn/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=2),
    ("txn-50", "txn/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=2),
    ("ctp-100", "txn/s"): Requirement(measure=Measure.RATIO_AT_LEAST, bound=20),
    ("start", "first ack s"): Requirement(measure=Measure.VALUE_AT_MOST, bound=0.5),
    ("idle-memory", "RSS MB"): Requirement(measure=Measure.VALUE_AT_MOST, bound=80),
}


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
