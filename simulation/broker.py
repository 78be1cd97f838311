"""The broker in a world: its lives, one after another, on one disk.

Owns what `exacta.server` owns of a real one: recovery, connections, the end. A life ends by a kill (the machine lives
on), by the machine's stop (what no sync covered is lost, in part, or kept), by a failure of its disk, or cleanly.
"""

import random
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from exacta.adapters.clock import Clock
from exacta.config.configuration import Configuration
from exacta.core.commands import TakeLead
from exacta.core.ids import PartitionId
from exacta.core.values.limits import Limits
from exacta.engine.engine import EngineFailed
from exacta.engine.schema import SCHEMA
from exacta.front.broker import Broker as FrontBroker
from exacta.front.connection import FramedConnection
from exacta.front.doors import Door, Endpoint
from exacta.front.memory import Memory
from exacta.front.revocation import Revocation
from exacta.front.turns import TURN_SECONDS
from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.shared import KafkaShared
from exacta.ports.journal import Cleaned, Failed, JournalDamaged, JournalError
from exacta.ports.log import Form
from exacta.ports.record_format import Buffer
from exacta.pulsar.addresses import Addresses
from exacta.pulsar.connection import PulsarClientConnection
from exacta.pulsar.shared import PulsarShared
from exacta.records.pulsar_entries import delivery_facts, entry_of, is_entry
from exacta.server.advice import is_about_a_full_disk
from exacta.server.assembly import assemble_broker, assemble_engine, upkeep_schedule
from simulation.disk.in_place import InPlace
from simulation.disk.process_files import Plan, ProcessFiles
from simulation.disk.room import RoomWatched
from simulation.disk.simulated import UNBOUNDED, SimulatedDisk
from simulation.groups import GroupsTold
from simulation.ledger import Ledger
from simulation.loop import SimulatedLoop
from simulation.process import Process, ProcessKilled
from simulation.second_opinion import Steps
from simulation.trace import Trace
from simulation.watched_engine import Watch, WatchedEngine, WatchedJournal

RESTART_SECONDS = (0.05, 3.0)
LOOK_SECONDS = 1.0
"""The time between two looks of an operator whether a full disk has room again."""
DOOR = Door(front="kafka", name="PLAINTEXT", endpoint=Endpoint("broker", 9092))
PULSAR_DOOR = Door(front="pulsar", name="PULSAR", endpoint=Endpoint("broker", 6650))


class SeededEntropy:
    """See `exacta.ports.entropy.Entropy`; the seed decides all draws."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def new_uuid(self) -> uuid.UUID:
        """Return an id that is fresh in this world."""
        return uuid.UUID(int=self._chance.getrandbits(128), version=4)

    def below(self, bound: int) -> int:
        """Return a number from 0 on, and below `bound`."""
        return self._chance.randrange(bound)


class StepClock:
    """Each look at this clock costs a fifth of a turn, so that work in steps is interrupted in every world."""

    _now_s = 0.0

    def __call__(self) -> float:
        """Return the time, in seconds."""
        self._now_s += TURN_SECONDS / 5
        return self._now_s


class _Life:
    """The things that one process has in memory."""

    def __init__(self, process: Process, journal: WatchedJournal, engine: WatchedEngine, context: FrontBroker) -> None:
        self.process, self.journal, self.engine = process, journal, engine
        self.context = context
        self.kafka = KafkaShared(context)
        self.pulsar = PulsarShared(context, Addresses(broker=PULSAR_DOOR))
        self.pulsar.form = Form(self.pulsar.form.convert, facts_of)
        self.connections: list[FramedConnection] = []
        self.takes_requests = True
        self.revocation = Revocation(context, self.connections)
        self.revocation.start()

    def register(self, connection: FramedConnection) -> bool:
        """Let everybody in."""
        self.connections.append(connection)
        return True

    def forget(self, connection: FramedConnection) -> None:
        """Forget a connection that has ended."""
        if connection in self.connections:
            self.connections.remove(connection)
            self.revocation.left(connection)


class Broker:
    """All lives of the broker of one world."""

    _takes_lead = False
    """Says whether the present life has taken the lead of the log; every other one does."""

    def __init__(
        self,
        loop: SimulatedLoop,
        trace: Trace,
        chance: random.Random,
        plan: Plan,
        *,
        configuration: Configuration,
        limits: dict[str, int],
        segment_bytes: int,
        snapshot_events: int,
        fold_every_ms: int,
        clean_interval_ms: int,
        check_interval_ms: int,
        key_bytes: int,
        now_ms: Callable[[], int],
        job_seconds: Callable[[], float],
        elapsed_seconds: Callable[[], float],
        complain: Callable[[str], None],
        disk_bytes: int = UNBOUNDED,
    ) -> None:
        """Begin with an empty disk; one that has a size has a reserve, too."""
        self.disk = SimulatedDisk(disk_bytes)
        self.room = RoomWatched(self, loop, complain)
        self.life: _Life | None = None
        self.lives = 0
        self.cleanings = 0
        self.compactions = 0
        self.retentions = 0
        self.expiries = 0
        self.partly = 0
        self.staging: Counter[str] = Counter()
        """The things that became of staged streams, and their number."""
        self.stays_down = False
        self.on_death: Callable[[], None] = lambda: None
        self.ledger = Ledger(complain)
        self._shown: dict[PartitionId, tuple[int, int, int]] = {}
        self._groups = GroupsTold()
        self._loop = loop
        self._trace = trace
        self._chance = chance
        self._plan = plan
        self._configuration = configuration
        self.limits: Limits = replace(configuration.limits(), **limits)
        self._fold_every_ms = fold_every_ms
        self._sizes: dict[str, Any] = {"segment_bytes": segment_bytes, "snapshot_events": snapshot_events}
        self._key_bytes = key_bytes
        self._schedule = replace(
            upkeep_schedule(configuration),
            check_interval_ms=check_interval_ms,
            clean_interval_ms=clean_interval_ms,
            backlog_interval_ms=check_interval_ms,
        )
        self._now_ms = now_ms
        self._job_seconds = job_seconds
        self._elapsed_seconds = elapsed_seconds
        self._complain = complain
        self._process: Process | None = None
        self._machine_stopped = False

    # --- lives --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, and be there; or die of it, and try again later."""
        if self._process is not None and self._process.alive:
            return
        self.lives += 1
        self._trace.note("start", self.lives)
        process = self._process = Process(self._loop, self._complain)
        self.room.starts()
        files = ProcessFiles(self.disk, process, self._plan, self._trace)
        try:
            journal = WatchedJournal.open(
                files,
                process.call_soon,
                schema=SCHEMA,
                job_runner=InPlace(files, self._key_bytes),
                new_worker=process.worker(self._job_seconds),
                elapsed_seconds=self._elapsed_seconds,
                reserve_bytes=self.disk.size_of_all if self.room.is_bounded else 0,
                **self._sizes,
            )
            self._recover(process, journal)
        except ProcessKilled:
            process.kill()
            self._ended("it died while it recovered")
        except JournalDamaged as damage:
            self._complain(f"8: {damage}")
            self.stays_down = True
            self._ended("damage")
        except (JournalError, OSError) as error:
            self.room.failed_to_start(str(error))
            self._ended(str(error))
        else:
            self.room.has_started()

    def _recover(self, process: Process, journal: WatchedJournal) -> None:
        journal.ledger = self.ledger
        journal.on_cleaned = self._cleaned
        journal.on_compacted = self._compacted
        steps = Steps(self.limits, self._complain)
        clock = Clock(lambda: self._now_ms() / 1000, self._loop.time)
        watch = Watch(
            self.ledger,
            steps,
            self._complain,
            self._shown,
            self._groups,
            self._machine_stopped,
            clock.least_ms,
            self._retained,
            self._shown_in_part,
            self.staging.update,
            self._expired,
            self.room.has_refused,
        )
        try:
            engine = assemble_engine(
                journal,
                process,
                make=partial(WatchedEngine, watch),
                clock=clock.now_ms,
                limits=self.limits,
                on_failure=lambda failure: self._failed(process, failure),
                schedule=replace(self._schedule, record_clock=clock.least_ms),
                fold_every_ms=self._fold_every_ms,
            )
        except (JournalError, OSError):
            raise
        except Exception as defect:
            self._complain(f"8: recovery fails: {type(defect).__name__}: {defect}")
            self.stays_down = True
            raise ProcessKilled from defect
        self._machine_stopped = False
        context = assemble_broker(
            engine,
            self._configuration,
            cluster_id="simulated",
            entropy=SeededEntropy(self._chance),
            wall_clock=clock.wall_ms,
            memory=Memory(self._configuration, engine.scheduler, process.on_thread, StepClock()),
        )
        self._takes_lead = not self._takes_lead
        if self._takes_lead:  # as a broker among others would, before it serves anybody
            engine.submit((TakeLead(node_id=context.cluster.node_id),), lambda answers: None)
        self.life = _Life(process, journal, engine, context)

    def _cleaned(self, result: Cleaned | Failed) -> None:
        if isinstance(result, Failed):
            self._trace.note("not cleaned", result.reason)
        elif result.freed_bytes:
            self.cleanings += 1
            self._trace.note("cleaned", result.freed_bytes)

    def _compacted(self, failed: Failed | None) -> None:
        if failed is None:
            self.compactions += 1
            self._trace.note("compacted")
        else:
            self._trace.note("not compacted", failed.reason)

    def _retained(self) -> None:
        self.retentions += 1
        self._trace.note("retention")

    def _expired(self) -> None:
        self.expiries += 1
        self._trace.note("group expired")

    def _shown_in_part(self, count: int) -> None:
        self.partly += count

    def _failed(self, process: Process, failure: EngineFailed) -> None:
        if "did not take a group" not in str(failure):
            self._complain(f"the engine failed: {failure}")
        self._trace.note("failed", failure)
        self.room.failed(str(failure))
        process.kill()
        self._loop.call_soon(self._ended, str(failure))

    def _ended(self, why: str) -> None:
        """Clear away what the process left behind, and let it be started again."""
        self._trace.note("ended", why)
        if self._process is not None:
            self._process.kill()
        life, self.life = self.life, None
        self.disk.release()
        if life is not None:
            for connection in life.connections:
                connection.abort()
        self.on_death()
        if not self.stays_down:
            self._loop.call_later(self._chance.uniform(*RESTART_SECONDS), self._start_again, is_about_a_full_disk(why))

    def _start_again(self, was_full: bool) -> None:
        """Start as a supervisor does; after the end that a full disk has brought, an operator starts it (0051)."""
        if was_full and not self.room.has_been_made:
            self._loop.call_later(LOOK_SECONDS, self._start_again, True)
        else:
            self.start()

    def died(self) -> None:
        """Tell that the process was killed from within; the caller on its stack comes here later."""
        self._loop.call_soon(self._ended, "killed")

    def kill(self) -> None:
        """Kill it now, with signal 9."""
        if self._process is not None and self._process.alive and self.life is not None:
            self._process.kill()
            self._ended("killed")

    def stop_machine(self) -> None:
        """Cut the power now: the disk keeps what it keeps."""
        if self._process is not None:
            self._process.kill()
        self._cut_power()
        if self.life is not None:
            self._ended("the machine stopped")

    def _cut_power(self) -> None:
        chance, disk = self._chance, self.disk
        style = chance.choice(["lost", "kept", "prefix", "torn", "reordered"])
        share = {"lost": 0.0, "kept": 1.0, "torn": 0.9, "reordered": 0.5}.get(style, 0.0)
        keep_bytes = chance.randint(1, max(1, disk.unsynced_bytes())) if style == "prefix" else 0
        names = chance.randint(0, disk.unsynced_names)
        self._trace.note("power", style, disk.unsynced_changes(), names)
        self._machine_stopped = True
        self.disk = disk.crashed(
            keep_sector=lambda _: chance.random() < share,
            keep_bytes=keep_bytes,
            grow=chance.random() < 0.5,
            keep_names=names,
        )

    def machine_stops_within(self) -> None:
        """The power goes while the process is at work on the disk: the next one to ask kills it."""
        self._cut_power()
        self.died()

    def stop_cleanly(self) -> None:
        """Let it end as `exacta serve` does on SIGTERM."""
        life = self.life
        if life is None:
            return

        def closed() -> None:
            life.journal.close()
            self.ledger.durable(life.journal.position)
            life.process.kill()
            self._loop.call_soon(self._ended, "stopped")

        for connection in life.connections:
            connection.stop_taking_requests()
        life.takes_requests = False
        life.process.run(life.engine.close, closed)

    # --- connections --------------------------------------------------------------------------------------------------

    def accept(self) -> tuple[Process, KafkaClientConnection] | None:
        """Make the server's side of a connection; None: nobody listens."""
        life = self.life
        if life is None or not life.process.alive:
            return None
        loop = cast("Any", life.process)
        return life.process, KafkaClientConnection(life.kafka, DOOR, loop, life.register, life.forget)

    def accept_pulsar(self) -> tuple[Process, PulsarClientConnection] | None:
        """Make the server's side of a Pulsar connection; None: nobody listens."""
        life = self.life
        if life is None or not life.process.alive:
            return None
        loop = cast("Any", life.process)
        return life.process, PulsarClientConnection(life.pulsar, PULSAR_DOOR, loop, life.register, life.forget)


def facts_of(batch: Buffer) -> tuple[int, int]:
    """Return an entry's facts; for a batch of Kafka's one of three hashes, far apart, and for some a delay.

    They go by its header, also where it was converted: the offset comes first, and its last record's time at byte 35.
    """
    if is_entry(batch) and not entry_of(batch).metadata.producer_name.startswith("kafka"):
        return delivery_facts(batch)
    offset, time_ms = int.from_bytes(batch[:8], "big"), int.from_bytes(batch[35:43], "big", signed=True)
    return offset % 3 * 20_000, time_ms + 3_000 if offset % 4 == 1 else 0
