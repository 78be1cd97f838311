"""Run a program on both brokers, compare, and make one that differs as short as it can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.pulsar.differential.differences import Moment, meant
from tests.pulsar.differential.links import ExactaLink, Link
from tests.pulsar.differential.programs import Program
from tests.pulsar.differential.side import HANGS_UP, Side, Told


@dataclass(frozen=True)
class Disagreement:
    """Where two brokers part in a way that is not meant."""

    program: Program
    theirs: tuple[Told, ...]
    ours: tuple[Told, ...]
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


def observed(link: Link, topic: str, program: Program) -> tuple[Told, ...]:
    """Run a program; return what came of its steps, as far as the broker kept the connection."""
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


def observed_here(program: Program) -> tuple[Told, ...]:
    """Run a program on Exacta, whose second commits and aborts are answered as by Pulsar."""
    return observed(ExactaLink(pulsar_transaction_repeat="strict"), "t", program)


def disagreement(program: Program, theirs: Sequence[Told], ours: Sequence[Told]) -> Disagreement | None:
    """Return the first difference that is not meant; None if there is none."""
    for place, (step, their, our) in enumerate(zip(program, theirs, ours, strict=False)):
        if their == our:
            continue
        difference = meant(Moment(step, their, our, program[:place]))
        if difference is None:
            return Disagreement(program, tuple(theirs), tuple(ours), place)
        if difference.parts:
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
