"""A world of brokers with engines that share one log: a seed, and all that follows from it.

Clients submit the core's commands to whichever broker leads, while brokers are killed, paused and cut off, and the
database restarts and fails over. After every delivery each follower is compared with the one log, and so is each leader
at every group.

    python -m simulation.cluster.world [FIRST_SEED] [SEEDS]
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from exacta.adapters.clock import Clock
from exacta.adapters.shared.shared_log import Limits as LogLimits
from exacta.config.configuration import Configuration
from exacta.core.commands import CreateTopic
from exacta.core.values.transaction_buffer import SIDECAR, TRANSACTION_BUFFER
from exacta.engine.upkeep import Schedule
from exacta.server.assembly import upkeep_schedule
from simulation.chance import dice
from simulation.clock import WallClock
from simulation.cluster.broker import ClusterBroker
from simulation.cluster.clients import PROGRAMS, Client
from simulation.cluster.command import Outcome, Write, main
from simulation.cluster.durable_log import DurableLog
from simulation.cluster.log_world import silent_dead
from simulation.cluster.nemesis import Nemesis
from simulation.cluster.questions import Questions, Reading
from simulation.cluster.storage import SharedStorage
from simulation.cluster.told import Place, Told
from simulation.loop import NothingHappens, SimulatedLoop
from simulation.trace import Trace

FAULTY_SECONDS = (6.0, 16.0)
PATIENCE_SECONDS = 90.0
"""So long after the last fault all clients have their answers, and all brokers have followed the log."""
QUESTION_SECONDS = (0.005, 0.2)
LEADS_SECONDS = (0.5, 4.0)
LEADER_PAUSES_SECONDS = (1.0, 4.0)
"""The time that a paused leader stands still, in half of the worlds: mostly another leads when it wakes."""
MAX_VIOLATIONS = 10
SKEW_MS = 60_000
PLACES: list[Place] = [("t", 0), ("t", 1), ("s", 0)]
"""`t` is a marker topic, and `s` a sidecar topic."""


class Verdict(NamedTuple):
    """The result of a world."""

    seed: int
    violations: list[str]
    digest: str
    events: int
    counts: Counter[str]
    faults: Counter[str]


class ClusterWorld:
    """One world, run by `run`."""

    def __init__(self, seed: int, write: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.violations: list[str] = []
        self.loop = SimulatedLoop()
        self.trace = Trace(self.loop.time, write)
        chance = dice(seed, "cluster world")
        node_ids = range(1, 1 + chance.choice([2, 3, 3, 4]))
        self._clocks = {node_id: WallClock(self.loop) for node_id in node_ids}
        self._clock_chance = dice(seed, "clock")
        for clock in self._clocks.values():
            clock.skew_ms = self._clock_chance.randint(-SKEW_MS // 2, SKEW_MS // 2)
        self._database_clock = WallClock(self.loop)
        configuration = Configuration()
        limits = configuration.limits()
        self.log = DurableLog(limits, self.complain)
        self.told = Told(self.complain)
        self.storage = SharedStorage(
            self.loop, self.trace, dice(seed, "storage"), self._database_clock.now_ms, node_ids
        )
        self.log.durable_truly = self.storage.durable_position
        log_limits = LogLimits(
            segment_bytes=chance.choice([4_000, 20_000, 1 << 26]), snapshot_events=chance.choice([20, 200, 100_000])
        )
        upkeep_ms = chance.choice([300, 2_000, 15_000])

        def schedule(clock: Clock) -> Schedule:
            made = upkeep_schedule(configuration, record_clock=clock.least_ms)
            return replace(made, check_interval_ms=upkeep_ms, clean_interval_ms=upkeep_ms)

        self.brokers = {
            node_id: self._broker(node_id, log_limits, schedule, fold_every_ms=chance.choice([0, 1_000]))
            for node_id in node_ids
        }
        self.clients = [
            Client(
                f"{program.__name__}{number}",
                self.loop,
                dice(seed, "client", number),
                self.brokers,
                self.told,
                PLACES,
                self._database_clock.client_ms,
            )
            for number, program in enumerate(PROGRAMS)
        ]
        self.questions = Questions(dice(seed, "questions"), self.log, self.told, PLACES, self.complain)
        self._chance = chance
        self._nemesis = Nemesis(dice(seed, "nemesis"), self.loop, self.trace, self.storage, self.brokers, self._jump)

    def _broker(
        self, node_id: int, log_limits: LogLimits, schedule: Callable[[Clock], Schedule], fold_every_ms: int
    ) -> ClusterBroker:
        return ClusterBroker(
            node_id,
            self.loop,
            self.trace,
            dice(self.seed, "broker", node_id),
            self.storage,
            self.log,
            log_limits,
            self.complain,
            limits=self.log.state.limits,
            wall_ms=self._clocks[node_id].now_ms,
            schedule=schedule,
            fold_every_ms=fold_every_ms,
        )

    def complain(self, violation: str) -> None:
        """Note what must not be."""
        self.trace.note("violation", violation)
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(violation)

    def _jump(self, node_id: int) -> None:
        clock = self._clocks[node_id]
        clock.skew_ms = self._clock_chance.randint(-SKEW_MS // 2, SKEW_MS // 2)
        self.trace.fault("clock", node_id, clock.skew_ms)

    def run(self) -> Verdict:
        """Let it happen."""
        self.loop.set_exception_handler(lambda loop, context: self.complain(f"loop: {context}"))
        try:
            with silent_dead():
                self.loop.run_until_complete(self._plot())
                self.loop.close()
        except NothingHappens:
            self.complain("liveness: everybody waits for ever")
        counts = Counter(answers=self.told.answers, events=len(self.log.events)) + self.questions.counts
        for broker in self.brokers.values():
            counts += broker.counts
        return Verdict(self.seed, self.violations, self.trace.digest, len(self.log.events), counts, self.trace.faults)

    # --- the plot -----------------------------------------------------------------------------------------------------

    async def _plot(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        nemesis = self.loop.create_task(self._nemesis.run(self._chance.uniform(*FAULTY_SECONDS)))
        programs = self.loop.create_task(self._programs())
        asking = self.loop.create_task(self._keep_asking())
        pausing = self.loop.create_task(self._pause_leaders(nemesis))
        await self._until(nemesis.done, "the faults are over")
        for client in self.clients:
            client.is_over = True
        await self._until(programs.done, "all clients have their answers")
        await self._until(self._is_well, "all brokers have followed the log")
        for task in (asking, nemesis, pausing, programs):
            task.cancel()
        for failure in await asyncio.gather(asking, nemesis, pausing, programs, return_exceptions=True):
            if isinstance(failure, Exception):
                self.complain(f"a program failed: {failure!r}")
        await self._read_all()
        for broker in self.brokers.values():
            broker.kill()

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        end = self.loop.time() + PATIENCE_SECONDS
        while not self.violations and not is_so():
            if self.loop.time() > end:
                self.complain(f"liveness: it is not so that {what}")
            await asyncio.sleep(0.1)

    async def _programs(self) -> None:
        for topic, configs in (("t", {}), ("s", {TRANSACTION_BUFFER: SIDECAR})):
            made = CreateTopic(topic=topic, topic_id=topic.encode() * 16, partition_count=2, configs=configs)
            await self.clients[0].until_answered(made)
        await asyncio.gather(*(program(client) for program, client in zip(PROGRAMS, self.clients, strict=True)))

    async def _pause_leaders(self, nemesis: asyncio.Task[None]) -> None:
        pauses = self._chance.random() < 0.5
        while pauses and not nemesis.done():
            await asyncio.sleep(self._chance.uniform(*LEADS_SECONDS))
            leaders = [each for each in self.brokers.values() if each.engine is not None]
            if leaders and not nemesis.done():
                broker, seconds = self._chance.choice(leaders), self._chance.uniform(*LEADER_PAUSES_SECONDS)
                self.trace.fault("leader paused", broker.node_id, seconds)
                broker.pause(seconds)

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(*QUESTION_SECONDS))
            self.questions.ask(self._chance.choice(list(self.brokers.values())))

    def _is_well(self) -> bool:
        """Say whether one broker leads, and each has followed the log to its end."""
        brokers = self.brokers.values()
        positions = [each.reader.position for each in brokers if each.reader is not None]
        leaders = [each for each in brokers if each.engine is not None]
        return len(leaders) == 1 and len(positions) == len(brokers) and min(positions) == self.log.end

    async def _read_all(self) -> None:
        """Read all committed records at each broker, and hold each state against all invariants."""
        for broker in self.brokers.values():
            log, process = broker.engine or broker.replica, broker.process
            if self.violations or log is None or process is None:
                return
            found: asyncio.Future[dict[Place, list[tuple[int, bytes]]]] = self.loop.create_future()
            process.run(Reading(log, PLACES, found.set_result).go_on)
            await self._until(found.done, f"{broker.name} has read everything")
            if found.done():
                self.told.check_read(broker.name, found.result())
            if broker.replica is not None:
                self.log.check(broker.name, broker.replica.position, broker.replica._state)


def _outcome(seed: int, write: Write | None) -> Outcome:
    verdict = ClusterWorld(seed, write).run()
    return verdict.violations, verdict.counts, verdict.faults


if __name__ == "__main__":
    main(_outcome)
