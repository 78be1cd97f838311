"""Dispatch: pushes the messages of subscriptions to their consumers, as far as these take them.

Owns what is being read for a subscription, and when to look again. Owns neither the sinks of consumers
(`exacta.engine.entry_sinks`), nor who gets which entry (`exacta.core.subscriptions.delivering`), nor what a message
looks like to a client (the fronts).

Theory of operation. A subscription is looked at in the loop's next turn after something has happened that may let more
be delivered: readers may see more, a consumer has come, has gone or takes more, a message has been acknowledged or
given back, or a delay has ended. One read is under way for a subscription at a time, so that its entries go out in the
order in which they were chosen. Entries that wait are chosen first, and then read. New ones are read first, as far as
readers of the subscription's isolation level may see them, and then chosen. If delivery has gone on elsewhere
meanwhile, the core ignores what was read. What was read passes the conversion that the consumers' sinks have before
anybody looks at it. So the core, too, knows entries only as these consumers read them. Compaction may remove messages
of an entry between the choice and the read. They are acknowledged for the subscription then, since no client would ever
do it. Nothing is read while no consumer takes a message, or none has a sink. A front that cannot send just grants no
permits.
"""

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from msgspec.structs import replace

from exacta.core.commands import AcknowledgeSoon, Command, Deliver, Permit
from exacta.core.events import (
    ConsumerConnected,
    ConsumerDisconnected,
    DelaysEnded,
    EntriesTakenBack,
    Event,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    PermitsGranted,
    TransactionEnded,
)
from exacta.core.ids import ConsumerId, Offset, PartitionId, SubscriptionKey
from exacta.core.rejections import Rejection
from exacta.core.replies import Delivered, Delivering, Reply
from exacta.core.state.aborted import aborted_between
from exacta.core.state.delivery import SeenEntry
from exacta.core.state.state import State
from exacta.core.subscriptions.delivering import looks_back, looks_further, permits, room_for_entries
from exacta.core.subscriptions.isolation import reads_committed
from exacta.core.values.runs import Run, count, missing, subtract
from exacta.core.values.subscriptions import SubscriptionType
from exacta.engine.entry_sinks import EntrySinks
from exacta.engine.log_reader import find_few
from exacta.engine.reading import BatchReader, Read
from exacta.engine.unread import UnreadSubscriptions
from exacta.ports.journal import Extent, JournalReader
from exacta.ports.log import AS_STORED, Counts, Form, Sent, Visible
from exacta.ports.record_format import Converted, LogEntry, RecordFormat, Wanted
from exacta.ports.scheduler import Scheduler

logger = logging.getLogger(__name__)

MOST_CONVERTED_BYTES = 1 << 20
"""The size of what that may become for consumers; one entry may be larger, and what is left is read again."""

NOWHERE = Offset(0)

_OF_ONE = (
    ConsumerConnected,
    ConsumerDisconnected,
    DelaysEnded,
    EntriesTakenBack,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    PermitsGranted,
)
"""The events of one subscription after which more may be delivered."""


class Dispatcher:
    """Pushes entries to the sinks of consumers."""

    def __init__(
        self,
        state: State,
        journal: JournalReader,
        reader: BatchReader,
        records: RecordFormat,
        visible: dict[PartitionId, Visible],
        scheduler: Scheduler,
        submit: Callable[[Sequence[Command], Callable[[list[Reply | Rejection]], None]], object],
        counts: Counts,
    ) -> None:
        self._state = state
        self._read_bytes = counts.read_bytes
        self._journal = journal
        self._reader = reader
        self._records = records
        self._visible = visible
        self._scheduler = scheduler
        self._submit = submit
        self._sinks = EntrySinks()
        self._due: dict[SubscriptionKey, None] = {}
        self._without_room: dict[SubscriptionKey, None] = {}
        """The subscriptions that wait until others have fewer entries."""
        self._reading: set[SubscriptionKey] = set()
        self._looked_back: dict[SubscriptionKey, Offset] = {}
        """The position at which each subscription was read again, where delivery has forgotten what is for nobody."""
        self.unread = UnreadSubscriptions(state, scheduler, reader, lambda *said: self._submit(*said), self._look_soon)
        self._is_scheduled = False
        self._has_stopped = False

    @property
    def has_stopped(self) -> bool:
        """Return whether nothing is pushed any more, so that consumers need not be said good-bye to."""
        return self._has_stopped

    # --- what fronts and the engine tell ------------------------------------------------------------------------------

    def new_consumer_id(self) -> ConsumerId:
        """Return an id that no consumer of any front has had since the start."""
        return self._sinks.new_consumer_id()

    def register(self, consumer_id: ConsumerId, push: Callable[[list[Sent]], None], form: Form = AS_STORED) -> None:
        """Push what a consumer is to have from now on, in this form; to be called before the consumer connects."""
        self._sinks.register(consumer_id, push, form)

    def remove(self, consumer_id: ConsumerId) -> None:
        """Push nothing to a consumer any more, not even what is being read for it."""
        self._sinks.remove(consumer_id)

    def advance(self, partition_ids: Sequence[PartitionId]) -> None:
        """Look at the subscriptions of these partitions, of which readers see more."""
        deliveries = self._state.volatile.deliveries
        if not deliveries:
            return
        for partition_id in partition_ids:
            names = self._state.subscription_names(partition_id) if partition_id in self._state.partitions else ()
            for name in names:
                if (partition_id, name) in deliveries:
                    self._look_soon((partition_id, name))

    def is_awaited(self, partition_ids: Set[PartitionId]) -> bool:
        """Return whether a consumer would be pushed what was just written to these partitions, if it was shown.

        A write into an open transaction is acknowledged before it is synced, and shown after it. Readers of committed
        messages wait for the end of the transaction anyway.
        """
        volatile = self._state.volatile
        concerned = (key for key in volatile.uncommitted if key[0] in partition_ids)
        deliveries = (volatile.deliveries.get(key) for key in concerned)
        return any(delivery is not None and permits(delivery) for delivery in deliveries)

    def hear(self, event: Event) -> None:
        """Look at the subscriptions that an event lets deliver more; to be called before it is applied."""
        if self._without_room:
            waiting, self._without_room = self._without_room, {}
            for key in waiting:
                self._look_soon(key)
        if isinstance(event, _OF_ONE):
            self._look_soon((event.partition_id, event.name))
        elif isinstance(event, TransactionEnded):
            transaction = self._state.transactions.get(event.transaction_id)
            for key in () if transaction is None else sorted(transaction.subscriptions):
                self._look_soon(key)

    def stop(self) -> None:
        """Push nothing any more."""
        self._has_stopped = True
        self.unread.stop()
        self._sinks.clear()

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look_soon(self, key: SubscriptionKey) -> None:
        self._due[key] = None
        if not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.call_soon(self._look_at_all)

    def _look_at_all(self) -> None:
        self._is_scheduled = False
        due, self._due = self._due, {}
        for key in due:
            if key in self._reading:
                self._due[key] = None  # looked at again after the read
            elif not self._has_stopped:
                self._look(key)

    def _look(self, key: SubscriptionKey) -> None:
        """Deliver what can be delivered now, one read after another."""
        delivery = self._state.volatile.deliveries.get(key)
        permitted = 0 if delivery is None else permits(delivery)
        form = None if delivery is None else self._sinks.form(delivery.consumers)
        if delivery is None or form is None or not permitted:
            return
        if delivery.waiting:
            chosen = self._deliver(key)
            if chosen:
                self._read_chosen(key, chosen, form)
                return
        subscription = self._state.subscription(key)
        if subscription is None:
            return
        if not looks_back(subscription, delivery):
            self._looked_back.pop(key, None)
        elif self._looked_back.get(key) != subscription.position and key not in self.unread:
            self._read_new(key, subscription.position, 1, form)
            return
        if not looks_further(subscription, delivery, self._state.limits):
            return
        if not delivery.is_in_order and not room_for_entries(self._state):
            self._without_room[key] = None
            return
        self._read_new(key, delivery.read_to, permitted, form)

    def _deliver(
        self, key: SubscriptionKey, seen: tuple[SeenEntry, ...] = (), begin: Offset = NOWHERE, end: Offset = NOWHERE
    ) -> Sequence[Delivering]:
        """Ask the core who gets what; the answer comes at once, since it promises nothing."""
        partition = self._state.partitions.get(key[0])
        if partition is None:
            return ()
        command = Deliver(
            topic=partition.topic,
            partition=partition.index,
            subscription=key[1],
            seen=seen,
            read_from=begin,
            read_to=end,
        )
        answers: list[Reply | Rejection] = []
        self._submit((command,), answers.extend)
        return answers[0].entries if answers and isinstance(answers[0], Delivered) else ()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_chosen(self, key: SubscriptionKey, chosen: Sequence[Delivering], form: Form) -> None:
        """Read entries that were delivered, or looked at, before, and push them."""
        end, _ = self._seen_by(key)
        by_first: dict[int, Extent] = {}
        for each in chosen:
            # Not up to the end of the entry: its batch may go on behind it, and only whole batches are found.
            for extent in self._journal.find(key[0], each.base, end, 1):
                if extent.first_offsets[0] < each.base + each.count:
                    by_first[extent.first_offsets[0]] = extent
        extents = list(by_first.values())

        def push(reads: list[Read], converted: Converted) -> None:
            found = {entry.base_offset: entry for entry in converted.entries}
            is_all = not self.unread.tell_of_faults(key, extents, reads)
            left = self._without_removed(key, chosen, found) if is_all else chosen
            self._sinks.push([Sent(each, found[each.base].batch) for each in left if each.base in found])
            if not is_all:
                self.unread.add(key, [each for each in chosen if each.base not in found])
            self._look_soon(key)

        wanted = Wanted(self._is_by_key(key), messages=frozenset(each.base for each in chosen))
        self._read(key, extents, (), wanted, form, push, chosen)

    def _read_new(self, key: SubscriptionKey, begin: Offset, permits: int, form: Form) -> None:
        """Read on from where delivery has come to, and deliver what readers of its isolation level may see of it.

        Not much more is read than consumers have permits for. Where `begin` is the position, and delivery has been
        there, the core learns what is for nobody.
        """
        partition = self._state.partitions[key[0]]
        visible_end, read_committed = self._seen_by(key)
        if begin >= visible_end:
            return
        # An entry has at least one offset, so consumers can take nothing behind this many; but they take one whole.
        limit = Offset(min(begin + permits, visible_end))
        extents = find_few(self._journal, key[0], begin, limit)
        if not extents:
            extents = self._journal.find(key[0], begin, visible_end, 1)
            limit = Offset(max(begin, extents[0].first_offsets[0]) + permits) if extents else limit
        end = Offset(extents[-1].last_offset + 1) if extents else visible_end
        left_out = aborted_between(partition, begin, end) if read_committed else ()
        aborted = [(each.producer_id, each.first_offset, each.last_offset) for each in left_out]

        def deliver(reads: list[Read], converted: Converted) -> None:
            if self.unread.tell_of_faults(key, extents, reads):
                self.unread.add(key)
                return
            # A batch that is read as several entries may have been looked at in part.
            entries = [each for each in converted.entries if each.base_offset + each.offset_count > begin]
            seen = self._seen(key, entries, form)
            batches = {each.base_offset: each.batch for each in entries}
            self._note_look_back(key, begin)
            chosen = self._deliver(key, seen, begin, end if converted.end is None else Offset(converted.end))
            if any(each.base not in batches for each in chosen):
                self._read_chosen(key, chosen, form)  # some have waited since before the read
                return
            self._sinks.push([Sent(each, batches[each.base]) for each in chosen])
            delivery = self._state.volatile.deliveries.get(key)
            if delivery is not None and delivery.read_to != begin:
                self._look_soon(key)

        wanted = Wanted(self._is_by_key(key), range(begin, limit), end=limit, most_bytes=MOST_CONVERTED_BYTES)
        self._read(key, extents, aborted, wanted, form, deliver)

    def _note_look_back(self, key: SubscriptionKey, begin: Offset) -> None:
        """Note a position, at which nothing is read again then; forget those of deliveries that have ended."""
        deliveries = self._state.volatile.deliveries
        if key in deliveries and deliveries[key].read_to != begin:
            self._looked_back[key] = begin
        if len(self._looked_back) > len(deliveries):
            self._looked_back = {each: at for each, at in self._looked_back.items() if each in deliveries}

    def _seen_by(self, key: SubscriptionKey) -> tuple[Offset, bool]:
        """Return the end of what consumers of a subscription may see, and whether they get committed messages only."""
        visible, subscription = self._visible.get(key[0]), self._state.subscription(key)
        if visible is None or subscription is None:
            return NOWHERE, True
        read_committed = reads_committed(subscription)
        return visible.offsets(read_committed)[1], read_committed

    def _is_by_key(self, key: SubscriptionKey) -> bool:
        delivery = self._state.volatile.deliveries.get(key)
        return delivery is not None and delivery.subscription_type is SubscriptionType.KEY_SHARED

    def _without_removed(
        self, key: SubscriptionKey, chosen: Sequence[Delivering], entries: Mapping[int, LogEntry]
    ) -> list[Delivering]:
        """Return what is left to push of entries; let the core acknowledge what compaction has removed of them."""
        left: list[Delivering] = []
        removed: list[Run] = []
        unused: dict[ConsumerId, int] = {}
        for each in chosen:
            entry = entries.get(each.base)
            gaps = ((each.base, Offset(each.base + each.count - 1)),) if entry is None else entry.gaps or ()
            free = list(each.free)
            for first, last in gaps:
                subtract(free, Offset(first), Offset(last))
            lost = count(each.free) - count(free)
            if lost:
                removed += [part for run in each.free for part in missing(free, *run)]
                unused[each.consumer_id] = unused.get(each.consumer_id, 0) + lost
                each = replace(each, free=tuple(free))
            if each.free:
                left.append(each)
        partition = self._state.partitions.get(key[0])
        if removed and partition is not None:
            where: dict[str, Any] = {"topic": partition.topic, "partition": partition.index, "subscription": key[1]}
            permits = [Permit(**where, consumer_id=each, permits=unused[each]) for each in unused]
            self._submit([AcknowledgeSoon(**where, runs=tuple(removed)), *permits], lambda answers: None)
        return left

    def _seen(self, key: SubscriptionKey, entries: Sequence[LogEntry], form: Form) -> tuple[SeenEntry, ...]:
        """Return what the core must know of entries; a front is asked for more only where that decides anything."""
        delivery = self._state.volatile.deliveries.get(key)
        if delivery is None or delivery.is_in_order:
            return tuple(_seen_entry(each, (-1, 0)) for each in entries)
        return tuple(_seen_entry(each, form.facts_of(each.batch)) for each in entries)

    def _read(
        self,
        key: SubscriptionKey,
        extents: list[Extent],
        aborted: Sequence[tuple[int, int, int]],
        wanted: Wanted,
        form: Form,
        done: Callable[[list[Read], Converted], None],
        chosen: Sequence[Delivering] = (),
    ) -> None:
        """Read extents without the entries of these aborted transactions, in a form.

        `chosen` are the entries that consumers were given already. `done` is not called when the engine has stopped, or
        when all consumers have gone meanwhile. Others may have come that want something else, and what was chosen is
        not theirs.
        """
        self._reading.add(key)
        delivery = self._state.volatile.deliveries.get(key)

        def read(reads: list[Read]) -> None:
            if self._has_stopped:
                return
            entries = [entry for each in reads for entry in self._records.entries(each.batches, aborted)]
            form.convert(entries, wanted, lambda converted: hand_out(reads, converted))

        def hand_out(reads: list[Read], converted: Converted | Exception) -> None:
            self._reading.discard(key)
            if self._has_stopped:
                return
            if self._state.volatile.deliveries.get(key) is not delivery:
                self._look_soon(key)
            elif isinstance(converted, Exception):  # delivery stays where it is
                logger.error("messages for subscription '%s' cannot be converted", key[1], exc_info=converted)
                self.unread.add(key, chosen)
            else:
                done(reads, converted)
            if key in self._due and not self._is_scheduled:
                self._look_soon(key)

        if extents:
            self._read_bytes[self._state.partitions[key[0]].topic] += sum(extent.size for extent in extents)
            self._reader.read(extents, read)
        else:
            read([])


def _seen_entry(entry: LogEntry, facts: tuple[int, int]) -> SeenEntry:
    gaps = tuple((Offset(first), Offset(last)) for first, last in entry.gaps or ())
    return SeenEntry(Offset(entry.base_offset), entry.offset_count, *facts, gaps)
