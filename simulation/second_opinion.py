"""The invariants, kept up to date event by event: cheap enough to be looked at after every step.

`simulation.invariants` derives the same from the whole log, and is asked after every recovery, once in a while, and at
the end. Here only what has become durable counts, since that is what readers are shown.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from exacta.core.events import (
    BatchAppended,
    BatchStaged,
    Event,
    LeadTaken,
    LogStartMoved,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    PartitionsAdded,
    ProducerBound,
    ProducersExpired,
    SubscriptionChanged,
    SubscriptionDeleted,
    SubscriptionMoved,
    TopicCreated,
    TopicDeleted,
    TopicEpochMoved,
    TransactionalIdsExpired,
    TransactionBegun,
    TransactionEnded,
    WritersExpired,
)
from exacta.core.ids import NO_WRITER_ID, Cause, PartitionId, ProducerId, WriterId
from exacta.core.log import staging
from exacta.core.state.state import State
from exacta.core.state.transaction import name_of
from exacta.core.values.limits import Limits
from exacta.ports.log import Visible

Complain = Callable[[str], None]


class _End(NamedTuple):
    """The end of a transaction, some of whose records no reader was shown yet."""

    name: str
    committed: bool
    partitions: int
    """The number of partitions in which it has records."""


class _Log:
    """One partition, as its events have it."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.open: dict[ProducerId, tuple[int, int]] = {}
        """The first offset of the open transaction and the epoch of its writes, by producer id."""
        self.written: dict[ProducerId, list[tuple[int, int]]] = {}
        """The runs of the open transaction's records, first and last offset, by producer id."""
        self.staged: dict[ProducerId, tuple[int, int]] = {}
        """The number of staged records of the open transaction and the epoch of its writes, by producer id."""
        self.staged_count = 0
        """The number of records that were ever staged."""
        self.sequences: dict[ProducerId, tuple[int, int]] = {}
        """The epoch and the next sequence, by producer id."""
        self.topic_epoch = -1
        self.named: dict[WriterId, int] = {}
        """The highest sequence, by named writer."""
        self.unread: list[tuple[int, int, int]] = []
        """The records of transactions that have ended, which no reader was shown yet: first, last, and the end."""

    @property
    def stable(self) -> int:
        first = min((offset for offset, _ in self.open.values()), default=self.end)
        return max(first, self.start)


class Steps:
    """A second opinion on the durable state."""

    def __init__(self, limits: Limits, complain: Complain) -> None:
        self.count = 0
        self._limits = limits
        self._complain = complain
        self._logs: dict[PartitionId, _Log] = {}
        self._topics: dict[str, list[PartitionId]] = {}
        self._bound: dict[str, tuple[int, int]] = {}
        self._ends: dict[int, _End] = {}
        """The positions by the number of the event."""
        self._partly: set[int] = set()
        """The transactions of which readers were shown a part."""
        self._commit_number = 0
        self._leader_epoch = 0
        self._counts: dict[tuple[PartitionId, str], dict[int, int]] = {}
        """The redelivery counts that were written, by subscription and the first offset of the entry."""

    def take(self, event: Event) -> None:
        """Go one event further."""
        self.count += 1
        match event:
            case BatchAppended():
                self._batch(event)
            case BatchStaged():
                self._stage(event)
            case TransactionEnded():
                self._end(event)
            case ProducerBound():
                self._look_at_principal(event)
                self._bind(event.transactional_id, (event.producer_id, event.producer_epoch), event)
            case TransactionBegun():
                self._look_at_principal(event)
            case LeadTaken():
                if event.leader_epoch <= self._leader_epoch:
                    self._complain(f"leaders: {event} gives epoch {self._leader_epoch} once more")
                self._leader_epoch = event.leader_epoch
            case TopicEpochMoved():
                self._take_partition(event)
            case MessagesAcknowledged() | MessagesAcknowledgedInTransaction():
                self._count(event)
            case SubscriptionMoved() | SubscriptionDeleted() | SubscriptionChanged():
                self._counts.pop((event.partition_id, event.name), None)
            case LogStartMoved():
                self._log(event.partition_id).start = event.log_start_offset
            case ProducersExpired():
                for partition_id, producer_id in event.producers:
                    self._log(partition_id).sequences.pop(producer_id, None)
            case WritersExpired():
                for log in self._logs.values():
                    for writer_id in event.writer_ids:
                        log.named.pop(writer_id, None)
            case TransactionalIdsExpired():
                for transactional_id in event.transactional_ids:
                    self._bound.pop(transactional_id, None)
            case TopicCreated() | PartitionsAdded():
                ids = range(event.first_partition_id, event.first_partition_id + event.partition_count)
                self._topics.setdefault(event.topic, []).extend(map(PartitionId, ids))
            case TopicDeleted():
                for partition_id in self._topics.pop(event.topic):
                    self._logs.pop(partition_id, None)
            case _:
                pass

    def _count(self, event: MessagesAcknowledged | MessagesAcknowledgedInTransaction) -> None:
        if not event.counts:
            return
        known = self._counts.setdefault((event.partition_id, event.name), {})
        for base, _, count in event.counts:
            if count <= known.get(base, 0):
                self._complain(f"redeliveries: {event} writes {count} of {base} after {known[base]}")
            known[base] = count

    def _look_at_principal(self, event: ProducerBound | TransactionBegun) -> None:
        """Complain where what a client began belongs to another: in a world each host has its own principal."""
        is_clients = isinstance(event, TransactionBegun) or event.cause in (Cause.OWNER, Cause.NEW_INSTANCE)
        if is_clients and event.client_host and event.principal != f"User:{event.client_host.removeprefix('/')}":
            self._complain(f"principals: {event} is of {event.principal!r}")

    def _log(self, partition_id: PartitionId) -> _Log:
        return self._logs.setdefault(partition_id, _Log())

    def _batch(self, event: BatchAppended) -> None:
        log = self._log(event.partition_id)
        if event.base_offset != log.end:
            self._complain(f"4: {event} leaves a hole: the log ends at {log.end}")
        log.end = event.base_offset + event.record_count
        self._commit_number += not event.transactional
        self._sequence(log, event)
        if event.transactional:
            if event.producer_id in log.staged:
                self._complain(f"11: {event} lies in the log, and what was written before it is staged")
            _, open_epoch = log.open.setdefault(event.producer_id, (event.base_offset, event.producer_epoch))
            if open_epoch != event.producer_epoch:
                self._complain(f"6: {event} joins a transaction of epoch {open_epoch}")
            log.written.setdefault(event.producer_id, []).append((event.base_offset, log.end - 1))

    def _stage(self, event: BatchStaged) -> None:
        log = self._log(event.partition_id)
        self._sequence(log, event)
        count, open_epoch = log.staged.get(event.producer_id, (0, event.producer_epoch))
        if open_epoch != event.producer_epoch:
            self._complain(f"6: {event} joins a transaction of epoch {open_epoch}")
        told = staging.place_of(event.provisional_offset)
        if (event.first_index, told) != (count, log.staged_count) or event.producer_id in log.open:
            self._complain(f"11: {event} is staged where {count} are, and {log.staged_count} ever were")
        log.staged[event.producer_id] = count + event.record_count, open_epoch
        log.staged_count += event.record_count

    def _sequence(self, log: _Log, event: BatchAppended | BatchStaged) -> None:
        if event.writer_id >= 0:
            self._named(log, event)
        elif event.base_sequence >= 0 and event.writer_id == NO_WRITER_ID:
            self._idempotent(log, event)

    def _take_partition(self, event: TopicEpochMoved) -> None:
        log = self._log(event.partition_id)
        if event.topic_epoch <= log.topic_epoch:
            self._complain(f"writers: {event} does not fence epoch {log.topic_epoch}")
        log.topic_epoch = event.topic_epoch

    def _named(self, log: _Log, event: BatchAppended | BatchStaged) -> None:
        highest = log.named.get(event.writer_id, -1)
        if event.base_sequence < highest + event.record_count:
            self._complain(f"1: {event} where {event.record_count} sequences above {highest} were next")
        log.named[event.writer_id] = event.base_sequence

    def _idempotent(self, log: _Log, event: BatchAppended | BatchStaged) -> None:
        epoch, wanted = log.sequences.get(event.producer_id, (event.producer_epoch, event.base_sequence))
        if event.producer_epoch > epoch:
            wanted = 0
        if event.producer_epoch < epoch or event.base_sequence != wanted:
            self._complain(f"1: {event} where epoch {epoch}, sequence {wanted} was next")
        following = (event.base_sequence + event.record_count) % self._limits.sequence_modulus
        log.sequences[event.producer_id] = event.producer_epoch, following

    def _end(self, event: TransactionEnded) -> None:
        markers = {(partition_id, producer_id) for partition_id, _, producer_id in event.markers}
        self._commit_number += event.committed
        for (partition_id, log), producer_id in itertools.product(self._logs.items(), event.producer_ids):
            written = log.open.pop(producer_id, None)
            log.unread += [(*place, self.count) for place in log.written.pop(producer_id, ())]
            if written is None:
                if (partition_id, producer_id) in markers:
                    self._complain(f"3: {event} has a marker where nothing was written")
                continue
            if (partition_id, producer_id) not in markers:
                self._complain(f"3: {event} leaves partition {partition_id} open")
            # A record that was written by the id of a transaction has the first epoch, whatever its owner's pair is.
            if written[1] != (event.producer_epoch if producer_id == event.producer_ids[0] else 0):
                self._complain(f"7: {event} ends a transaction of epoch {written[1]}")
        entries = self._entries(event)
        rows = [*((partition_id, int(offset), 1) for partition_id, offset, _ in event.markers), *entries]
        for partition_id, offset, count in sorted(rows):
            log = self._log(partition_id)
            if offset != log.end:
                self._complain(f"4: {event} leaves a hole: the log ends at {log.end}")
            log.end = offset + count
        partitions = {partition_id for partition_id, _, _ in rows}
        self._ends[self.count] = _End(name_of(event), event.committed, len(partitions))
        if event.bumps:
            self._bind(str(event.owner), (event.next_producer_id, event.next_producer_epoch), event)

    def _entries(self, event: TransactionEnded) -> list[tuple[PartitionId, int, int]]:
        """Let go of what the transaction has staged; return where it enters, and with how many records."""
        entered = {(partition_id, producer_id): count for partition_id, _, producer_id, count in event.entries}
        expected: dict[tuple[PartitionId, ProducerId], int] = {}
        for (partition_id, log), producer_id in itertools.product(self._logs.items(), event.producer_ids):
            count, epoch = log.staged.pop(producer_id, (0, -1))
            if count and epoch != (event.producer_epoch if producer_id == event.producer_ids[0] else 0):
                self._complain(f"7: {event} ends a transaction of epoch {epoch}")
            if count and event.committed:
                expected[partition_id, producer_id] = count
        if entered != expected or len(event.entries) != len(entered):
            self._complain(f"11: {event} lets enter what is not staged: that is {expected}")
        for partition_id, first_offset, _, count in event.entries:
            self._log(partition_id).unread.append((first_offset, first_offset + count - 1, self.count))
        return [(partition_id, offset, count) for partition_id, offset, _, count in event.entries]

    def recovered(self, state: State) -> None:
        """Complain where a recovered state would give a commit number or an epoch once more, or leave one out."""
        if state.leader_epoch != self._leader_epoch:
            self._complain(f"leaders: a restart goes on in epoch {state.leader_epoch}, and not {self._leader_epoch}")
        if state.commit_number != self._commit_number:
            self._complain(f"commits: a restart goes on after {state.commit_number}, and not {self._commit_number}")

    def _bind(self, transactional_id: str, pair: tuple[int, int], event: Event) -> None:
        before = self._bound.get(transactional_id, (-1, -1))
        again = isinstance(event, ProducerBound) and event.previous_producer_id >= 0 and pair == before
        if pair <= before and not again:
            self._complain(f"6: {event} does not fence {before}")
        if pair[1] > self._limits.highest_epoch:
            self._complain(f"6: {event} passes the highest epoch")
        self._bound[transactional_id] = pair

    def look(self, shown: Mapping[PartitionId, Visible]) -> int:
        """Complain where a record of a transaction that has ended is held back by none that began before (invariant 3).

        `shown` is all that readers are shown, of every partition: an end takes effect in all of them at once. Returns
        of how many committed transactions readers are shown a part now and were not before, in this life.
        """
        held_back: Counter[int] = Counter()
        for partition_id, log in self._logs.items():
            if not log.unread:
                continue
            stable = shown[partition_id].last_stable_offset if partition_id in shown else 0
            log.unread = [each for each in log.unread if each[1] >= stable]
            held_back.update({end for _, _, end in log.unread})
            if not log.unread:
                continue
            first, _, end = min(log.unread)
            first = max(first, stable)
            if not any(offset < first for offset, _ in log.open.values()):
                self._complain(
                    f"3: {self._ends[end].name} has ended, and nothing older is open before its record at "
                    f"{first} of partition {partition_id}, of which readers are shown {stable}"
                )
        self._ends = {number: end for number, end in self._ends.items() if number in held_back}
        partly = {number for number, end in self._ends.items() if end.committed and held_back[number] < end.partitions}
        new = partly - self._partly
        self._partly = partly
        return len(new)

    def compare(self, shown: Mapping[PartitionId, Visible]) -> None:
        """Complain where readers are shown anything but the durable state (invariant 4)."""
        for partition_id, visible in shown.items():
            log = self._log(partition_id)
            expected = (log.start, log.end, log.stable)
            found = (visible.log_start_offset, visible.high_watermark, visible.last_stable_offset)
            if found != expected:
                self._complain(f"4: readers of partition {partition_id} are shown {found}, durable is {expected}")
