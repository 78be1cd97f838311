"""A world of brokers that share nothing but a log: a seed, and all that follows from it.

It is for the protocols of the shared log alone: who leads, what is durable, what a follower shows, what an answer may
rest on. There is no engine, and what is appended means nothing. So a world takes a fraction of a second.

    python -m simulation.cluster.log_world [FIRST_SEED] [SEEDS]
"""

import asyncio
import gc
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from exacta.adapters.shared.shared_log import Limits
from simulation.chance import dice
from simulation.clock import WallClock
from simulation.cluster.command import Outcome, Write, main
from simulation.cluster.history import LogHistory
from simulation.cluster.member import Member
from simulation.cluster.nemesis import Nemesis
from simulation.cluster.storage import SharedStorage
from simulation.loop import NothingHappens, SimulatedLoop
from simulation.trace import Trace

FAULTY_SECONDS = (10.0, 40.0)
PATIENCE_SECONDS = 90.0
"""So long after the last fault everybody has followed the log, and somebody leads it."""
MAX_VIOLATIONS = 10


class LogVerdict(NamedTuple):
    """The result of a world."""

    seed: int
    violations: list[str]
    digest: str
    acknowledged: int
    counts: Counter[str]
    faults: Counter[str]
    last_lines: list[str]


class LogWorld:
    """One world, run by `run`."""

    def __init__(self, seed: int, write: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.violations: list[str] = []
        self.loop = SimulatedLoop()
        self.trace = Trace(self.loop.time, write)
        self.history = LogHistory(self.complain)
        chance = dice(seed, "log world")
        clock = WallClock(self.loop)
        node_ids = range(1, 1 + chance.choice([2, 3, 3, 4]))
        self.storage = SharedStorage(self.loop, self.trace, dice(seed, "storage"), clock.now_ms, node_ids)
        limits = Limits(
            segment_bytes=chance.choice([4_000, 20_000, 1 << 26]), snapshot_events=chance.choice([20, 200, 100_000])
        )
        self.members = {
            node_id: Member(
                node_id,
                self.loop,
                self.trace,
                dice(seed, "member", node_id),
                self.storage,
                self.history,
                limits,
                self.complain,
            )
            for node_id in node_ids
        }
        self._faulty_seconds = chance.uniform(*FAULTY_SECONDS)
        self._nemesis = Nemesis(
            dice(seed, "nemesis"), self.loop, self.trace, self.storage, self.members, _jump(clock, dice(seed, "clock"))
        )

    def complain(self, violation: str) -> None:
        """Note what must not be."""
        self.trace.note("violation", violation)
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(violation)

    def run(self) -> LogVerdict:
        """Let it happen."""
        self.loop.set_exception_handler(lambda loop, context: self.complain(f"loop: {context}"))
        try:
            with silent_dead():
                self.loop.run_until_complete(self._plot())
                self.loop.close()
        except NothingHappens:
            self.complain("liveness: everybody waits for ever")
        counts: Counter[str] = Counter()
        for member in self.members.values():
            counts += member.counts
        return LogVerdict(
            self.seed,
            self.violations,
            self.trace.digest,
            self.history.acknowledged,
            counts,
            self.trace.faults,
            list(self.trace.last_lines),
        )

    async def _plot(self) -> None:
        for member in self.members.values():
            member.start()
        nemesis = self.loop.create_task(self._nemesis.run(self._faulty_seconds))
        while not nemesis.done() and not self.violations:
            await asyncio.sleep(0.1)
        nemesis.cancel()
        before = self.history.acknowledged
        end = self.loop.time() + PATIENCE_SECONDS
        while not self.violations and not self._is_well(before):
            if self.loop.time() > end:
                seen = {name: len(member.seen) for name, member in self.members.items()}
                self.complain(f"liveness: of {len(self.history.durable)} events the brokers have seen {seen}")
            await asyncio.sleep(0.1)
        for member in self.members.values():
            member.kill()

    def _is_well(self, before: int) -> bool:
        """Say whether events were acknowledged since, one broker leads, and each has seen what was there just now."""
        enough = self.history.acknowledged >= before + 20
        return enough and all(len(each.seen) >= before + 20 for each in self.members.values())


@contextmanager
def silent_dead() -> Iterator[None]:
    """Say nothing of the coroutines of killed processes, which Python ends when nobody can resume them any more."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
        gc.collect()
    finally:
        sys.unraisablehook = hook


def _jump(clock: WallClock, chance: random.Random) -> Callable[[int], None]:
    def jump(_: int) -> None:
        clock.skew_ms = chance.randint(-60_000, 60_000)

    return jump


def _outcome(seed: int, write: Write | None) -> Outcome:
    verdict = LogWorld(seed, write).run()
    return verdict.violations, verdict.counts + Counter(acknowledged=verdict.acknowledged), verdict.faults


if __name__ == "__main__":
    main(_outcome)
