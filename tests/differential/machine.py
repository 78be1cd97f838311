"""What the differential tests of both protocols are made of: steps, how each is taken, and what may differ.

How brokers are compared is each protocol's own (`agree.py`). Hypothesis makes and shortens sequences beside a real
Kafka. Pulsar's programs are also held to what was written down of a real Pulsar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True, repr=False)
class Step:
    """One request or command. It names nothing that only one broker knows."""

    def given(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        found = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return {name: value for name, value, default in found if value != default}

    def __repr__(self) -> str:
        """Return what makes it, as short as a report or a regression needs it."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given().items())})"


How = Callable[[Any, Any], Any]
"""Takes a step on a side; returns what came of it."""


class Taking(dict[type[Step], How]):
    """How steps are taken, by their classes."""

    def by(self, *kinds: type[Step]) -> Callable[[How], How]:
        """Register a function for these kinds of steps."""

        def register(how: How) -> How:
            self.update(dict.fromkeys(kinds, how))
            return how

        return register


@dataclass(frozen=True)
class Difference:
    """A difference that is meant; `parts` says that the brokers' states are different from there on."""

    why: str
    applies: Callable[..., bool]
    parts: bool = False


def first_of(differences: Iterable[Difference], *found: Any) -> Difference | None:
    """Return the first difference that applies to what was found, or None where it is a defect."""
    return next((each for each in differences if each.applies(*found)), None)
