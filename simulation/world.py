"""One world: a seed, and all that follows from it.

Owns the composition and the plot. Clients work while the nemesis injects faults; then all is well again, and within
bounded time everybody must have ended what was begun, and no transaction may hold readers back. Then everything is
read, once more after a last end of the broker, and the history is analysed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from exacta.adapters.local.space.compaction_writer import KEY_BYTES
from exacta.config.options import configure
from exacta.core.values.transaction_buffer import SIDECAR
from exacta.ports.compaction import BYTES_PER_KEY
from exacta.protocol.kafka.errors import ErrorCode
from simulation.analysis import anomalies
from simulation.analysis_sidecar import entered_records
from simulation.broker import Broker
from simulation.cast import SHORT, Cast
from simulation.chance import dice
from simulation.clients.admin import TOPICS, create, intrude
from simulation.clients.connection import Disconnected
from simulation.clients.keeper import look_at_rules, options_with_a_keeper
from simulation.clients.offsets import look_at_offsets
from simulation.clients.operator import look_at_options
from simulation.clients.pipeline import INPUTS, SESSION_MS, offset_request, offsets_in
from simulation.clients.pulsar_reading import read_everything_by_pulsar
from simulation.clients.reading import read_everything
from simulation.clients.surroundings import Surroundings
from simulation.clock import WallClock, elapsed_by_chance
from simulation.disk.faults import DiskFaults
from simulation.history import History
from simulation.late_requests import Late
from simulation.loop import NothingHappens, SimulatedLoop
from simulation.nemesis import Nemesis
from simulation.network import Network
from simulation.policies import (
    FEW_STAGED_BYTES,
    FOR_EVER_MS,
    draw,
    draw_backlogs,
    draw_buffers,
    draw_disk,
    draw_expiry,
    draw_staging_limits,
)
from simulation.trace import Trace

FAULTY_SECONDS = (15.0, 60.0)
PATIENCE_SECONDS = 300.0
"""So long after the last fault a client may take to end what it has begun, whatever the clocks were set to."""
MAX_VIOLATIONS = 20
EXCUSED = ("nothing more is cleaned", "the disk is full")
"""The words that begin the errors which are logged for the disk's sake and not for a defect."""
FEW_KEYS = 20
"""This many records are compacted at a time in half of the worlds, hence in several passes."""


class Verdict(NamedTuple):
    """The result of a world."""

    seed: int
    violations: list[str]
    digest: str
    virtual_seconds: float
    faults: Counter[str]
    lives: int
    cleanings: int
    compactions: int
    retentions: int
    expiries: int
    """Groups that were forgotten because nobody used them."""
    options: int
    """Changes of the broker's options that were acknowledged."""
    partly: int
    """Committed transactions that readers were shown in part while an older one was open."""
    staging: Counter[str]
    """The things that became of staged streams, and their number."""
    acknowledged: int
    last_lines: list[str]
    full_disk: Counter[str]
    """The things that a full disk has brought, and their number."""


FEW_HANDLES = 6
"""The bound on handles: from half of it on, a handle that was left makes room for a new one."""


class World:
    """One world, run by `run`."""

    def __init__(self, seed: int, write: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.violations: list[str] = []
        self.history = History()
        self.loop = SimulatedLoop()
        self.trace = Trace(self.loop.time, write)
        self._clock = WallClock(self.loop)
        chance = dice(seed, "world")
        self._chance = chance
        self._disk = DiskFaults(self.trace, dice(seed, "disk"))
        limits = {
            "highest_epoch": chance.choice([3, 6, 32766, 32766]),
            "group_consumer_session_timeout_ms": SESSION_MS,
            "max_participants_per_handle": dice(seed, "participants").choice([3, *[20_000] * 7]),
            "max_open_handles": dice(seed, "handles").choice([FEW_HANDLES, *[10_000] * 5]),
            **draw_staging_limits(dice(seed, "staging")),
            **draw_expiry(dice(seed, "expiries")),
            "max_acknowledged_runs": dice(seed, "runs").choice([2, *[10_000] * 3]),
        }
        if "offsets_retention_ms" in limits:
            self.history.retention_seconds = limits["offsets_retention_ms"] / 1_000
        self.history.few_handles = limits["max_open_handles"] == FEW_HANDLES
        self.history.may_be_full = limits["max_staged_bytes"] == FEW_STAGED_BYTES
        self.broker = Broker(
            self.loop,
            self.trace,
            dice(seed, "broker"),
            self._disk,
            configuration=configure({"transaction.sync.every.write": False} | options_with_a_keeper(seed)),
            limits=limits,
            segment_bytes=chance.choice([2_000, 10_000, 1 << 20]),
            snapshot_events=chance.choice([20, 200, 100_000]),
            fold_every_ms=dice(seed, "folds").choice([0, 100, 5_000]),
            clean_interval_ms=chance.choice([100, 1_000, 15_000]),
            check_interval_ms=chance.choice([200, 1_000]),
            key_bytes=chance.choice([FEW_KEYS * BYTES_PER_KEY, KEY_BYTES]),
            now_ms=self._clock.now_ms,
            job_seconds=self._disk.job_seconds,
            elapsed_seconds=elapsed_by_chance(dice(seed, "pace")),
            complain=self.complain,
            disk_bytes=draw_disk(dice(seed, "small disk")),
        )
        self.history.disk_fills = self.broker.room.is_bounded
        self._policies = draw(dice(seed, "policies"))
        self._policies["aging"] |= draw_backlogs(dice(seed, "backlogs"), self._policies["aging"])
        for topic, buffer in draw_buffers(dice(seed, "buffers"), TOPICS).items():
            self._policies.setdefault(topic, {}).update(buffer)
            self.history.buffers[topic] = {SIDECAR}
        self._disk.on_end = self._ends
        self._network = Network(self.loop, self.trace, dice(seed, "network"), self.broker)
        self._late = Late(self.loop, self.trace, dice(seed, "late"), self._network, self.broker)
        self._cast = Cast(
            seed,
            chance,
            self.loop,
            self.trace,
            self.broker,
            self._network,
            self._late,
            self.history,
            self._clock.client_ms,
            self.complain,
            lambda: bool(self.violations),
        )
        self._nemesis = Nemesis(
            dice(seed, "nemesis"),
            self.trace,
            self.broker,
            self._disk,
            self._network,
            self._late,
            self._clock,
            self._cast.crash_one,
            self._cast.begin_a_second,
        )
        self._faulty_seconds = chance.uniform(*FAULTY_SECONDS)

    def complain(self, violation: str) -> None:
        """Note what must not be."""
        self.trace.note("violation", violation)
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(violation)

    def _ends(self, kind: str) -> None:
        if kind == "power":
            self.broker.machine_stops_within()
        else:
            self.broker.died()

    # --- the plot -----------------------------------------------------------------------------------------------------

    def run(self) -> Verdict:
        """Let it happen."""
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(lambda loop, context: self.complain(f"loop: {context}"))
        try:
            with _logged_errors(self.complain):
                self.broker.start()
                self.loop.run_until_complete(self._plot())
        except NothingHappens:
            self.complain("liveness: everybody waits for ever")
        except Exception as defect:  # noqa: BLE001  # a client that cannot read what it gets, for one
            self.complain(f"a client failed: {type(defect).__name__}: {defect}")
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()
            asyncio.set_event_loop(None)
        acknowledged = sum(len(writing.acknowledged) for writing in self.history.writings.values())
        return Verdict(
            self.seed,
            self.violations,
            self.trace.digest,
            self.loop.time(),
            self.trace.faults,
            self.broker.lives,
            self.broker.cleanings,
            self.broker.compactions,
            self.broker.retentions,
            self.broker.expiries,
            self.history.options_altered,
            self.broker.partly,
            self.broker.staging,
            acknowledged,
            list(self.trace.last_lines),
            self.broker.room.counts,
        )

    async def _plot(self) -> None:
        await create(self._cast.surroundings("maker", [], 0), TOPICS, self._policies)
        for name in self._cast.clients:
            self._cast.begin(name)
        nemesis = self.loop.create_task(self._nemesis.run())
        await self._until(lambda: bool(self.violations), self._faulty_seconds)
        self._nemesis.stop()
        nemesis.cancel()
        self.trace.note("all is well")
        await asyncio.sleep(10.0)
        self._cast.is_over = True
        patience = PATIENCE_SECONDS
        await self._until(lambda: not self._cast.tasks or bool(self.violations), patience)
        if self.violations:
            return
        if self._cast.tasks:
            self.complain(f"liveness: after {patience:.0f} s {sorted(self._cast.tasks)} have not ended")
            return
        here = self._cast.surroundings("last", [(name, k) for name, n in TOPICS.items() for k in range(n)], 0)
        await self._until_nothing_is_open()
        if not self.violations and (told := await intrude(here)) is not ErrorCode.INVALID_TOPIC_EXCEPTION:
            self.complain(f"internal topics: a write was answered {told.name}")
        await self._last_end()
        try:
            if not self.violations:
                await asyncio.wait_for(self._read(here), PATIENCE_SECONDS)
        except TimeoutError:
            self.complain(f"liveness: in {PATIENCE_SECONDS:.0f} s nobody could read everything")
        for anomaly in [] if self.violations else anomalies(self.history):
            self.complain(anomaly)

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        end = self.loop.time() + seconds
        while not done() and self.loop.time() < end:
            await asyncio.sleep(0.1)

    async def _until_nothing_is_open(self) -> None:
        end = self.loop.time() + PATIENCE_SECONDS
        while self.loop.time() < end and not self.violations:
            life = self.broker.life
            if life is not None:
                partitions = life.engine._state.partitions.values()
                if not any(each.open_transactions or each.staged for each in partitions):
                    return
            await asyncio.sleep(20.0)
        if not self.violations:
            self.complain("liveness: a transaction is open that nobody ends")

    async def _last_end(self) -> None:
        broker = self.broker
        ends: list[Callable[[], None]] = [broker.kill, broker.stop_machine, broker.stop_cleanly]
        end = self._chance.choice(ends)
        before = self.broker.lives
        if self.broker.life is not None:
            end()
        await self._until(lambda: self.broker.life is not None and self.broker.lives > before, PATIENCE_SECONDS)
        await asyncio.sleep(1.0)

    async def _read(self, here: Surroundings) -> None:
        here.places.remove(SHORT[0])
        await read_everything(here)
        await read_everything_by_pulsar(here, self._network)
        await look_at_offsets(here)
        await look_at_options(here)
        await look_at_rules(here)
        self._note_what_was_written()
        self.history.pipeline_inputs.update(INPUTS)
        while True:
            try:
                found = offsets_in(await here.connection.ask(offset_request(INPUTS), 7))
            except Disconnected:
                found = None
            if found is not None:
                self.history.committed_offsets.update(found)
                break
            await here.connection.back_off()
        if self.broker.life is not None:
            self.broker.life.engine.look(whole=True)

    def _note_what_was_written(self) -> None:
        """Let the history know all of what was compacted, and where what was staged has entered."""
        life = self.broker.life
        assert life is not None
        state, batches = life.engine._state, self.broker.ledger.batches
        for partition_id, entered in entered_records(self.broker.ledger.events).items():
            if partition_id in state.partitions:
                partition = state.partitions[partition_id]
                self.history.entered[partition.topic, partition.index] = entered
        for topic, policy in self._policies.items():
            if "compact" not in policy.get("cleanup.policy", ""):
                continue
            for index, partition_id in enumerate(state.topics[topic].partition_ids):
                end_offset = state.partitions[partition_id].next_offset
                self.history.written[topic, index] = batches.partition(partition_id, end_offset)
                if int(policy["delete.retention.ms"]) == FOR_EVER_MS:
                    self.history.tombstones_stay.add((topic, index))


class _Errors(logging.Handler):
    def __init__(self, complain: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._complain = complain

    def emit(self, record: logging.LogRecord) -> None:
        trouble = record.exc_info[1] if record.exc_info else None
        if not record.getMessage().startswith(EXCUSED):
            self._complain(f"logged: {record.getMessage()}: {trouble!r}")


@contextmanager
def _logged_errors(complain: Callable[[str], None]) -> Iterator[None]:
    """Take errors that the broker logs for violations: a defect in one handler ends one connection, and no more."""
    logger, handler = logging.getLogger("exacta"), _Errors(complain)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
