"""The single writer: decides commands in order, makes their events durable, and releases the answers.

Owns the one state, the order of commands, group commit, and the release of answers
(decision D4, `docs/explanation/architecture.md`). Knows no rule of the semantics (`core/`), no wire format, no file.

Theory of operation. A command is decided and applied the moment it arrives, on the event-loop thread: decide and append
are one step, and nothing can come in between. Its events join the group that gathers. When nothing is being written,
the group is handed to the journal at the end of the loop's present turn, so that whatever else has arrived goes along;
while one group is being synced, the next one gathers. A group that exactly one answer waits for is synced at once,
where the disk is quick (decision 0023). The state in memory is therefore ahead of what is durable, and an answer is
held back until the group that holds the state it was taken from is durable. Some answers come earlier
(`answers_ahead`). What readers see (`Visible`) is taken down when a group is sealed, and shown when it is durable.

Where others may append to the journal, an answer waits for a group that begins after its question came, and a group
without entries is confirmed. So a leader that was replaced tells nobody what holds no more (decision 0072). Such an
engine takes the lead of the log by its first event.

A failed or conflicting append, or a defect of ours, makes the state in memory worthless: the engine answers nobody any
more and says so once through `on_failure`. The caller must read what is really there, and `EngineFailed` says how.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from exacta.core.apply import apply
from exacta.core.commands import AppendBatch, Command, Parked, TakeLead
from exacta.core.decide import decide, undecided
from exacta.core.events import ConsumerConnected, Event
from exacta.core.ids import ConsumerId, PartitionId, Ticket
from exacta.core.outcome import Notice, Outcome
from exacta.core.rejections import Rejection
from exacta.core.snapshot import snapshot
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.engine.commit_group import NOTHING, SYNC, WRITE, Wait
from exacta.engine.deadlines import Deadlines
from exacta.engine.disk_room import RoomWatch
from exacta.engine.dispatch import Dispatcher
from exacta.engine.fetch import Fetcher
from exacta.engine.fetch_plan import LONG_FETCH
from exacta.engine.journal_writer import JournalWriter
from exacta.engine.log_reader import LogReader
from exacta.engine.lookups import JournalLookups
from exacta.engine.notices import Sinks
from exacta.engine.observer import Observer
from exacta.engine.present_state import PresentState
from exacta.engine.reading import BatchReader
from exacta.engine.recovery import Recovered, recover
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS, SnapshotSchedule
from exacta.engine.staged_batches import StreamsLetGo, held_for, with_bytes
from exacta.engine.timers import ENDINGS, Timers
from exacta.engine.upkeep import Schedule, Upkeep
from exacta.engine.visible import TOUCHES, Changes, show, visible_changes, visible_of
from exacta.ports.journal import Journal
from exacta.ports.log import Answer, DiskLevel, FetchRequest, FetchResult, OnAnswers, Sink, Visible
from exacta.ports.record_format import Buffer, RecordFormat
from exacta.ports.scheduler import Scheduler

T = TypeVar("T")


class EngineFailed(Exception):
    """The state in memory is worthless (a group was not taken, or a defect): drop the engine.

    With `another_may_lead` it is a journal's failure that others may append to: follow the log from what is there.
    Otherwise end the process and recover.
    """

    def __init__(self, reason: str, *, another_may_lead: bool = False) -> None:
        super().__init__(reason)
        self.another_may_lead = another_may_lead


class Engine:
    """The writer of one log. Implements `exacta.ports.log.Log`.

    Every method must be called on the event-loop thread. No method blocks, except to copy a small group, or for a quick
    sync that one answer waits for (decision 0023).
    """

    access_changed: Callable[[Event], None] = staticmethod(lambda event: None)

    def __init__(
        self,
        journal: Journal,
        records: RecordFormat,
        *,
        scheduler: Scheduler,
        clock: Callable[[], int],
        wait_clock: Callable[[], int] | None = None,
        limits: Limits,
        on_failure: Callable[[EngineFailed], None],
        schedule: Schedule | None = None,
        fold_every_ms: int = FOLD_EVERY_MS,
        recovered: Recovered | None = None,
        node_id: int = 0,
    ) -> None:
        """Recover from the journal, unless that is done. Blocks. Without a `schedule` everything is kept for ever.

        `clock` gives milliseconds since 1970, and never jumps while the engine lives (see `clock.Clock`). Fetches wait
        by `wait_clock`, or by the same. `fold_every_ms` is the shortest time between two snapshots. `node_id` is the
        broker that takes the lead, where others may append to the journal.

        Raises JournalError where the journal cannot be read, msgspec.DecodeError where its events are not ours.
        """
        self.failed: EngineFailed | None = None
        self._journal = journal
        self.scheduler = scheduler
        self._on_failure = on_failure
        self._first_group = 0 if journal.is_exclusive else 1
        """The group that nobody is served before: the one in which the lead is taken, if it must be taken."""
        self._parked: dict[Ticket, OnAnswers] = {}
        self._last_ticket = 0
        self._sinks = Sinks()
        self.owner_of: Callable[[str], str] = str

        journal.on_failure(lambda failed: self._fail(failed.reason, True))
        recovered = recovered or recover(journal, limits, clock)
        self._state, self._clock = recovered.state, recovered.clock
        self._visible: dict[PartitionId, Visible] = {}
        self._observer = Observer(self._state, lambda: self._writer.gathering.number, self._access_changed)
        self.counts = counts = self._observer.counts
        self.deadlines = Deadlines(scheduler, self._clock)
        self._timers = Timers(self.deadlines, lambda command: self.submit((command,), _nobody))
        self._let_go = StreamsLetGo(self._state)
        log = self._log = LogReader(journal, self._state.partitions)
        reader = BatchReader(log, records, scheduler)
        self._waits = Deadlines(scheduler, wait_clock or self._clock)
        self._fetcher = Fetcher(self._state, log, reader, self._visible, self._waits, counts, scheduler, self.confirm)
        self.dispatcher = Dispatcher(self._state, log, reader, records, self._visible, scheduler, self.submit, counts)
        self.advice = PresentState(self._state)
        self.lookups = JournalLookups(self._state, log, reader, records, self.visible)
        self._writer = self._make_writer(records, clock)
        self._folding = SnapshotSchedule(
            journal, self.deadlines, self._clock, self._snapshot_saved, every_ms=fold_every_ms
        )
        self._upkeep = None if schedule is None else self._make_upkeep(schedule, clock)
        self._room = self._make_room()
        self._begin(recovered, node_id)

    def _begin(self, recovered: Recovered, node_id: int) -> None:
        self._show(visible_changes(self._state, self._state.partitions))
        if not self._journal.is_exclusive:
            self.submit((TakeLead(node_id=node_id),), _nobody)
        for timer in recovered.timers:
            self._timers.set(timer)
        if recovered.fences:
            self.submit(recovered.fences, _nobody)
        self._room.start()

    def _make_room(self) -> RoomWatch:
        return RoomWatch(
            self._state,
            self._journal,
            self.deadlines,
            submit=lambda commands: self.submit(commands, _nobody),
            gathering_bytes=lambda: self._writer.gathering.payload_bytes,
        )

    def _make_writer(self, records: RecordFormat, marker_clock: Callable[[], int]) -> JournalWriter:
        return JournalWriter(
            self._state,
            self._journal,
            records,
            scheduler=self.scheduler,
            clock=self._clock,
            marker_clock=marker_clock,
            show=self._show_durable,
            advance=self._advance,
            is_awaited=self.dispatcher.is_awaited,
            fail=self._fail,
            counts=self.counts,
        )

    def _make_upkeep(self, schedule: Schedule, marker_clock: Callable[[], int]) -> Upkeep:
        upkeep = Upkeep(
            schedule,
            self._state,
            self._visible,
            reader=self._log,
            space=self._journal,
            let_go=self._let_go.needed,
            scheduler=self.scheduler,
            deadlines=self.deadlines,
            clock=self._clock,
            record_clock=schedule.record_clock or marker_clock,
            submit=lambda commands, done: self.submit(commands, _nobody if done is None else lambda _: done()),
            count=self.lookups.count_unaborted,
            fold_snapshot=self._folding.look,
            counts=self.counts,
        )
        upkeep.start()
        return upkeep

    # --- what the fronts ask ------------------------------------------------------------------------------------------

    def submit(
        self,
        commands: Sequence[Command],
        done: OnAnswers,
        payloads: Sequence[Buffer | None] | None = None,
        host: str = "",
    ) -> int:
        """See `Log.submit`."""
        if self.failed is not None:
            return 0
        now_ms, writer, owner = self._clock(), self._writer, self.owner_of(host)
        answers: list[Answer] = []
        woken: list[tuple[OnAnswers, Answer]] = []
        notices: list[tuple[Hashable, Notice]] = []
        waits_for: Wait = NOTHING
        try:
            for number, command in enumerate(commands):
                outcome = self._decide(command, now_ms, owner, is_awaited=done is not _nobody)
                wait = writer.ahead.wait_for(command, outcome, writer.gathering)
                if wait > waits_for:
                    waits_for = wait
                if wait is WRITE:
                    writer.want(wait)
                for event in outcome.events:
                    self._take(event, payloads[number] if payloads is not None else None, wait)
                for timer in outcome.timers:
                    self._timers.set(timer)
                if outcome.reply is None:
                    assert isinstance(command, Parked)
                    assert len(commands) == 1
                    self._parked[command.ticket] = done
                else:
                    answers.append(outcome.reply)
                    if type(outcome.reply) is Rejection:
                        self._observer.rejected(command, outcome.reply)
                if outcome.wakes:
                    woken += [(self._parked.pop(ticket), answer) for ticket, answer in outcome.wakes]
                if outcome.notices:
                    notices += outcome.notices
        except Exception as defect:
            # Memory may be ahead of what will ever be written: as worthless as after a failed append.
            self._fail(f"{type(commands[0]).__name__}: {defect!r}", False)
            raise
        for waiting, answer in woken:  # as late as the answer to the request that woke them
            writer.release(partial(waiting, [answer]), waits_for)
        rests_on = 0
        if len(answers) == len(commands) and done is not _nobody:
            rests_on = writer.release(partial(done, answers), waits_for)
        for key, notice in notices:
            if (tell := self._sinks.telling(key, notice)) is not None:
                writer.release(tell)
        return rests_on

    def _decide(self, command: Command, now_ms: int, owner: str, *, is_awaited: bool) -> Outcome:
        """Decide, or refuse where the memory does not suffice for that: nothing is written.

        What nobody would hear of is not refused: a timer that is lost is a promise broken.
        """
        try:
            outcome = decide(self._state, command, now_ms, owner)
        except MemoryError:
            if not is_awaited:
                raise
            return undecided(self._state, command)
        if outcome.reply is Rejection.DISK_FULL:
            assert isinstance(command, AppendBatch)
            self._room.refused(command.size)
        return outcome

    def would_refuse(self, command: Command, host: str = "") -> bool:
        """See `Log.would_refuse`."""
        return isinstance(decide(self._state, command, self._clock(), self.owner_of(host)).reply, Rejection)

    @property
    def disk_level(self) -> DiskLevel:
        """See `Log.disk_level`."""
        return self._room.level

    def new_ticket(self) -> Ticket:
        """See `Log.new_ticket`."""
        self._last_ticket += 1
        return Ticket(self._last_ticket)

    def new_consumer_id(self) -> ConsumerId:
        """See `Log.new_consumer_id`."""
        return self.dispatcher.new_consumer_id()

    def confirm(self, answer: Callable[[], None], is_shown: bool = False) -> int:
        """See `Log.confirm`."""
        if self.failed is not None:
            return 0
        if is_shown and self._journal.is_exclusive:
            answer()
            return 0
        return self._writer.release(answer)

    def catch_up(self, done: Callable[[], None]) -> None:
        """See `Log.catch_up`."""
        self.confirm(done, True)

    def read(self, view: Callable[[State, int], T], done: Callable[[T], None]) -> int:
        """See `Log.read`."""
        if self.failed is not None:
            return 0
        seen = view(self._state, self._clock())
        return self.confirm(lambda: done(seen))

    def view(self, view: Callable[[State, int], T]) -> T:
        """See `Log.view`."""
        return view(self._state, self._clock())

    def fetch(self, request: FetchRequest, done: Callable[[list[FetchResult]], None], after: int = 0) -> None:
        """See `Log.fetch`."""
        if self.failed is not None:
            return
        named: Iterable[tuple[str, int]] | None = ()
        if not request.read_committed:
            is_long = len(request.partitions) > LONG_FETCH
            named = None if is_long else ((each.topic, each.partition) for each in request.partitions)
        self._once_shown(named, lambda: self._fetcher.fetch(request, done), after or self._first_group)

    def hurry_fetch(self, request: FetchRequest) -> None:
        """See `Log.hurry_fetch`."""
        self._fetcher.hurry(request)

    def forget_fetch(self, request: FetchRequest) -> None:
        """See `Log.forget_fetch`."""
        self._fetcher.forget(request)

    def when_shown(
        self, partitions: Iterable[tuple[str, int]] | None, done: Callable[[], None], after: int = 0
    ) -> None:
        """See `Log.when_shown`."""
        if not self._journal.is_exclusive:
            self.confirm(done)  # nobody is acknowledged before the group is durable that holds the write
            return

        def confirm() -> None:
            self.confirm(done, True)

        self._once_shown(partitions, confirm, after)

    def _once_shown(self, partitions: Iterable[tuple[str, int]] | None, done: Callable[[], None], after: int) -> None:
        if after > self._writer.durable_number:
            self._writer.release(done)
            return
        written = self._writer.touched_ahead()
        found = (self._state.partition(*each) for each in partitions or ()) if written else ()
        if (partitions is None and written) or any(
            partition is not None and partition.partition_id in written for partition in found
        ):
            self._writer.release(done)
        else:
            done()

    def now_ms(self) -> int:
        """See `Log.now_ms`."""
        return self._clock()

    def clock_was_moved(self) -> None:
        """See `Log.clock_was_moved`."""
        self.deadlines.clock_was_moved()

    def visible(self, topic: str, partition: int) -> Visible | None:
        """See `Log.visible`."""
        entry = self._state.partition(topic, partition)
        return None if entry is None else self._visible.get(entry.partition_id)

    def visible_of(self, partition_ids: Iterable[PartitionId | None]) -> list[Visible | None]:
        """See `Log.visible_of`."""
        return visible_of(self._visible, partition_ids)

    def register_sink(self, key: Hashable, sink: Sink) -> None:
        """See `Log.register_sink`."""
        self._sinks.register(key, sink)

    def remove_sink(self, key: Hashable) -> None:
        """See `Log.remove_sink`."""
        self._sinks.remove(key)

    def close(self, done: Callable[[], None]) -> None:
        """Stop cleanly: answer waiting fetches, write what has gathered, save a snapshot; then call `done`.

        The journal is still open then. No command may be submitted any more, also after `abandon`.
        """

        def written() -> None:
            self._journal.save_snapshot(snapshot(self._state), self._journal.position)
            done()

        self._stop_timers()
        self._fetcher.finish()
        self._writer.close(written)

    def abandon(self) -> None:
        """Write nothing any more, and answer nobody."""
        self._sinks.clear()
        self._fetcher.abandon()
        self._stop_timers()
        self._writer.stop()

    # --- events and answers -------------------------------------------------------------------------------------------

    def _take(self, event: Event, payload: Buffer | None, wait: Wait) -> None:
        """Apply the event, and let it be written if it is durable."""
        gathering = self._writer.gathering
        if type(event) in TOUCHES:
            gathering.touched.update(TOUCHES[type(event)](self._state, event))
        if type(event) in ENDINGS:
            self._timers.drop_ended(event, self._state)
        if (hears := self._observer.hears.get(type(event))) is not None:
            hears(event)
        if self._state.volatile.deliveries or type(event) is ConsumerConnected:
            self.dispatcher.hear(event)
        event, held = with_bytes(event, payload), held_for(self._state, event)
        apply(self._state, event)
        self._let_go.note(gathering.number)
        if event.durable:
            gathering.add(event, payload, held)
            if wait is SYNC and gathering.waited_for is not SYNC:
                self._writer.want(wait)

    def _access_changed(self, event: Event) -> None:
        self.access_changed(event)

    def _advance(self, partition_ids: Sequence[PartitionId]) -> None:
        self._fetcher.advance(partition_ids)
        self.dispatcher.advance(partition_ids)

    def _show_durable(self, changes: Changes) -> None:
        self._show(changes)
        self._observer.tell(self._writer.durable_number)
        if self._let_go.settle(self._writer.durable_number) and self._upkeep is not None:
            self._upkeep.may_free()
        self._folding.look()
        self._room.look()

    def _show(self, changes: Changes) -> None:
        show(self._visible, changes)
        if self._upkeep is not None:
            for change in changes:
                self._upkeep.shown(*change)

    def _snapshot_saved(self) -> None:
        if self._upkeep is not None:
            self._upkeep.may_free()

    def _fail(self, reason: str, is_of_journal: bool) -> None:
        if self.failed is not None:
            return
        self.failed = EngineFailed(reason, another_may_lead=is_of_journal and not self._journal.is_exclusive)
        self.abandon()
        self._on_failure(self.failed)

    def _stop_timers(self) -> None:
        self.dispatcher.stop()
        self.deadlines.close()
        self._waits.close()
        self._folding.stop()
        self._room.stop()
        if self._upkeep is not None:
            self._upkeep.stop()


def _nobody(answers: list[Answer]) -> None:
    """Take answers that nobody waits for, such as those to timers."""
