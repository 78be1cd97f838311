"""Run a program on both brokers, compare, and make one that differs as short as it can be."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.pulsar.differential.differences import meant
from tests.pulsar.differential.links import ExactaLink, Link, PulsarLink
from tests.pulsar.differential.moments import Moment
from tests.pulsar.differential.programs import Program
from tests.pulsar.differential.side import HANGS_UP, Side, Told

PULSAR_URL = os.environ.get("EXACTA_TEST_PULSAR", "")
PULSAR_WEB = os.environ.get("EXACTA_TEST_PULSAR_WEB", "http://127.0.0.1:18080")

Observed = tuple[Told, ...]
"""The observations of a program's steps, as far as the broker kept the connection."""

_stamp = f"{time.time_ns():x}"
_numbers = itertools.count()


@dataclass(frozen=True)
class Disagreement:
    """The place where two brokers part in a way that is not meant."""

    program: Program
    theirs: Observed
    ours: Observed
    at: int

    def __str__(self) -> str:
        """Return the program up to there, with what came of its steps."""
        lines = [f"    {step!r:72} {told}" for step, told in zip(self.program[: self.at], self.theirs, strict=False)]
        return "\n".join(
            (
                "Exacta and Apache Pulsar part:",
                *lines,
                f"    {self.program[self.at]!r}",
                f"        Pulsar: {self.theirs[self.at]}",
                f"        Exacta: {self.ours[self.at]}",
            )
        )


def observed(link: Link, topic: str, program: Program) -> Observed:
    """Run a program on a broker."""
    side = Side(link, topic)
    found: list[Told] = []
    for step in program:
        try:
            found.append(side.run(step))
        except ConnectionError:
            found.append(Told(HANGS_UP, ()))
            break
    side.closed()
    return tuple(found)


def ours(program: Program) -> Observed:
    """Run a program on Exacta, which answers to a second commit or abort as Pulsar does."""
    return observed(ExactaLink(pulsar_transaction_repeat="strict"), "t", program)


def real(program: Program, quiet_s: float) -> Observed:
    """Run a program on the real Apache Pulsar that EXACTA_TEST_PULSAR names, on a topic of its own."""
    topic = f"differential-{_stamp}-{next(_numbers)}"
    return observed(PulsarLink(PULSAR_URL, PULSAR_WEB, quiet_s), topic, program)


def disagreement(program: Program, theirs: Observed, ours: Observed) -> Disagreement | None:
    """Return the first difference that is not meant; None if there is none."""
    for place, (step, their, our) in enumerate(zip(program, theirs, ours, strict=False)):
        if their == our:
            continue
        moment = Moment(step, their, our, program[:place])
        difference = meant(moment)
        if difference is None:
            return Disagreement(program, theirs, ours, place)
        if difference.parts or moment.leaves_other_permits():
            return None
    return None


def shortened(found: Disagreement, again: Callable[[Program], Disagreement | None]) -> Disagreement:
    """Leave out what steps can be left out, so that the two still part; `again` runs a program on both."""
    place = found.at
    while place:
        place -= 1
        program = found.program[: found.at + 1]
        shorter = again(program[:place] + program[place + 1 :])
        if shorter is not None:
            found = shorter
            place = min(place, found.at)
    return found
