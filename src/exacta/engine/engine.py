"""The single writer (DESIGN D4).

Owns the one state, the order of commands, group commit, the release of answers, deadlines, and recovery. Knows no rule
of the semantics (`core/`), no wire format, no file.

Theory of operation. A command is decided and applied the moment it arrives, on the event-loop thread: decide and append
are one step, and nothing can come in between. Its events join the group that gathers. When nothing is being written,
the group is handed to the journal at the end of the loop's present turn, so that whatever else has arrived goes along;
while one group is being synced, the next one gathers. A group that only one waits for is synced at once, where the disk
is quick. The state in memory is therefore ahead of what is durable, and every answer is held back until the group that
holds the state it was taken from is durable. What readers see (`Visible`) is taken down when a group is sealed, and
shown when it is durable.

Some answers come earlier. What is written into an open transaction promises nothing before that ends, and its end waits
for all before it; nor does its begin. So where nothing else has gathered, the group is only written, ahead of its sync,
which comes with the next group that is waited for, or after `SYNC_WITHIN_MS`. A process that dies loses nothing by
that. A machine that stops may: then recovery aborts the transactions that it finds open, before anybody can end them,
and fences the producers that it has heard of last. So a transaction's first writes wait for the sync that makes its
begin durable (`_begun`), unless its producer is one of those (`core.loss`).

A failed or conflicting append, or a defect of ours, makes the state in memory worthless: the engine answers nobody any
more and says so once through `on_failure`; the process must stop, and recovery reads what is really there.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeVar

from exacta.core.apply import apply
from exacta.core.commands import Command, ExpireTransaction, JoinGroup, SyncGroup
from exacta.core.decide import decide
from exacta.core.events import Event, TopicDeleted, TransactionBegun, TransactionEnded
from exacta.core.ids import PartitionId, Ticket, TransactionId
from exacta.core.outcome import Outcome, Timer
from exacta.core.rejections import Rejection
from exacta.core.replies import Reply
from exacta.core.snapshot import after_recovery, replayed, snapshot
from exacta.core.state.limits import Limits
from exacta.core.state.state import State
from exacta.core.transactions.expiry import latest_noted_ms, timers_after_recovery
from exacta.core.transactions.loss import fences_after_loss, may_begin_unseen
from exacta.engine.commit_group import CommitGroup
from exacta.engine.deadlines import Deadline, Deadlines
from exacta.engine.durability import WAITS, WRITTEN
from exacta.engine.fetch import Fetcher, FetchRequest, FetchResult
from exacta.engine.lookups import Lookups
from exacta.engine.reading import BatchReader
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS, Folding
from exacta.engine.upkeep import Schedule, Upkeep
from exacta.engine.visible import Changes, Visible, visible_changes
from exacta.ports.journal import Appended, AppendResult, Failed, Journal
from exacta.ports.record_format import Buffer, RecordFormat
from exacta.ports.scheduler import Scheduler, TimerHandle

SYNC_WITHIN_MS = 20
"""For so long readers of uncommitted records may not see what is written into an open transaction."""

logger = logging.getLogger(__name__)

T = TypeVar("T")
Answer = Reply | Rejection
Done = Callable[[list[Answer]], None]


class EngineFailed(Exception):
    """Nothing in memory can be trusted any more (a group was not taken, or a defect): end the process and recover."""


class Engine:
    """One log. Every method must be called on the event-loop thread.

    None blocks, but to copy a small group, or for a quick sync that only one waits for (D4, decision 0023).
    """

    def __init__(
        self,
        journal: Journal,
        records: RecordFormat,
        *,
        scheduler: Scheduler,
        clock: Callable[[], int],
        limits: Limits,
        on_failure: Callable[[EngineFailed], None],
        schedule: Schedule | None = None,
        fold_every_ms: int = FOLD_EVERY_MS,
    ) -> None:
        """Recover from the journal. Blocks. No `schedule`: all is kept for ever. See `Folding` for `fold_every_ms`.

        `clock` gives milliseconds since 1970, and never jumps while the engine lives (see `clock.Clock`).

        Raises JournalError where the journal cannot be read, msgspec.DecodeError where its events are not ours.
        """
        self.failed: EngineFailed | None = None
        self._journal = journal
        self._records = records
        self.scheduler = self._scheduler = scheduler
        self._clock = self._marker_clock = clock
        self._on_failure = on_failure
        self._gathering = CommitGroup(1)
        self._in_flight: CommitGroup | None = None
        self._durable_number = 0
        self._begun: dict[TransactionId, int] = {}
        """Open transactions, and the number of the group that must be durable before a write into them is answered.

        0: none must.
        """
        self._unsynced: set[PartitionId] | None = None
        """What is touched by groups that are written, and neither durable nor in flight; None: there are none."""
        self._unsynced_since_ms = 0
        self._sync_timer: TimerHandle | None = None
        self._changes: Changes = []
        self._flush_scheduled = False
        self._parked: dict[Ticket, Done] = {}
        self._last_ticket = 0
        self._timers: dict[Command, Deadline] = {}
        self._closing: Callable[[], None] | None = None

        journal.watch(lambda damage: self._fail(damage.reason))
        blob, events = journal.replay()
        self._state = replayed(blob, events, limits)
        after_recovery(self._state, may_have_forgotten=journal.may_have_lost)
        if (behind_ms := latest_noted_ms(self._state) - clock()) > 0:
            logger.warning("the machine's clock is %d seconds behind what was noted earlier", behind_ms // 1000)
            clock = self._clock = _ahead(clock, behind_ms)
        self._begun.update(dict.fromkeys(self._state.transactions, self._durable_number))
        self._visible: dict[PartitionId, Visible] = {}
        self._deadlines = Deadlines(scheduler, clock)
        self._folding = Folding(journal, self._deadlines, clock, self._snapshot_saved, every_ms=fold_every_ms)
        self._upkeep = None if schedule is None else self._make_upkeep(schedule)
        self._show(visible_changes(self._state, self._state.partitions))
        reader = BatchReader(journal, records, scheduler)
        self._fetcher = Fetcher(self._state, journal, reader, self._visible, self._deadlines)
        self.lookups = Lookups(self._state, journal, reader, self.visible)
        for timer in timers_after_recovery(self._state, clock()):
            self._set(timer)
        if journal.may_have_lost and (fences := fences_after_loss(self._state)):
            logger.warning(
                "the machine stopped, and may have lost writes: %d transactional producers are fenced, their open "
                "transactions aborted",
                len(fences),
            )
            self.submit(fences, _nobody)

    def _make_upkeep(self, schedule: Schedule) -> Upkeep:
        upkeep = Upkeep(
            schedule,
            self._state,
            self._visible,
            self._journal,
            scheduler=self._scheduler,
            deadlines=self._deadlines,
            clock=self._clock,
            record_clock=schedule.record_clock or self._marker_clock,
            submit=lambda commands, done: self.submit(commands, _nobody if done is None else lambda _: done()),
            fold_snapshot=self._folding.look,
        )
        upkeep.start()
        return upkeep

    # --- what the fronts ask ------------------------------------------------------------------------------------------

    def submit(self, commands: Sequence[Command], done: Done, payloads: Sequence[Buffer | None] | None = None) -> None:
        """Decide the commands in order, in one step; `done` gets one answer for each once all may be known.

        `payloads` holds, for each AppendBatch, the batch as received and validated, unchanged until `done`.
        JoinGroup and SyncGroup come alone, with a ticket from `new_ticket`. `done` may be called before this returns.
        """
        if self.failed is not None:
            return
        now_ms = self._clock()
        answers: list[Answer] = []
        woken: list[tuple[Done, Answer]] = []
        waits = waits_for_write = False
        try:
            for number, command in enumerate(commands):
                outcome = decide(self._state, command, now_ms)
                is_ahead = self._is_answered_ahead(command, outcome)
                if is_ahead:
                    waits_for_write = self._gathering.awaited = True
                # What repeats a begin may still be on its way, and waits as for any state.
                command_waits = not is_ahead and (WAITS[type(command)] or isinstance(command, WRITTEN))
                waits = waits or command_waits
                for event in outcome.events:
                    self._take(event, payloads[number] if payloads is not None else None, urgent=command_waits)
                for timer in outcome.timers:
                    self._set(timer)
                if outcome.reply is None:
                    assert isinstance(command, JoinGroup | SyncGroup)
                    assert len(commands) == 1
                    self._parked[command.ticket] = done
                else:
                    answers.append(outcome.reply)
                woken += [(self._parked.pop(ticket), answer) for ticket, answer in outcome.wakes]
        except Exception as defect:
            # Memory may be ahead of what will ever be written: as worthless as after a failed append.
            self._fail(f"{type(commands[0]).__name__}: {defect!r}")
            raise
        if waits_for_write:
            self._schedule_flush()
        for waiting, answer in woken:
            self._wake(waiting, answer, waits=waits)
        if len(answers) == len(commands) and done is not _nobody:
            if waits:
                self._release(lambda: done(answers))
            elif waits_for_write:
                self._gathering.written_releases.append(lambda: done(answers))
            else:
                done(answers)

    def _wake(self, waiting: Done, answer: Answer, *, waits: bool) -> None:
        """Answer a request that has waited for others, as late as the one that they wait for."""
        if waits:
            self._release(lambda: waiting([answer]))
        else:
            waiting([answer])

    def new_ticket(self) -> Ticket:
        """Return a ticket for one JoinGroup or SyncGroup."""
        self._last_ticket += 1
        return Ticket(self._last_ticket)

    def read(self, view: Callable[[State, int], T], done: Callable[[T], None]) -> None:
        """Take a view of the state (and the time, in ms) now, and hand it out once that state is durable.

        The view must copy what it returns: the state goes on changing.
        """
        if self.failed is not None:
            return
        seen = view(self._state, self._clock())
        self._release(lambda: done(seen))

    def fetch(self, request: FetchRequest, done: Callable[[list[FetchResult]], None]) -> None:
        """Read records; see `fetch.py`. What was acknowledged is there, also for readers of uncommitted records."""

        def answered(results: list[FetchResult]) -> None:
            if any(result.rejection is not None for result in results):
                self._release(lambda: done(results))  # it may rest on what is not durable: a topic that is gone
            else:
                done(results)

        def start() -> None:
            self._fetcher.fetch(request, answered, self._clock())

        if self.failed is not None:
            return
        if request.read_committed:
            start()
        else:
            self.when_shown(((wanted.topic, wanted.partition) for wanted in request.partitions), start)

    def forget_fetch(self, request: FetchRequest) -> None:
        """Do not answer it any more, if it waits."""
        self._fetcher.forget(request)

    def when_shown(self, partitions: Iterable[tuple[str, int]], done: Callable[[], None]) -> None:
        """Call back once readers may see whatever has been acknowledged in these partitions: mostly at once.

        Writes into open transactions are acknowledged before that.
        """
        if self._unsynced is not None:
            written: Set[PartitionId] = self._unsynced
        else:
            written = self._in_flight.synced_too if self._in_flight is not None else frozenset()
        found = (self._state.partition(*each) for each in partitions) if written else ()
        if any(partition is not None and partition.partition_id in written for partition in found):
            self._release(done)
        else:
            done()

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic that has this id now; None if there is none."""
        return self._state.volatile.topic_names.get(topic_id)

    def now_ms(self) -> int:
        """Return the time by which commands are decided."""
        return self._clock()

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """Return the topic's own configurations as they are in this step, durable or not; None: there is no topic.

        What is made of them must be submitted before the loop's next turn.
        """
        entry = self._state.topics.get(topic)
        return None if entry is None else entry.configs

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has in this step, durable or not; 0 if there is no topic."""
        entry = self._state.topics.get(topic)
        return 0 if entry is None else entry.partition_count

    def visible(self, topic: str, partition: int) -> Visible | None:
        """Return what readers may know of a partition now; None if there is none, or not durably yet."""
        entry = self._state.partition(topic, partition)
        return None if entry is None else self._visible.get(entry.partition_id)

    def close(self, done: Callable[[], None]) -> None:
        """Stop cleanly: answer who waits for records, write what has gathered, save a snapshot; then call `done`.

        The journal is still open then; no command may be submitted any more.
        """
        self._stop_timers()
        self._fetcher.finish()
        self._closing = done
        if self._in_flight is None:
            self._flush()

    # --- events -------------------------------------------------------------------------------------------------------

    def _take(self, event: Event, payload: Buffer | None, *, urgent: bool) -> None:
        if isinstance(event, TopicDeleted):  # afterwards the state no longer knows which partitions these were
            topic = self._state.topics[event.topic]
            self._gathering.touched.update(topic.partition_ids)
        elif isinstance(event, TransactionBegun):
            number = self._begun[event.transaction_id] = self._awaited_of_begin(event)
            self._gathering.begins |= number == self._gathering.number
        elif isinstance(event, TransactionEnded):
            self._begun.pop(event.transaction_id, None)
            self._cancel(ExpireTransaction(transaction_id=event.transaction_id))
        apply(self._state, event)
        if event.durable:
            self._gathering.add(event, payload, self._records, self._marker_clock)
            if urgent and not self._gathering.urgent:
                self._gathering.urgent = True
                self._schedule_flush()

    def _is_answered_ahead(self, command: Command, outcome: Outcome) -> bool:
        """Say whether the answer waits only until its events are written (see `durability`)."""
        if isinstance(command, WRITTEN):
            return bool(outcome.events)
        return outcome.within is not None and self._will_have_begun(outcome.within, outcome.events)

    def _will_have_begun(self, transaction_id: TransactionId, events: Sequence[Event]) -> bool:
        """Say whether the transaction's begin will be durable when what gathers now is written, as far as it must.

        It may be about to begin: by one of the `events`.
        """
        number = self._begun.get(transaction_id)
        if number is None:
            (begun,) = (event for event in events if isinstance(event, TransactionBegun))
            number = self._awaited_of_begin(begun)
        # What is in flight is durable before anything that gathers now is written.
        return number <= (self._durable_number if self._in_flight is None else self._in_flight.number)

    def _awaited_of_begin(self, begun: TransactionBegun) -> int:
        """Return what `_begun` will say of the transaction that begins now."""
        if begun.owner is None:  # recovery aborts whatever it finds open, and what it does not find cannot be ended
            return 0
        unseen = may_begin_unseen(self._state.transactional_ids[begun.owner], begun.at_ms)
        return 0 if unseen else self._gathering.number

    def _set(self, timer: Timer) -> None:
        """Send the command when its time has come; if it is to be sent earlier already, it will ask for more then."""
        command, at_ms = timer.command, timer.at_ms
        known = self._timers.get(command)
        if known is not None:
            if known.at_ms <= at_ms:
                return
            self._deadlines.cancel(known)
        self._timers[command] = self._deadlines.add(at_ms, lambda: self._due(command))

    def _due(self, command: Command) -> None:
        del self._timers[command]
        self.submit((command,), _nobody)

    def _cancel(self, command: Command) -> None:
        """Do not send the command any more, if it was to be sent."""
        known = self._timers.pop(command, None)
        if known is not None:
            self._deadlines.cancel(known)

    def _release(self, release: Callable[[], None]) -> None:
        """Call back once the present state is durable, but for what nobody's answer rests on."""
        if self._gathering.urgent:
            self._gathering.releases.append(release)
        elif self._unsynced is not None or self._gathering.awaited:
            self._gathering.releases.append(release)
            self._hurry()
        elif self._in_flight is not None:
            self._in_flight.releases.append(release)
        else:
            release()

    # --- group commit -------------------------------------------------------------------------------------------------

    def _hurry(self) -> None:
        """Make durable what has gathered, and what is written, as soon as can be."""
        self._gathering.urgent = True
        self._schedule_flush()

    def _schedule_flush(self) -> None:
        if self._in_flight is None and not self._flush_scheduled:
            self._flush_scheduled = True
            self._scheduler.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._in_flight is not None or self.failed is not None:
            return
        group = self._gathering
        if group.awaited and not group.urgent and self._closing is None and self._write_unsynced(group):
            return
        if not group.entries and self._unsynced is None:
            self._finish_closing()
            return
        self._gathering = CommitGroup(group.number + 1)
        self._in_flight = group
        if self._unsynced is not None:
            group.synced_too = self._unsynced
            group.touched |= self._unsynced
            self._unsynced = None
        self._changes = visible_changes(self._state, group.touched)
        try:
            result = self._append(group)
        except Exception as defect:
            self._fail(f"append: {defect!r}")
            raise
        if result is not None:
            self._appended(result)

    def _append(self, group: CommitGroup) -> AppendResult | None:
        """Give the group to the journal, which calls back, unless it can say at once what became of it."""
        position = self._journal.position
        if group.is_lonely and (result := self._journal.write(position, group.entries, durably=True)) is not None:
            return result
        self._journal.append(position, group.entries, self._appended)
        return None

    def _snapshot_saved(self) -> None:
        if self._upkeep is not None:
            self._upkeep.has_snapshot()

    def _write_unsynced(self, group: CommitGroup) -> bool:
        """Write the group ahead of its sync, and answer who waits for no more; False: the journal wants an append."""
        try:
            result = self._journal.write(self._journal.position, group.entries)
        except Exception as defect:
            self._fail(f"write: {defect!r}")
            raise
        if result is None:
            return False
        if not self._was_taken(result):
            return True
        self._gathering = CommitGroup(group.number + 1)
        if self._unsynced is None:
            self._unsynced = set()
            self._unsynced_since_ms = self._clock()
        self._unsynced |= group.touched
        if self._sync_timer is None:
            self._sync_timer = self._scheduler.call_later(SYNC_WITHIN_MS / 1000, self._sync)
        try:
            _call_all(group.written_releases)
        finally:
            self._sync_begins(group)
        return True

    def _sync_begins(self, written: CommitGroup) -> None:
        """Make a begin durable while its client makes its first write, which waits for that."""
        if written.begins:
            self._hurry()

    def _sync(self) -> None:
        """Make durable what has waited for that long enough; one timer serves what has been written since, too."""
        self._sync_timer = None
        if self._unsynced is None:
            return
        left_ms = self._unsynced_since_ms + SYNC_WITHIN_MS - self._clock()
        if left_ms <= 1:  # the loop's timers and this time are rounded apart
            self._hurry()
        else:
            self._sync_timer = self._scheduler.call_later(left_ms / 1000, self._sync)

    def _was_taken(self, result: AppendResult) -> bool:
        if isinstance(result, Appended):
            return True
        reason = result.reason if isinstance(result, Failed) else f"it ends at {result.position}"
        self._fail(f"the journal did not take a group: {reason}")
        return False

    def _appended(self, result: AppendResult) -> None:
        group = self._in_flight
        assert group is not None
        if not self._was_taken(result) or self.failed is not None:
            return
        self._in_flight = None
        self._durable_number = group.number
        changes = self._changes
        self._show(changes)
        self._folding.look()
        will_wait = self._gathering.is_lonely and self._journal.is_quick
        if (self._gathering.urgent or self._closing is not None) and not will_wait:
            self._flush()  # before the answers: the disk works meanwhile
        try:
            _call_all(group.written_releases + group.releases)
        finally:
            self._fetcher.advance([partition_id for partition_id, _ in changes])
            if self._gathering.urgent or self._gathering.awaited or self._closing is not None:
                self._schedule_flush()  # after them: their connections send before the loop waits for the disk

    def _show(self, changes: Changes) -> None:
        for partition_id, seen in changes:
            if self._upkeep is not None:
                self._upkeep.shown(partition_id, seen)
            if seen is None:
                self._visible.pop(partition_id, None)
            else:
                self._visible[partition_id] = seen

    def _fail(self, reason: str) -> None:
        if self.failed is not None:
            return
        self.failed = EngineFailed(reason)
        self._stop_timers()
        self._on_failure(self.failed)

    def _stop_timers(self) -> None:
        self._deadlines.close()
        self._folding.stop()
        if self._upkeep is not None:
            self._upkeep.stop()
        if self._sync_timer is not None:
            self._sync_timer.cancel()

    def _finish_closing(self) -> None:
        if self._closing is None:
            return
        done, self._closing = self._closing, None
        self._journal.save_snapshot(snapshot(self._state), self._journal.position)
        done()


def _call_all(releases: list[Callable[[], None]]) -> None:
    """Call all, even if one fails: a defect in one front's callback must not keep another client waiting for ever."""
    for number, release in enumerate(releases):
        try:
            release()
        except BaseException:
            _call_all(releases[number + 1 :])
            raise


def _ahead(clock: Callable[[], int], by_ms: int) -> Callable[[], int]:
    return lambda: clock() + by_ms


def _nobody(answers: list[Answer]) -> None:
    """Timers wait for no answer."""
