"""The nemesis carries out the plan of kills while the pipeline runs.

This module owns the moment of each kill, the restarts after it, and the zombies that a driver leaves behind. The plan
is drawn elsewhere (`kills`), and so is whether the outcome is right (`verify`).

Theory of operation: `step` is called over and over with the pipeline's progress and never waits for long. One kill at
a time: it is *due* once the pipeline has come far enough, *armed* once a micro-batch is in flight in a driver that
has Python workers, *ready* at once or, if aimed, the moment the outputs' logs grow, and strikes its drawn delay
later, whatever is going on then. An idle worker's death proves nothing, and from outside nobody can tell an idle one
from one at work. So a worker is first frozen (SIGSTOP): one at work stands still there, an idle one is given a task
soon; then it is killed, which counts only if Spark has lost a task by it, else another one is killed. Killed drivers
and brokers are started again here; what ends without having been killed is the business of `run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec
import psutil
from msgspec import Struct

from exacta.demo.checkpoints import QueryProgress
from exacta.demo.kills import Kill, Target

if TYPE_CHECKING:
    from exacta.demo.processes import DriverProcess, Zombies

_FROZEN_BEFORE_KILL_S = 2.0
_LOST_TASK_WITHIN_S = 3.0
_THAW_AT_LATEST_S = 60.0
_AIM_AT_MOST_S = 15.0
_CLOSE_LOOKS = 10


class Victim(Protocol):
    """A broker, or several of which one is killed."""

    def start(self) -> None:
        """Start what does not run."""

    def kill_one(self) -> str:
        """Kill by signal 9, and say what was killed."""


class _Left(Struct):
    """Zombies, and what becomes of them: a thaw once the next driver has done a batch, and an end."""

    zombies: Zombies
    rest_s: float
    kill_at: float | None
    thaw_at_latest: float | None
    done_before: tuple[int, ...]


class _Armed(Struct, frozen=True, kw_only=True):
    """The time since which a kill is armed, and what the outputs' logs had then."""

    at: float
    written: int


class Nemesis(Struct):
    """Carry out `plan` on `broker` and `driver`; `say` what happens."""

    plan: list[Kill]
    broker: Victim
    driver: DriverProcess
    say: Callable[[str], None]
    written: Callable[[], int]
    """Return how many offsets the outputs' logs have, or -1 if that cannot be told at the moment."""
    clock: Callable[[], float] = time.monotonic
    struck: dict[Target, int] = msgspec.field(default_factory=lambda: dict.fromkeys(Target, 0))
    broker_is_away: bool = False
    _armed: _Armed | None = None
    _strike_at: float | None = None
    _broker_back_at: float = 0.0
    _frozen_worker: tuple[psutil.Process, float] | None = None
    _watched_worker: tuple[int, float] | None = None
    _left: list[_Left] = []

    @property
    def finished(self) -> bool:
        """Say whether every kill has struck and nobody is away because of one."""
        return not (self.plan or self.broker_is_away)

    def step(self, queries: dict[str, QueryProgress], fraction: float) -> None:
        """Do what is due now."""
        now = self.clock()
        self._tend_zombies(queries, now)
        if self.broker_is_away:
            if now >= self._broker_back_at:
                self.broker_is_away = False
                self.broker.start()
            return
        if self._frozen_worker is not None:
            self._kill_the_frozen_worker(now)
            return
        if self._watched_worker is not None:
            self._watch_worker(now)
            return
        if self.driver.exit_code() is not None:
            self._armed = self._strike_at = None
            return
        if not self.plan or fraction < self.plan[0].at_fraction:
            return
        kill = self.plan[0]
        if self._armed is None:
            if any(query.in_flight for query in queries.values()) and self.driver.task_workers():
                self._armed = _Armed(at=now, written=self.written() if kill.aimed else 0)
            return
        if self._strike_at is None and (
            not kill.aimed or self._is_written_since(self._armed) or now >= self._armed.at + _AIM_AT_MOST_S
        ):
            self._strike_at = now + kill.delay_s
            now = self.clock()
        if self._strike_at is not None and now >= self._strike_at and self._strike(kill, queries, now):
            self._armed = self._strike_at = None

    def give_up(self) -> None:
        """Drop the kills that have not struck, but for one under way: there is no work left to strike."""
        if self.plan and self._frozen_worker is None and self._watched_worker is None:
            self.say(f"{len(self.plan)} kills did not strike: all flights were read before")
            self.plan.clear()

    def end(self) -> None:
        """Kill the zombies that are left."""
        for left in self._left:
            left.zombies.kill()
        self._left.clear()

    def _is_written_since(self, armed: _Armed) -> bool:
        """Look closely: a micro-batch is over soon after its rows are in the log."""
        return any(self.written() > armed.written >= 0 for _ in range(_CLOSE_LOOKS))

    def _strike(self, kill: Kill, queries: dict[str, QueryProgress], now: float) -> bool:
        """Kill; say whether there was something to kill."""
        during = _what_is_in_flight(queries)
        if kill.target is Target.WORKER:
            return self._freeze_a_worker(kill, during, now)
        self.plan.pop(0)
        self.struck[kill.target] += 1
        if kill.target is Target.BROKER:
            killed = self.broker.kill_one()
            self.broker_is_away = True
            self._broker_back_at = now + kill.rest_s
            self.say(f"kill -9 {killed}, {during}; away for {kill.rest_s:.1f} s")
            return True
        zombies = self.driver.kill_tree(freeze_workers=kill.frozen)
        self.driver.start()
        fate = "frozen until the next driver is at work" if kill.frozen else f"left for {kill.rest_s:.1f} s"
        self.say(f"kill -9 Spark driver, {during}; {len(zombies.workers)} Python workers {fate}")
        self._left.append(
            _Left(
                zombies=zombies,
                rest_s=kill.rest_s,
                kill_at=None if kill.frozen else now + kill.rest_s,
                thaw_at_latest=now + _THAW_AT_LATEST_S if kill.frozen else None,
                done_before=tuple(query.last_done for query in queries.values()),
            )
        )
        return True

    def _freeze_a_worker(self, kill: Kill, during: str, now: float) -> bool:
        workers = self.driver.task_workers()
        if not workers:
            return False
        victim = workers[int(kill.draw * len(workers))]
        with suppress(psutil.NoSuchProcess):
            victim.suspend()
        self.say(f"kill -9 Python worker {victim.pid}, frozen {during}")
        self._frozen_worker = victim, now + _FROZEN_BEFORE_KILL_S
        return True

    def _kill_the_frozen_worker(self, now: float) -> None:
        assert self._frozen_worker is not None
        victim, at = self._frozen_worker
        if now < at:
            return
        lost_before = self.driver.lost_tasks()
        with suppress(psutil.NoSuchProcess):
            victim.kill()
        self._frozen_worker = None
        self._watched_worker = lost_before, now + _LOST_TASK_WITHIN_S

    def _watch_worker(self, now: float) -> None:
        assert self._watched_worker is not None
        lost_before, until = self._watched_worker
        if self.driver.lost_tasks() > lost_before:
            self.struck[Target.WORKER] += 1
            self.plan.pop(0)
            self._watched_worker = None
        elif now > until or self.driver.exit_code() is not None:
            self.say("  it was idle: another one")
            self._watched_worker = None

    def _tend_zombies(self, queries: dict[str, QueryProgress], now: float) -> None:
        for left in list(self._left):
            if left.thaw_at_latest is not None:
                done = (query.last_done for query in queries.values())
                further = any(last > before for last, before in zip(done, left.done_before, strict=True))
                if further or now >= left.thaw_at_latest:
                    self.say(f"the dead driver's Python workers are thawed ({left.zombies.alive()} alive)")
                    left.zombies.thaw()
                    left.thaw_at_latest, left.kill_at = None, now + left.rest_s
            elif left.kill_at is not None and now >= left.kill_at:
                left.zombies.kill()
                self._left.remove(left)


def _what_is_in_flight(queries: dict[str, QueryProgress]) -> str:
    batches = [f"{name} #{query.last_planned}" for name, query in queries.items() if query.in_flight]
    return f"in micro-batch {' and '.join(batches)}" if batches else "between micro-batches"
