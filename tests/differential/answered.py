"""What both brokers said to a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.differential.calls import Answer
from tests.differential.steps import Step


class Answered(NamedTuple):
    """A step, and what each broker answered: the name of an error code, and then what else."""

    step: Step
    kafkas: Answer
    ours: Answer

    @property
    def codes(self) -> tuple[str, str]:
        """Kafka's code and ours."""
        return self.kafkas[0], self.ours[0]


History = Sequence[Answered]
