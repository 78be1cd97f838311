"""One step of a program as both brokers have taken it, and what the steps before it say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.differential.machine import Step
from tests.pulsar.differential.side import Told
from tests.pulsar.differential.steps import (
    PLENTY,
    Ack,
    AckUpTo,
    Begin,
    BeginShort,
    End,
    Expire,
    Read,
    Seek,
    SeekTime,
    Subscribe,
)

_ENTRY = re.compile(r"\w (\d+)")


@dataclass(frozen=True)
class Moment:
    """One step of a program, what the two brokers made of it, and the steps before it."""

    step: Step
    theirs: Told
    ours: Told
    before: Sequence[Step] = field(repr=False)

    @property
    def answers(self) -> tuple[str, str]:
        """Pulsar's answer, and ours."""
        return self.theirs.answer, self.ours.answer

    @property
    def came_alike(self) -> bool:
        """Return whether both have delivered the same."""
        return self.theirs.came == self.ours.came

    def kind_of(self, consumer: str) -> str:
        """Return the type of the subscription that a consumer has subscribed to last; "reader" for a reader."""
        for step in reversed(self.before):
            if isinstance(step, Subscribe) and step.consumer == consumer:
                return step.kind
            if isinstance(step, Read) and step.consumer == consumer:
                return "reader"
        return ""

    def acks(self, kind: type[Step], transaction: str | None = None) -> bool:
        """Return whether messages were acknowledged so before, in any transaction or in this one."""
        return any(
            isinstance(step, kind) and transaction in (None, step.transaction)  # type: ignore[attr-defined]
            for step in self.before
        )

    def has_few_permits(self) -> bool:
        """Return whether a consumer may have used up its permits."""
        steps = (*self.before, self.step)
        return any(isinstance(step, Subscribe) and step.permits < PLENTY for step in steps)

    def leaves_other_permits(self) -> bool:
        """Return whether the two go on with other permits, because they have not delivered the same."""
        return self.has_few_permits() and not self.came_alike

    def has_sought(self) -> bool:
        """Return whether a subscription was moved before."""
        return any(isinstance(step, Seek | SeekTime) for step in self.before)

    def open_ones(self) -> set[str]:
        """Return the transactions that are open before the step."""
        found: set[str] = set()
        for step in self.before:
            if isinstance(step, Begin | BeginShort):
                found.add(step.transaction)
            elif isinstance(step, End | Expire):
                found.discard(step.transaction)
        return found

    @property
    def entries(self) -> tuple[set[int], set[int]]:
        """The numbers of the entries that Pulsar has delivered, and those that we have."""
        return _numbers(self.theirs), _numbers(self.ours)

    def acks_part_of_a_batch(self, transactions: str = "") -> bool:
        """Return whether a part of a batch was acknowledged before, or left out by a seek; or only in transactions."""
        parts = [step for step in self.before if isinstance(step, Ack | AckUpTo | Seek) and step.index is not None]
        return any(not transactions or getattr(step, "transaction", "") in {*transactions} for step in parts)


def _numbers(told: Told) -> set[int]:
    return {int(found[1]) for each in told.came if (found := _ENTRY.match(each))}
