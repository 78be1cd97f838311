"""The engine and the journal, watched: what they decide and write is told to the ledger, and looked at at every step.

Owns no behaviour: whatever is overridden here calls what it overrides, and looks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.framing import Framed
from exacta.core.commands import AcknowledgeSoon, AppendBatch, Command, ExpireTransaction, SetDiskRoom, Skip
from exacta.core.event_codec import decode_event
from exacta.core.events import (
    AppendsRefused,
    BatchAppended,
    BatchStaged,
    Event,
    LogStartMoved,
    StagedStreamSpilled,
    TopicDeleted,
    TransactionEnded,
)
from exacta.core.ids import Cause, PartitionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.room import unnamed_growth
from exacta.core.state.staged import HELD
from exacta.core.state.state import State
from exacta.core.state.transaction import name_of
from exacta.core.transactions.expiry import latest_noted_ms
from exacta.engine.commit_group import Wait
from exacta.engine.engine import Engine
from exacta.engine.staged_batches import with_bytes
from exacta.engine.visible import Changes
from exacta.ports.compaction import Compact
from exacta.ports.journal import AppendResult, Cleaned, CompactionOrder, Failed, GroupAppended, JournalEntries
from exacta.ports.record_format import Buffer
from simulation.group_use import GroupUse
from simulation.groups import GroupsTold
from simulation.invariants.full_disk import refusals_are_those_of_a_full_disk
from simulation.invariants.invariants import violations
from simulation.invariants.redeliveries import counts_do_not_fall
from simulation.invariants.subscriptions import entries_have_one_place, waits_can_end
from simulation.invariants.transactions import lost_handles_do_not_commit
from simulation.ledger import Ledger
from simulation.policies import EVICT, FOR_EVER_MS
from simulation.second_opinion import Steps

Complain = Callable[[str], None]
WHOLE_CHECK_EVENTS = 100
"""The invariants over the whole log are looked at whenever there are this many events more,"""
WHOLE_CHECK_UP_TO = 300
"""as long as there are no more than this; and at the end. They take time that grows with the square."""


class WatchedJournal(LocalJournal):
    """A local journal that tells the ledger what it was given, and what became of it."""

    ledger: Ledger
    on_cleaned: Callable[[Cleaned | Failed], None]
    on_compacted: Callable[[Failed | None], None]

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """See `Journal.clean`."""

        def told(result: Cleaned | Failed) -> None:
            self.on_cleaned(result)
            done(result)

        super().clean(floors, told)

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """See `Journal.compact`."""

        def told(failed: Failed | None) -> None:
            self.on_compacted(failed)
            done(failed)

        super().compact(orders, floors, rewriter, told)

    def append(self, expected_position: int, entries: JournalEntries, done: Callable[[AppendResult], None]) -> int:
        """See `Journal.append`."""

        def told(result: AppendResult) -> None:
            if isinstance(result, GroupAppended):
                self.ledger.durable(result.position)
            done(result)

        return super().append(expected_position, entries, told)

    def write(self, expected_position: int, entries: JournalEntries, *, durably: bool = False) -> AppendResult | None:
        """See `Journal.write`."""
        result = super().write(expected_position, entries, durably=durably)
        if isinstance(result, GroupAppended):
            (self.ledger.durable if durably else self.ledger.written)(result.position)
        return result

    def _frame(self, entries: JournalEntries) -> Framed:
        group = super()._frame(entries)
        self.ledger.framed(self.position, len(entries), group.end)
        for entry in entries:
            self.ledger.framed_entry(decode_event(entry.event), entry.index, b"".join(entry.payload))
        return group


class Watch(NamedTuple):
    """The knowledge of all lives, and the place where complaints go."""

    ledger: Ledger
    steps: Steps
    complain: Complain
    shown: dict[PartitionId, tuple[int, int, int]]
    """The offsets that readers have been shown, in all lives: none of them may move back."""
    groups: GroupsTold
    machine_stopped: bool
    """True if the machine had stopped before this life."""
    now_ms: Callable[[], int] = lambda: 0
    """The clock by which records are old."""
    on_aged: Callable[[], None] = lambda: None
    """The function that is told whenever retention deletes."""
    on_partly: Callable[[int], None] = lambda count: None
    """The function that is told of how many committed transactions readers are shown a part first."""
    on_staged: Callable[[list[str]], None] = lambda what: None
    """The function that is told what becomes of staged streams."""
    on_expired: Callable[[], None] = lambda: None
    """The function that is told whenever a group expires."""
    on_refused: Callable[[Rejection], None] = lambda why: None
    """The function that is told whenever a full disk refuses a command."""


def _of_staged(state: State, event: Event) -> Iterator[str]:
    """Yield what becomes of staged streams by an event that is not applied yet."""
    if isinstance(event, StagedStreamSpilled):
        yield "spilled"
    if not isinstance(event, TransactionEnded):
        return
    transaction = state.transactions.get(event.transaction_id)
    for partition_id in () if transaction is None else transaction.partitions:
        for producer_id, stream in state.partitions[partition_id].staged.items():
            if producer_id in event.producer_ids:
                how = "held" if stream.stream == HELD else "in place"
                yield f"entered, {how}" if event.committed else f"dropped, {how}"
    if event.entries and event.markers:
        yield "ended beside markers"


class WatchedEngine(Engine):
    """An engine whose every step is looked at."""

    def __init__(self, watch: Watch, *args: Any, **options: Any) -> None:
        self.ledger, self.steps, self.complain, self.shown = watch.ledger, watch.steps, watch.complain, watch.shown
        self.groups = watch.groups
        self._machine_stopped = watch.machine_stopped
        self._now_ms, self._on_aged, self._on_partly = watch.now_ms, watch.on_aged, watch.on_partly
        self._on_staged, self._on_expired = watch.on_staged, watch.on_expired
        self._on_refused = watch.on_refused
        self._has_recovered = self._is_closing = False
        self._has_refused_batches = False
        self._looked_at = 0
        self._latest_ms = 0
        self._full: set[PartitionId] = set()
        super().__init__(*args, **options)
        self.dispatcher._submit = self._submit_of_dispatcher
        self.look(whole=len(self.ledger.events) <= WHOLE_CHECK_UP_TO)

    def submit(
        self,
        commands: Sequence[Command],
        done: Callable[..., None],
        payloads: Sequence[Buffer | None] | None = None,
        host: str = "",
    ) -> int:
        """See `Engine.submit`."""
        for command in commands:
            if isinstance(command, Skip) and command.subscription is None:
                self._look_at_skipped(command)
        rests_on = super().submit(commands, self.groups.listening(commands, done), payloads, host)
        self.look()
        return rests_on

    def _decide(self, command: Command, now_ms: int, owner: str, *, is_awaited: bool) -> Outcome:
        room = self._state.volatile.disk_room
        outcome = super()._decide(command, now_ms, owner, is_awaited=is_awaited)
        for violation in refusals_are_those_of_a_full_disk(room, command, outcome):
            self.complain(violation)
        for table in unnamed_growth(self._state, command, outcome):
            self.complain(f"12: {type(command).__name__} lets {table.name} grow, which its row does not name")
        self._look_at_order(command, outcome)
        if outcome.reply in (Rejection.DISK_FULL, Rejection.RESERVE_USED_UP):
            self._on_refused(outcome.reply)
        return outcome

    def _look_at_order(self, command: Command, outcome: Outcome) -> None:
        """Complain where a batch is taken after one that was refused, and that may come again behind it."""
        measured = self._journal.room
        if outcome.reply is Rejection.DISK_FULL:
            self._has_refused_batches = True
        elif isinstance(command, SetDiskRoom) and (measured is None or not measured.is_low):
            self._has_refused_batches = False
        elif isinstance(command, AppendBatch) and self._has_refused_batches and any(e.durable for e in outcome.events):
            self.complain(f"13: {command} overtakes one that was refused on a full disk")

    def close(self, done: Callable[[], None]) -> None:
        """See `Engine.close`. Nothing goes by time any more, and a stuck disk may keep it waiting for long."""
        self._is_closing = True
        super().close(done)

    def _submit_of_dispatcher(self, commands: Sequence[Command], done: Callable[..., None]) -> int:
        for command in commands:
            if isinstance(command, AcknowledgeSoon):
                self._look_at_removed(command)
        return self.submit(commands, done)

    def _take(self, event: Event, payload: Buffer | None, wait: Wait) -> None:
        event = with_bytes(event, payload)
        if isinstance(event, TopicDeleted):
            for partition_id in self._state.topics[event.topic].partition_ids:
                self.shown.pop(partition_id, None)
        if isinstance(event, AppendsRefused):
            (self._full.discard if event.reason is None else self._full.add)(event.partition_id)
        if isinstance(event, BatchAppended | BatchStaged) and event.partition_id in self._full:
            self.complain(f"quota: {event} is appended where nothing is to be appended")
        if isinstance(event, LogStartMoved):
            self._look_at_deleted(event)
        if isinstance(event, TransactionEnded):
            self._look_at_room_made(event)
        self._look_at_time(event)
        for violation in lost_handles_do_not_commit([event], self.ledger.lost_handles):
            self.complain(violation)
        self.groups.decided(self._state, event, self.complain)
        self.group_use.decided(event, self.now_ms(), self.complain)
        self._on_staged(list(_of_staged(self._state, event)))
        super()._take(event, payload, wait)
        if event.durable:
            self.ledger.decided(event)

    def _look_at_room_made(self, event: TransactionEnded) -> None:
        """Complain where a handle makes room for another one although something takes part in it."""
        transaction = self._state.transactions.get(event.transaction_id)
        if event.cause is Cause.IDLE and (transaction is None or transaction.participants or transaction.owner):
            self.complain(f"handles: {event.transaction_id} makes room, and {transaction} is in use")

    def _look_at_time(self, event: Event) -> None:
        """Complain where a time is before one that was noted, in this life or before: recovery goes by them (0022)."""
        at_ms = getattr(event, "at_ms", -1)
        if at_ms < 0:
            return
        if at_ms < self._latest_ms:
            self.complain(f"8: {type(event).__name__} is of {at_ms}, after {self._latest_ms} was noted")
        self._latest_ms = at_ms

    def _look_at_deleted(self, event: LogStartMoved) -> None:
        """Complain where what retention deletes is too young, or not decided. No client deletes from its topics."""
        partition = self._state.partitions[event.partition_id]
        configs = self._state.topics[partition.topic].configs
        retention_ms = configs.get("retention.ms")
        if retention_ms is None:
            return
        is_compacted = "compact" in configs["cleanup.policy"]
        self._on_aged()
        begin, end = int(partition.log_start_offset), int(event.log_start_offset)
        if end > min(partition.open_transactions.values(), default=end):
            self.complain(f"retention: {event} deletes from {partition.open_transactions}, which are open")
        young_ms = self._now_ms() - int(retention_ms)
        for batch in self.ledger.batches.between(event.partition_id, begin, end):
            if is_compacted and not self._log.count_records(
                event.partition_id, batch.first_offset, batch.last_offset + 1
            ):
                continue  # compaction was faster
            if batch.max_timestamp_ms >= young_ms:
                self.complain(f"retention: {event} deletes what is of {batch.max_timestamp_ms}, not before {young_ms}")

    def _look_at_removed(self, command: AcknowledgeSoon) -> None:
        """Complain where delivery takes a message for removed by compaction, and its batch has all that it had."""
        partition = self._state.partition(command.topic, command.partition)
        if partition is None:
            return
        for first, last in command.runs:
            batch = self.lookups.batch_at(partition.partition_id, first)
            while batch is not None and batch[0] <= last:
                left = self._log.count_records(partition.partition_id, batch[0], batch[1] + 1)
                if left == batch[1] + 1 - batch[0]:
                    self.complain(f"removed: {command} acknowledges what is there, in the batch {batch}")
                batch = self.lookups.batch_at(partition.partition_id, batch[1] + 1)

    def _look_at_skipped(self, command: Skip) -> None:
        """Complain where the broker skips a message that has not expired, and that retention would keep."""
        partition = self._state.partition(command.topic, command.partition)
        if partition is None:
            return
        configs = self._state.topics[command.topic].configs
        bounds_ms = [int(configs.get("pulsar.message.ttl.ms", "0"))]
        if configs.get("pulsar.backlog.quota.policy") == EVICT:
            bounds_ms.append(int(configs.get("retention.ms", "-1")))
        young_ms = self._now_ms() - min((each for each in bounds_ms if each > 0), default=FOR_EVER_MS)
        begin = min((each.position for each in partition.subscriptions.values()), default=command.before)
        for batch in self.ledger.batches.between(partition.partition_id, begin, int(command.before)):
            first, end = max(begin, batch.first_offset), batch.last_offset + 1
            is_visible = self.lookups.count_unaborted(partition.partition_id, first, end) > 0
            if is_visible and batch.max_timestamp_ms >= young_ms:
                self.complain(f"expired: {command} takes what is of {batch.max_timestamp_ms}, not before {young_ms}")

    def _show(self, changes: Changes) -> None:
        is_first = not self._has_recovered
        if is_first:  # the first thing that is done with the recovered state
            self._has_recovered = True
            self.ledger.recovered(self._journal.position, self._state, machine_stopped=self._machine_stopped)
            self.groups.recovered(self._state, self.ledger.events, self.complain)
            if self._journal.may_have_lost:
                found = (key for key, each in self._state.transactions.items() if each.owner is None)
                self.ledger.lost_handles.update(found)
            self._latest_ms = latest_noted_ms(self._state)
            limits, events = self._state.limits, self.ledger.events
            self.group_use = GroupUse(limits, self.now_ms(), events, self._on_expired)
        super()._show(changes)
        count = self.ledger.count_at(self._journal.position)
        for event in self.ledger.events[self.steps.count : count]:
            self.steps.take(event)
        if is_first:
            self.steps.recovered(self._state)
        self.steps.compare({partition_id: seen for partition_id, seen in changes if seen is not None})
        self._on_partly(self.steps.look(self._visible))
        for partition_id, seen in changes:
            if seen is None:
                self.shown.pop(partition_id, None)
                continue
            now = (int(seen.log_start_offset), int(seen.high_watermark), int(seen.last_stable_offset))
            before = self.shown.get(partition_id, (0, 0, 0))
            if any(new < old for new, old in zip(now, before, strict=True)):
                self.complain(f"4: partition {partition_id} moves back from {before} to {now}")
            self.shown[partition_id] = now

    def look(self, *, whole: bool = False) -> None:
        """Complain of whatever does not hold now."""
        if self.failed is not None:
            return
        for transaction in self._state.transactions.values():
            timer = ExpireTransaction(transaction_id=transaction.transaction_id)
            if transaction.deadline_ms is not None and timer not in self._timers:
                self.complain(f"7: nothing will ever end the transaction of {name_of(transaction)}")
        if not self._is_closing:
            self.group_use.look(self.now_ms(), self.complain)
        # A volatile fact is over soon, and no later look would find it.
        for violation in (
            *entries_have_one_place(self._state),
            *waits_can_end(self._state),
            *counts_do_not_fall(self._state),
        ):
            self.complain(violation)
        count = len(self.ledger.events)
        if whole or self._looked_at + WHOLE_CHECK_EVENTS <= count <= WHOLE_CHECK_UP_TO:
            self._looked_at = count
            for violation in violations(self._state, self.ledger.events, (), self.ledger.lost_handles):
                self.complain(violation)
