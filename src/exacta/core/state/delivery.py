"""Delivery of one subscription: its consumers, and which of them has which messages; a restart forgets all of it.

It goes on from the redelivery counts that acknowledgements have written (`redeliveries.py`).

Messages are delivered in *entries*: an entry is a batch of the log, whole, and goes to one consumer. An entry is named
by the offset of its first message. Exclusive and Failover subscriptions deliver in order to one active consumer, and go
back to the position when something is to be delivered again: they note no entry. Shared and Key_Shared subscriptions
note each entry until all of its messages are acknowledged. Such an entry is with a consumer, waits to be delivered
again, is delayed until its time comes, or is withheld, because open transactions have acknowledged what is left of it.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from msgspec import Struct, field

from exacta.core.ids import ConsumerId, Offset
from exacta.core.state.redeliveries import count_of
from exacta.core.state.subscription import Subscription
from exacta.core.values.runs import Run, add, runs_between, subtract
from exacta.core.values.subscriptions import IN_ORDER, KeyShared, KeySharedMode, SubscriptionType


class ConnectedConsumer(Struct):
    """A consumer that is connected."""

    consumer_id: ConsumerId
    name: str
    priority: int = 0
    """Consumers of the lowest number are served before the others."""
    permits: int = 0
    """The number of messages that it can take. A batch may make it negative."""
    held: int = 0
    """The number of messages of the entries that it has, as far as entries are noted."""


class SeenEntry(Struct, frozen=True):
    """An entry that was read from the log. `key` is the hash of its key."""

    base: Offset
    count: int
    key: int = -1
    deliver_at_ms: int = 0
    """The time before which it is not delivered; 0: it has none."""
    gaps: tuple[Run, ...] = ()
    """The offsets of it that have no message any more, because compaction has removed it; they are for nobody."""


class NotedEntry(Struct):
    """An entry that was delivered, or waits for that, and is not acknowledged as a whole."""

    base: Offset
    count: int
    key: int
    """The hash of its key; -1: it has none."""
    redeliveries: int = 0
    consumer: ConsumerId | None = None
    deliver_at_ms: int = 0
    """The time before which it is not delivered; 0: that is over, or it has none."""

    @property
    def last(self) -> Offset:
        """Return the offset of its last message."""
        return Offset(self.base + self.count - 1)


class Delivery(Struct):
    """The course of delivery."""

    subscription_type: SubscriptionType
    read_to: Offset
    """Every entry before this offset was looked at: it was delivered, waits, is acknowledged, or is for nobody."""
    consumers: dict[ConsumerId, ConnectedConsumer] = field(default_factory=dict)
    """Consumers in the order in which they came."""
    mode: KeySharedMode = KeySharedMode.AUTO_SPLIT
    is_out_of_order: bool = False
    """True if the entries of a key need no order (Key_Shared)."""
    ranges: list[tuple[int, int, ConsumerId]] = field(default_factory=list)
    """The first and last hashes of ranges, and the consumer that each belongs to, in order (STICKY)."""
    active: ConsumerId | None = None
    served: ConsumerId | None = None
    """The consumer that was served last, after which the next one has its turn."""
    entries: dict[Offset, NotedEntry] = field(default_factory=dict)
    order: list[Offset] = field(default_factory=list)
    """The names of all entries, in order."""
    waiting: list[Offset] = field(default_factory=list)
    """The names of the entries that wait to be delivered, in order."""
    delayed: list[tuple[int, Offset]] = field(default_factory=list)
    """The times before which entries are not delivered, and their names, in order."""
    key_holders: dict[int, tuple[ConsumerId, int]] = field(default_factory=dict)
    """The consumer that has entries of a key, and how many (Key_Shared). Without an order it is the latest one."""
    passed: list[Run] = field(default_factory=list)
    """Offsets that were looked at and that are for nobody: markers, aborted records, what compaction has removed."""
    forgotten_to: Offset = Offset(0)
    """`passed` has all of them from this offset on; those before it may be too many to know."""
    counts_anew: bool = False
    """True if all consumers had left since the last start: the counts of before are forgotten with them."""
    unwritten: dict[Offset, None] = field(default_factory=dict)
    """The names of entries whose redelivery counts have grown since an acknowledgement has written them."""

    @property
    def is_in_order(self) -> bool:
        """Return whether one active consumer gets everything in order."""
        return self.subscription_type in IN_ORDER

    def left(self, subscription: Subscription, first: Offset, last: Offset) -> list[Run]:
        """Return those of these messages that are for somebody, and neither acknowledged nor pending."""
        return self._for_somebody(subscription.free(first, last), first, last)

    def is_done(self, subscription: Subscription, first: Offset, last: Offset) -> bool:
        """Return whether those of these messages that are for somebody are acknowledged."""
        return not self._for_somebody(subscription.unacknowledged(first, last), first, last)

    def _for_somebody(self, runs: list[Run], first: Offset, last: Offset) -> list[Run]:
        if runs:
            for passed_first, passed_last in runs_between(self.passed, first, last):
                subtract(runs, passed_first, passed_last)
        return runs

    def take_in(self, consumer: ConnectedConsumer, shared: KeyShared) -> None:
        """Let a consumer be there, after all others."""
        self.consumers[consumer.consumer_id] = consumer
        self.mode, self.is_out_of_order = shared.mode, shared.out_of_order
        for first, last in shared.ranges:
            insort(self.ranges, (first, last, consumer.consumer_id))

    def let_go(self, consumer_id: ConsumerId) -> None:
        """Let a consumer be gone, and what it had wait to be delivered."""
        for entry in self.entries.values():
            if entry.consumer == consumer_id:
                self.take_back(entry, waits=True)
        del self.consumers[consumer_id]
        self.ranges = [each for each in self.ranges if each[2] != consumer_id]

    def pass_over(self, runs: tuple[Run, ...], most: int) -> None:
        """Note that these offsets are for nobody; forget the first ones where there are too many to know."""
        for first, last in runs:
            add(self.passed, first, last)
        if len(self.passed) > most:
            forgotten = len(self.passed) - most
            self.forgotten_to = max(self.forgotten_to, Offset(self.passed[forgotten - 1][1] + 1))
            del self.passed[:forgotten]

    def note(self, entry: NotedEntry) -> None:
        """Note an entry, which waits, or is delayed."""
        self.entries[entry.base] = entry
        insort(self.order, entry.base)
        if entry.deliver_at_ms:
            insort(self.delayed, (entry.deliver_at_ms, entry.base))
        else:
            insort(self.waiting, entry.base)

    def give(self, entry: NotedEntry, consumer: ConnectedConsumer) -> None:
        """Let a consumer have an entry that waits."""
        entry.consumer = consumer.consumer_id
        consumer.held += entry.count
        del self.waiting[bisect_left(self.waiting, entry.base)]
        _, count = self.key_holders.get(entry.key, (consumer.consumer_id, 0))
        self.key_holders[entry.key] = (consumer.consumer_id, count + 1)

    def take_back(self, entry: NotedEntry, *, waits: bool) -> None:
        """Let no consumer have an entry any more; it waits to be delivered, unless it is delayed, or is withheld."""
        if entry.consumer is not None:
            holder, count = self.key_holders[entry.key]
            if count == 1:
                del self.key_holders[entry.key]
            else:
                self.key_holders[entry.key] = (holder, count - 1)
            self.consumers[entry.consumer].held -= entry.count
            entry.consumer = None
        is_waiting = self.is_waiting(entry.base)
        if waits and not is_waiting and not entry.deliver_at_ms:
            insort(self.waiting, entry.base)
        elif is_waiting and not waits:
            del self.waiting[bisect_left(self.waiting, entry.base)]

    def is_waiting(self, base: Offset) -> bool:
        """Return whether an entry waits to be delivered."""
        place = bisect_left(self.waiting, base)
        return place < len(self.waiting) and self.waiting[place] == base

    def forget(self, entry: NotedEntry) -> None:
        """Forget an entry of which nothing is left to acknowledge."""
        self.take_back(entry, waits=False)
        self.end_delay(entry)
        self.unwritten.pop(entry.base, None)
        del self.entries[entry.base]
        del self.order[bisect_left(self.order, entry.base)]

    def redeliveries_of(self, subscription: Subscription, base: Offset) -> int:
        """Return how often an entry was delivered again; one that is not noted, as an acknowledgement has written."""
        entry = self.entries.get(base)
        if entry is not None:
            return entry.redeliveries
        return 0 if self.counts_anew or not subscription.redelivered else count_of(subscription.redelivered, base)

    def count_again(self, subscription: Subscription, entry: NotedEntry) -> None:
        """Count that an entry is delivered once more."""
        entry.redeliveries += 1
        if subscription.is_durable and entry.redeliveries > count_of(subscription.redelivered, entry.base):
            self.unwritten[entry.base] = None

    def end_delay(self, entry: NotedEntry) -> None:
        """Let an entry have no time before which it is not delivered."""
        if entry.deliver_at_ms:
            del self.delayed[bisect_left(self.delayed, (entry.deliver_at_ms, entry.base))]
            entry.deliver_at_ms = 0

    def begin_again(self, position: Offset) -> None:
        """Deliver from the position on, whatever was delivered before."""
        self.read_to = position
        self.forgotten_to = Offset(0)
        self.entries.clear()
        self.order.clear()
        self.waiting.clear()
        self.delayed.clear()
        self.unwritten.clear()
        self.key_holders.clear()
        for consumer in self.consumers.values():
            consumer.held = 0
        subtract(self.passed, Offset(0), Offset(position - 1))

    def touching(self, first: Offset, last: Offset) -> Iterator[NotedEntry]:
        """Yield the entries that have one of these messages; they may be forgotten meanwhile."""
        start = bisect_left(self.order, first)
        if start and self.entries[self.order[start - 1]].last >= first:
            start -= 1
        for base in self.order[start : bisect_left(self.order, last + 1)]:
            yield self.entries[base]
