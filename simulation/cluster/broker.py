"""One broker of a world with the product's own engine: it follows by a replica, and leads by an engine.

It does what `exacta.server.cluster` does of a real one: what follows, what leads, and what begins again after a failure
is put together as there. It has no fronts. Clients reach the log itself (`clients.py`).
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from exacta.adapters.clock import Clock
from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.journal import SharedJournal
from exacta.adapters.shared.shared_log import Limits as LogLimits
from exacta.core.commands import Command
from exacta.core.values.limits import Limits
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.recovery import replay
from exacta.engine.replica import Replica
from exacta.engine.upkeep import Schedule
from exacta.ports.following import Delivered
from exacta.ports.journal import AppendResult, Failed, GroupAppended, JournalEntries
from exacta.ports.log import OnAnswers
from exacta.records.record_format import KafkaRecordFormat
from exacta.server.assembly import assemble_engine
from simulation.cluster.durable_log import DurableLog
from simulation.cluster.lives import Lives
from simulation.cluster.storage import SharedStorage
from simulation.loop import SimulatedLoop
from simulation.trace import Trace


class WatchedReplica(Replica):
    """A replica that is looked at after each delivery."""

    def __init__(self, took: Callable[[int, Delivered], None], *args: Any, **options: Any) -> None:
        self._took = took
        super().__init__(*args, **options)

    def take(self, delivered: Delivered) -> None:
        """See `Replica.take`."""
        before = self.position
        super().take(delivered)
        if self.position == delivered.position:
            self._took(before, delivered)


class ClusterBroker(Lives):
    """One broker; `start` begins a process, `kill` ends it."""

    def __init__(
        self,
        node_id: int,
        loop: SimulatedLoop,
        trace: Trace,
        chance: random.Random,
        storage: SharedStorage,
        log: DurableLog,
        log_limits: LogLimits,
        complain: Callable[[str], None],
        *,
        limits: Limits,
        wall_ms: Callable[[], int],
        schedule: Callable[[Clock], Schedule],
        fold_every_ms: int,
    ) -> None:
        super().__init__(node_id, loop, trace, chance, storage, log_limits, complain)
        self.engine: Engine | None = None
        self.replica: Replica | None = None
        self.end = 0
        """The end of what the state in memory has, durable or not."""
        self._log = log
        self._engine_limits = limits
        self._wall_ms = wall_ms
        self._schedule = schedule
        self._fold_every_ms = fold_every_ms
        self._clock = Clock(lambda: wall_ms() / 1000, loop.time)
        self._follower: SharedFollower | None = None
        self._journal: SharedJournal | None = None

    def start(self) -> None:
        """See `Lives.start`; the machine's clock may have been set meanwhile."""
        self._clock = Clock(lambda: self._wall_ms() / 1000, self._loop.time)
        super().start()

    def _forget(self) -> None:
        """See `Lives`."""
        if self.engine is not None:
            self.engine.abandon()
        if self.replica is not None:
            self.replica.abandon()
        self.engine = self.replica = None
        self._journal = self._follower = None

    @property
    def reader(self) -> SharedFollower | SharedJournal | None:
        """The follower or the journal by which the log is read now."""
        return self._journal or self._follower

    # --- following ----------------------------------------------------------------------------------------------------

    def _follow(self, follower: SharedFollower) -> None:
        """See `Lives`."""
        process = self.process
        assert process is not None
        self._follower = follower
        blob, found = follower.begin()
        events = list(found)
        replayed = replay(lambda: (blob, iter(events)), self._engine_limits)
        self._log.begins(self.name, follower.position, events, replayed.state)
        self._trace.note("follows", self.name, follower.position)
        self.replica = WatchedReplica(
            self._took,
            follower,
            KafkaRecordFormat(),
            scheduler=process,
            clock=self._clock.now_ms,
            wait_clock=self._clock.wait_ms,
            limits=self._engine_limits,
            on_failure=self._failed,
            replayed=replayed,
        )
        follower.lead(self._led)

    def _took(self, begin: int, delivered: Delivered) -> None:
        replica = self.replica
        assert replica is not None
        self.counts["delivered"] += 1
        self._trace.note("delivered", self.name, delivered.position, len(delivered.events))
        self._log.grows(self.name, begin, delivered.position, delivered.events)
        self._log.compare(self.name, delivered.position, replica._state, replica._visible)

    def _failed(self, failure: EngineFailed) -> None:
        if not failure.another_may_lead:
            self._complain(f"{self.name} has failed: {failure}")
        reader = self.reader
        if reader is not None:
            reader.close()
            self._begin_again(str(failure))

    # --- leading ------------------------------------------------------------------------------------------------------

    def _led(self, journal: SharedJournal | Failed) -> None:
        if isinstance(journal, Failed):
            self._failed(EngineFailed(journal.reason, another_may_lead=True))
            return
        process, replica = self.process, self.replica
        assert process is not None
        assert replica is not None
        self._trace.note("leads", self.name, journal.epoch, journal.position)
        self.counts["led"] += 1
        if journal.position != self._log.end:
            self._complain(f"lost: {self.name} leads from {journal.position}, and {self._log.end} was durable")
        self._journal, self.replica = journal, None
        self.end = journal.position
        journal.append = partial(self._append, journal, journal.append)  # type: ignore[method-assign]
        self.engine = assemble_engine(
            journal,
            process,
            clock=self._clock.now_ms,
            wait_clock=self._clock.wait_ms,
            limits=self._engine_limits,
            on_failure=self._failed,
            schedule=self._schedule(self._clock),
            fold_every_ms=self._fold_every_ms,
            recovered=replica.hand_over(journal),
            node_id=self.node_id,
        )

    def submit(self, engine: Engine, command: Command, payload: bytes | None, done: OnAnswers) -> None:
        """Let an engine that has led, and maybe leads no more, decide a command; it must know before it answers."""
        epoch, name = engine._state.leader_epoch, self.name
        is_replaced = self._log.state.leader_epoch > epoch

        def answered(answers: list[Any]) -> None:
            if is_replaced:
                self._complain(f"replaced: {name} answers {type(command).__name__}, asked when another led already")
            done(answers)

        engine.submit((command,), answered, [payload])

    def _append(
        self,
        journal: SharedJournal,
        append: Callable[[int, JournalEntries, Callable[[AppendResult], None]], int],
        begin: int,
        entries: JournalEntries,
        done: Callable[[AppendResult], None],
    ) -> int:
        engine = self.engine
        events: Sequence[bytes] = [bytes(entry.event) for entry in entries]
        assert engine is not None

        def told(result: AppendResult) -> None:
            if isinstance(result, GroupAppended):
                self.counts["appended"] += 1
                self._log.grows(self.name, begin, result.position, events)
            done(result)
            if isinstance(result, GroupAppended) and engine.failed is None:
                self._look(engine, result.position)

        self.end = append(begin, entries, told)
        self._log.try_to_append(self.name, begin, self.end, events, engine._state)
        return self.end

    def _look(self, engine: Engine, end: int) -> None:
        self._log.compare_seen(self.name, end, engine._visible)
