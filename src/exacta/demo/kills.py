"""Draw from one seed what is killed and when, before anything runs.

This module owns the plan. It kills nothing itself (`processes`, `run`).

Theory of operation: a kill is due at a point of the pipeline's progress, not at a time, so that it strikes while
there is work whatever the machine's speed; then it waits for a micro-batch to be in flight and a moment more, drawn
from the seed, to fall on any instant of it. Every other kill of a kind is *aimed*: it waits for the instant at which
rows of a micro-batch come into the log, which is the hardest moment, and short, and strikes then. The points
are spread over the run, one in each of as many equal parts as there are kills, in which kinds come in random order.
The same seed draws the same plan; the instants that it falls on are the machine's.
"""

import random
from enum import Enum

from msgspec import Struct

DEFAULT_COUNTS = "driver=2,broker=2,worker=1"
_FIRST_POINT, _LAST_POINT = 0.05, 0.85
_LONGEST_DELAY_S = 1.5
_LONGEST_ZOMBIES_S = 3.0
_LONGEST_OUTAGE_S = 1.5


class Target(Enum):
    """Name what is killed."""

    DRIVER = "driver"
    BROKER = "broker"
    WORKER = "worker"


class KillsSyntaxError(ValueError):
    """The text does not say how many of what to kill."""


class Kill(Struct, frozen=True, kw_only=True):
    """Describe one kill.

    It strikes `delay_s` after the pipeline has done `at_fraction` of its work and a micro-batch is in flight or,
    `aimed`, has rows in the log.
    `rest_s`: for a driver, how long its workers live on (or, `frozen`, how long they go on after they were thawed
    behind the next driver's back); for a broker, how long it stays away. `draw`, in [0, 1), chooses among workers.
    """

    target: Target
    at_fraction: float
    delay_s: float
    rest_s: float
    aimed: bool
    frozen: bool
    draw: float


def parse_counts(text: str) -> dict[Target, int]:
    """Read `driver=2,broker=2,worker=1`, where what is left out counts 0, or `none`. Raises KillsSyntaxError."""
    counts = dict.fromkeys(Target, 0)
    if text.strip() == "none":
        return counts
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        try:
            counts[Target(name)] = int(number)
        except ValueError as error:
            raise KillsSyntaxError(f"expected {DEFAULT_COUNTS!r} or 'none', not {text!r}") from error
        if counts[Target(name)] < 0:
            raise KillsSyntaxError(f"a number of kills cannot be negative: {text!r}")
    return counts


def plan(seed: int, counts: dict[Target, int]) -> list[Kill]:
    """Draw the kills, in the order in which they are due."""
    dice = random.Random(seed)
    targets = [target for target in Target for _ in range(counts[target])]
    dice.shuffle(targets)
    part = (_LAST_POINT - _FIRST_POINT) / max(1, len(targets))
    aimed = {target: dice.random() < 0.5 for target in Target}
    # Every other driver leaves workers behind that are frozen and thawed later, beginning with the first or the second.
    frozen = dice.random() < 0.5
    kills: list[Kill] = []
    for index, target in enumerate(targets):
        longest_rest_s = _LONGEST_OUTAGE_S if target is Target.BROKER else _LONGEST_ZOMBIES_S
        kills.append(
            Kill(
                target=target,
                at_fraction=_FIRST_POINT + part * (index + dice.random()),
                delay_s=dice.random() * (0 if aimed[target] else _LONGEST_DELAY_S),
                rest_s=dice.random() * longest_rest_s,
                aimed=aimed[target],
                frozen=target is Target.DRIVER and frozen,
                draw=dice.random(),
            )
        )
        frozen = frozen != (target is Target.DRIVER)
        aimed[target] = not aimed[target]
    return kills
