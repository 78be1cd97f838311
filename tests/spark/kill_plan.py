"""Draw from one seed, before anything runs, what a campaign kills and at which points of a micro-batch.

Owns the plan. `kill_campaign.py` carries it out.
"""

import random
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from tests.spark import faults


class Victim(StrEnum):
    """The processes that are killed."""

    SPARK = "Spark"  # the whole process tree
    DRIVER = "driver"  # and Java; the Python workers live on as zombies
    WORKER = "worker"  # the Python process that has come to the point: of a task, of the planner or of the commit
    EXECUTOR = "executor"  # with the Spark worker above it and the Python workers below; on a cluster only
    BROKER = "broker"


ANY_TIME = "at any time"
"""The kill strikes at any time while a batch is in flight, or at the moment when its rows are seen in the sink's
log."""
ROWS_IN_LOG = "rows in the log"

OF_ANY_SINK = (faults.TASKS_WRITING, ROWS_IN_LOG, ANY_TIME)
"""Points that need no help of the sink under test, so that other sinks can be put to the same test."""

_IN_TASKS = (faults.TASKS_WRITING, faults.MARKER_WRITTEN)
_IN_COMMIT = (
    *(faults.ALL_TASKS_DONE, faults.DECIDED, faults.BEFORE_THE_ENDS),
    *(faults.BETWEEN_THE_ENDS, faults.COMMITTED),
)

POINTS = {
    Victim.SPARK: (*_IN_TASKS, *_IN_COMMIT, faults.A_REQUEST, ROWS_IN_LOG, ANY_TIME),
    Victim.DRIVER: (*_IN_TASKS, *_IN_COMMIT[:4], faults.A_REQUEST),
    Victim.WORKER: (*_IN_TASKS, *_IN_COMMIT, faults.A_REQUEST, faults.A_REQUEST),
    Victim.BROKER: (*_IN_TASKS, *_IN_COMMIT, faults.A_REQUEST, ANY_TIME),
}
ON_A_CLUSTER = {
    Victim.DRIVER: POINTS[Victim.DRIVER],
    Victim.EXECUTOR: _IN_TASKS,
    Victim.WORKER: (*_IN_TASKS, faults.A_REQUEST),
    Victim.BROKER: POINTS[Victim.BROKER],
}
"""The points on a cluster of several machines, where executors die apart from the driver."""
SHARES = {Victim.SPARK: 18, Victim.DRIVER: 8, Victim.EXECUTOR: 18, Victim.WORKER: 37, Victim.BROKER: 37}
"""The shares of a hundred kills. A new Spark costs ten seconds, a new worker or broker one."""

_REQUESTS_OF_A_BATCH = 40
"""A batch of the campaign's size takes about this many requests."""
_LONGEST_DELAY_S = 1.0


class Kill(Struct, frozen=True, kw_only=True):
    """One kill: of whom, and where."""

    victim: Victim
    point: str
    skip: int = 0  # how many times the point is passed before
    delay_s: float = 0.0  # after a batch is in flight
    late: bool = False  # of a driver: its workers are let go only when the next life has done a batch

    @property
    def ends_life(self) -> bool:
        """Return whether a new Spark must begin after the kill."""
        return self.victim in (Victim.SPARK, Victim.DRIVER)


def plan(
    seed: int,
    kills: int,
    points: dict[Victim, tuple[str, ...]] | None = None,
    chosen: Callable[[list[Kill]], list[Kill]] = list,
) -> list[Kill]:
    """Draw this many kills; each victim's come to all of its points in turn.

    `chosen` takes those that are carried out, from a list in which the victims and their points stand in order.
    """
    dice = random.Random(seed)
    points = POINTS if points is None else points
    shares = {victim: SHARES[victim] for victim in points}
    # By largest remainder, so that they add up.
    exact = {victim: kills * share / sum(shares.values()) for victim, share in shares.items()}
    counts = {victim: int(number) for victim, number in exact.items()}
    for victim in sorted(exact, key=lambda each: counts[each] - exact[each])[: kills - sum(counts.values())]:
        counts[victim] += 1
    drawn = [
        Kill(
            victim=victim,
            point=(point := points[victim][number % len(points[victim])]),
            skip=dice.randrange(_REQUESTS_OF_A_BATCH) if point == faults.A_REQUEST else 0,
            delay_s=dice.random() * _LONGEST_DELAY_S if point == ANY_TIME else 0.0,
            late=victim is Victim.DRIVER and number % 2 == 1,
        )
        for victim, count in counts.items()
        for number in range(count)
    ]
    carried_out = chosen(drawn)
    dice.shuffle(carried_out)
    return carried_out
