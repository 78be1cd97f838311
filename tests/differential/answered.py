"""What both brokers said to a step, and what it is to let a difference pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Difference:
    """A difference that is meant; `parts` says that the brokers' states are different from there on."""

    why: str
    applies: Callable[[Answered, History], bool]
    parts: bool = False
