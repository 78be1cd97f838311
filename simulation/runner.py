"""Run worlds, seed after seed, and say what they came to."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from simulation.canaries import canaries
from simulation.world import Verdict, World

SECONDS_PER_HOUR = 3600


@dataclass(slots=True)
class Totals:
    """The totals of all worlds of a run."""

    seeds: int = 0
    virtual_seconds: float = 0.0
    real_seconds: float = 0.0
    lives: int = 0
    cleanings: int = 0
    compactions: int = 0
    retentions: int = 0
    expiries: int = 0
    options: int = 0
    partly: int = 0
    acknowledged: int = 0
    staging: Counter[str] = field(default_factory=Counter)
    full_disk: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Verdict] = field(default_factory=list)
    others: list[Verdict] = field(default_factory=list)
    """Worlds that fail and do not show the planted bug, which therefore does not explain them."""

    def add(self, verdict: Verdict, canary: str | None = None) -> None:
        """Count a world, in which a bug was planted if one is named."""
        self.seeds += 1
        self.virtual_seconds += verdict.virtual_seconds
        self.lives += verdict.lives
        self.cleanings += verdict.cleanings
        self.compactions += verdict.compactions
        self.retentions += verdict.retentions
        self.expiries += verdict.expiries
        self.options += verdict.options
        self.partly += verdict.partly
        self.acknowledged += verdict.acknowledged
        self.staging += verdict.staging
        self.full_disk += verdict.full_disk
        self.faults += verdict.faults
        if verdict.violations:
            is_known = canary is None or canaries()[canary].is_seen_in(verdict.violations)
            (self.failures if is_known else self.others).append(verdict)

    def lines(self) -> Iterator[str]:
        """Say it in a few lines."""
        hours = self.virtual_seconds / SECONDS_PER_HOUR
        yield (
            f"{self.seeds} seeds, {hours:.2f} virtual hours in {self.real_seconds:.0f} s; "
            f"{self.lives} lives of the broker, {self.cleanings} cleanings of its journal, "
            f"{self.compactions} compactions, {self.retentions} deletions by age, "
            f"{self.expiries} groups forgotten, {self.options} changes of options, "
            f"{self.acknowledged} records acknowledged, {self.partly} committed transactions shown in part first"
        )
        yield f"staged streams: {', '.join(f'{count} {what}' for what, count in sorted(self.staging.items()))}"
        yield f"full disks: {', '.join(f'{count} {what}' for what, count in sorted(self.full_disk.items()))}"
        yield f"{self.faults.total()} faults injected:"
        for kind, count in sorted(self.faults.items(), key=lambda each: (-each[1], each[0])):
            yield f"  {count:8} {kind}"


def run_world(seed: int, canary: str | None = None, write: Callable[[str], None] | None = None) -> Verdict:
    """Run the world of one seed, with a planted bug if one is named."""
    with nullcontext() if canary is None else canaries()[canary].plant():
        return World(seed, write).run()


def run_seeds(
    first: int,
    count: int,
    *,
    seconds: float | None = None,
    canary: str | None = None,
    jobs: int = 1,
    told: Callable[[Verdict], None] = lambda verdict: None,
) -> Totals:
    """Run worlds until there were this many, or the time is over, or one fails; `told` gets each verdict.

    With a canary, one fails that shows it.
    """
    totals = Totals()
    begin = time.monotonic()
    for verdict in _verdicts(first, count, canary, jobs):
        totals.add(verdict, canary)
        told(verdict)
        totals.real_seconds = time.monotonic() - begin
        if totals.failures or (seconds is not None and totals.real_seconds >= seconds):
            break
    return totals


def _verdicts(first: int, count: int, canary: str | None, jobs: int) -> Iterator[Verdict]:
    seeds = range(first, first + count)
    if jobs <= 1:
        yield from (run_world(seed, canary) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for block in range(0, count, jobs * 8):
            yield from pool.map(partial(run_world, canary=canary), seeds[block : block + jobs * 8])
