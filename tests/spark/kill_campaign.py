"""A streaming query under kill -9: a plan is carried out on real Spark and a real broker, and the rows are counted.

Owns the course of a campaign and its report. The plan is `kill_plan.py`, the victims are `lives.py` and a broker
process, the points are `faults.py`.

Theory of operation: one query copies an input topic, which is topped up for as long as there is something to kill. A
kill at a named point arms the fault; the process that comes to it stands still, and then the victim is killed, so that
the point is met however quick or slow the machine. Driver lives are dear, so most kills befall workers and brokers,
many in one life, and the next life stands by while one lasts. At the end the input is drained and every row's copies
are counted by an independent client.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil
from confluent_kafka import Producer

from exacta.demo.checkpoints import QueryProgress, read_progress
from exacta.demo.processes import Zombies
from exacta.demo.topics import Gauge
from tests.spark import faults
from tests.spark.clusters import Tally, new_topic, tally
from tests.spark.kill_plan import ANY_TIME, ROWS_IN_LOG, Kill, Victim
from tests.spark.lives import LOOK_EVERY_S, MASTER, Lives
from tests.spark.pipelines import Job

ROWS_IN_BATCH = 300
_STRIKES_WITHIN_S = 240.0
_DRAINED_WITHIN_S = 300.0
_SILENT = 0


class Broker(Protocol):
    """A broker, or brokers of which one at a time is killed."""

    bootstrap: str

    def kill(self) -> None:
        """Kill it."""

    def start(self) -> None:
        """Start what was killed again, and wait until it serves."""


# A dataclass, since `__post_init__` sets further attributes.
@dataclass
class Campaign:
    """One query, its victims and what became of them."""

    broker: Broker
    directory: Path
    kills: list[Kill]
    sink_format: str = "faulty"
    options: dict[str, str] = field(default_factory=dict)
    connection: dict[str, str] = field(default_factory=dict)  # options of reader and writer
    settings: dict[str, str] = field(default_factory=dict)  # of the Spark session
    master: str = MASTER
    kill_executor: Callable[[int], None] | None = None  # of a Python worker; on a cluster
    struck: Counter[tuple[Victim, str]] = field(default_factory=Counter)
    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)  # of queries, which were started again

    def __post_init__(self) -> None:
        bootstrap = self.broker.bootstrap
        self._faults = self.directory / "faults"
        self._faults.mkdir(parents=True)
        self._job = Job(
            bootstrap=bootstrap,
            source=new_topic(bootstrap, 2, "source"),
            sink=new_topic(bootstrap, 3, "sink"),
            checkpoint=str(self.directory / "checkpoint"),
            faults=str(self._faults),
            limit=ROWS_IN_BATCH,
            sink_format=self.sink_format,
            options=self.options,
            connection=self.connection,
        )
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": _SILENT})
        self._gauge = Gauge(bootstrap, [self._job.sink])
        deaths = sum(kill.ends_life for kill in self.kills)
        self._lives = Lives(self.directory, deaths=deaths, master=self.master, settings=self.settings)
        self._zombies: list[Zombies] = []

    def run(self) -> Tally:
        """Carry the plan out; return how often the rows are in the sink."""
        began = time.monotonic()
        try:
            self._life = self._lives.begin(self._job)
            for kill in self.kills:
                self._carry_out(kill)
            self._end_zombies()
            self._drain()
            assert self._life.stop(), f"the last life did not end well, see {self._life.log}"
        finally:
            self._lives.end()
            self._end_zombies()
            self._gauge.close()
            self.failures = self._lives.failures()
        self.batches = self._progress().last_done + 1
        self.seconds = time.monotonic() - began
        return tally(self.broker.bootstrap, self._job.sink, range(self.rows))

    def report(self, name: str, found: Tally) -> str:
        """Return what was killed where, and what came of it."""
        victims = [victim for victim in Victim if any(victim is struck for struck, _ in self.struck)]
        points = list(dict.fromkeys(point for _, point in self.struck))
        width = max(map(len, points), default=0)

        def line(head: str, cells: list[object]) -> str:
            return f"  {head:{width}}" + "".join(f"{cell or '–':>9}" for cell in cells)

        lines = [
            f"{name}: {self.struck.total()} kills in {self.seconds:.0f} s, {self.rows} rows in {self.batches} "
            f"micro-batches, {len(self.failures)} times a query failed and was started again",
            line("kill -9 at", [*victims]),
            *(line(point, [self.struck[victim, point] for victim in victims]) for point in points),
            line("in all", [sum(n for (v, _), n in self.struck.items() if v is victim) for victim in victims]),
            f"  rows lost {found.lost}, rows twice {found.twice}",
        ]
        return "\n".join(lines)

    # --- one kill -----------------------------------------------------------------------------------------------------

    def _carry_out(self, kill: Kill) -> None:
        """Bring the query to the kill's point, kill, and set right again what has died."""
        strike = self._reach(kill)
        self.struck[kill.victim, kill.point] += 1
        match kill.victim:
            case Victim.BROKER:
                self.broker.kill()
                self._release(strike)  # it meets a broker that is not there
                self.broker.start()
            case Victim.WORKER:
                assert strike is not None
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(strike.pid).kill()
            case Victim.EXECUTOR:
                assert strike is not None
                assert self.kill_executor is not None
                self.kill_executor(strike.pid)
            case Victim.SPARK:
                self._life.kill_tree(freeze_workers=False).kill()
            case Victim.DRIVER:
                self._zombies.append(self._life.kill_tree(freeze_workers=False))
                if not kill.late:
                    self._release(strike)
        if not kill.ends_life:
            return
        done = self._progress().last_done
        self._life = self._lives.begin(self._job)
        if kill.late:
            self._wait(lambda: self._progress().last_done > done, "the next life does a batch")
            self._release(strike)

    def _reach(self, kill: Kill) -> faults.Strike | None:
        """Wait until the query has come to the point; return who stands still there, if anyone does."""
        if kill.point in (ANY_TIME, ROWS_IN_LOG):
            before = self._progress().last_planned
            self._wait(lambda: self._progress().in_flight and self._progress().last_planned > before, "a new batch")
            if kill.point == ROWS_IN_LOG:
                written = self._gauge.offsets()
                self._wait(lambda: self._gauge.offsets() > written >= 0, "rows come into the log")
            strike_at = time.monotonic() + kill.delay_s
            self._wait(lambda: time.monotonic() >= strike_at, "the delay")
            return None
        before = len(faults.struck(self._faults))
        faults.arm(self._faults, kill.point, skip=kill.skip)
        self._wait(lambda: len(faults.struck(self._faults)) > before, f"the query comes to {kill.point!r}")
        return faults.struck(self._faults)[-1]

    def _release(self, strike: faults.Strike | None) -> None:
        if strike is not None:
            faults.release(self._faults, strike)

    def _end_zombies(self) -> None:
        for zombies in self._zombies:
            zombies.kill()
        self._zombies.clear()

    # --- the query ----------------------------------------------------------------------------------------------------

    def _wait(self, happened, what: str, within_s: float = _STRIKES_WITHIN_S) -> None:
        """Wait for an event while the query is kept at work."""
        deadline = time.monotonic() + within_s
        while not happened():
            self._life.check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_s:.0f} s: {what}; see {self._life.log}")
            self._top_up()
            time.sleep(LOOK_EVERY_S)

    def _top_up(self) -> None:
        """Keep a few batches of input ahead of the query."""
        if self.rows - self._progress().offsets_done < 2 * ROWS_IN_BATCH:
            self._produce(2 * ROWS_IN_BATCH)

    def _produce(self, count: int) -> None:
        for row in range(self.rows, self.rows + count):
            self._producer.produce(self._job.source, key=b"%d" % (row % 97), value=b"%d" % row)
        self.rows += count
        assert self._producer.flush(60) == 0, "the input is not acknowledged"

    def _drain(self) -> None:
        """Let the query write all that there is, and a batch more that sweeps what zombies may have opened."""
        faults.disarm(self._faults)
        self._produce(ROWS_IN_BATCH)
        deadline = time.monotonic() + _DRAINED_WITHIN_S
        while self._progress().in_flight or self._progress().offsets_done < self.rows:
            self._life.check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"the input is not drained within {_DRAINED_WITHIN_S:.0f} s; see {self._life.log}")
            time.sleep(LOOK_EVERY_S)

    def _progress(self) -> QueryProgress:
        return read_progress(Path(self._job.checkpoint))
