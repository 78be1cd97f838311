"""Views of subscriptions: lists page by page, descriptions, and why delivery waits; `backlog.py` has the numbers.

A page goes on after the last subscription of the one before, in the order of topics, partitions and names. It ends
after so many subscriptions, or when what was looked at for them has a certain size.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import IntEnum
from heapq import nsmallest

from msgspec import Struct, field

from exacta.core.groups.lag import OpenTransaction, open_transactions_of
from exacta.core.ids import ConsumerId, Offset, PartitionId, TransactionId
from exacta.core.state.delivery import Delivery
from exacta.core.state.limits import Limits
from exacta.core.state.partition import Partition
from exacta.core.state.runs import Run
from exacta.core.state.state import State
from exacta.core.state.subscription import IsolationLevel, Subscription, SubscriptionType
from exacta.core.subscriptions.delivering import looks_further, permits, room_for_entries
from exacta.core.subscriptions.isolation import end_of, isolation_of

Place = tuple[str, int, str]
"""The topic, the partition's index, and the name of a subscription; pages are in this order."""

FIRST: Place = ("", -1, "")


class Wait(IntEnum):
    """A reason why messages of a subscription are not delivered now. The numbers are those of DescribeSubscriptions."""

    NO_CONSUMER = 0
    """The subscription has no consumer that is connected."""
    NO_PERMITS = 1
    """The consumers that could be served have asked for no messages."""
    FULL_CONSUMERS = 2
    """Every consumer that asks has as many unacknowledged messages as one may have."""
    MANY_ENTRIES = 3
    """The subscription has as many entries that are delivered and not acknowledged as it may have."""
    MANY_RUNS = 4
    """The subscription has as many acknowledged runs as it may have: the oldest messages must come first."""
    KEY = 5
    """Entries wait until their key's consumer takes them."""
    PENDING = 6
    """Open transactions have acknowledged messages: they come again if these abort."""
    HELD_BACK = 7
    """An open transaction has written to the partition: what lies behind its first message waits for its end."""
    DELAYED = 8
    """Entries wait for the time that their producers have named. If these are too many, the others wait, too."""
    UNREADABLE = 9
    """The disk has not given messages, or they could not be converted. The engine knows, and tries again."""
    NO_ROOM = 10
    """All subscriptions together have noted as many entries as the broker remembers."""


class DescribedConsumer(Struct, frozen=True, kw_only=True):
    """A consumer that is connected."""

    consumer_id: ConsumerId
    name: str
    priority: int
    permits: int
    held: int
    is_active: bool
    """True if an Exclusive or Failover subscription delivers to it."""


class DescribedPending(Struct, frozen=True, kw_only=True):
    """The messages of a subscription that an open transaction has acknowledged."""

    transaction_id: TransactionId
    runs: tuple[Run, ...]
    before: Offset
    """All messages before this offset, too; 0: only those of the runs."""


class DescribedEntries(Struct, frozen=True, kw_only=True):
    """The entries that a Shared or Key_Shared subscription has noted: delivered or waiting, and not acknowledged."""

    noted: int = 0
    waiting: int = 0
    redelivered: int = 0
    """The number of entries that were delivered more than once, or will be."""
    most_redeliveries: int = 0


class Details(Struct, frozen=True, kw_only=True):
    """The parts of a subscription that a list does not show."""

    consumers: tuple[DescribedConsumer, ...]
    entries: DescribedEntries
    properties: Mapping[str, str]
    waits: tuple[Wait, ...]
    uncommitted: int
    """The messages from the position on that open transactions have written."""
    open_transactions: tuple[OpenTransaction, ...]
    """The oldest open transactions that have written to the partition."""


class DescribedSubscription(Struct, frozen=True, kw_only=True):
    """A subscription, and the ends of its partition."""

    partition_id: PartitionId
    topic: str
    index: int
    name: str
    subscription_type: SubscriptionType
    is_durable: bool
    isolation_level: IsolationLevel
    created_ms: int
    position: Offset
    log_start_offset: Offset
    last_stable_offset: Offset
    high_watermark: Offset
    is_over_quota: bool
    """True if the partition takes no batches, because it keeps more for its subscriptions than it may."""
    consumer_count: int
    acknowledged: tuple[Run, ...]
    pending: tuple[DescribedPending, ...]
    details: Details | None

    @property
    def reads_committed(self) -> bool:
        """Return whether it gets messages of committed transactions only."""
        return self.isolation_level is IsolationLevel.READ_COMMITTED

    @property
    def place(self) -> Place:
        """Return its place in the order of pages."""
        return self.topic, self.index, self.name


class Wanted(Struct, frozen=True, kw_only=True):
    """A question for a page of subscriptions."""

    topics: Mapping[str, Container[int] | None]
    """The indexes that are wanted of each topic; None: all. A topic that is not there has no subscriptions."""
    names: frozenset[str] | None = None
    """The names that are wanted; None: all."""
    after: Place = FIRST
    most: int
    most_size: int
    most_partitions: int
    """The number of partitions that are looked at for one page."""
    has_details: bool = False


class Page(Struct):
    """A part of the subscriptions. Those follow that are behind `end`; None: there are no more."""

    subscriptions: list[DescribedSubscription] = field(default_factory=list)
    end: Place | None = None


def page_of(state: State, wanted: Wanted) -> Page:
    """Describe the subscriptions that are wanted, up to a bound."""
    page, size = Page(), 0
    for number, partition in enumerate(_partitions(state, wanted)):
        if number == wanted.most_partitions:
            page.end = partition.topic, partition.index, ""
            return page
        after = wanted.after[2] if (partition.topic, partition.index) == wanted.after[:2] else ""
        names = _names(state.subscription_names(partition.partition_id), wanted, after)
        for name in nsmallest(wanted.most + 1 - len(page.subscriptions), names):
            if len(page.subscriptions) == wanted.most or size >= wanted.most_size:
                page.end = page.subscriptions[-1].place
                return page
            subscription = state.subscription((partition.partition_id, name))
            assert subscription is not None
            found = _described(state, partition, subscription, has_details=wanted.has_details)
            page.subscriptions.append(found)
            size += _size(found)
    return page


def _partitions(state: State, wanted: Wanted) -> Iterator[Partition]:
    for name in sorted(each for each in wanted.topics if each >= wanted.after[0]):
        topic = state.topics.get(name)
        if topic is None:
            continue
        indexes = wanted.topics[name]
        for index, partition_id in enumerate(topic.partition_ids):
            is_wanted = indexes is None or index in indexes
            if is_wanted and (name, index) >= wanted.after[:2]:
                yield state.partitions[partition_id]


def _names(known: Iterable[str], wanted: Wanted, after: str) -> Iterator[str]:
    """Yield the names after one that are wanted, in any order."""
    return (each for each in known if each > after and (wanted.names is None or each in wanted.names))


def _size(found: DescribedSubscription) -> int:
    """Return how much was looked at for a subscription."""
    runs = len(found.acknowledged) + sum(len(each.runs) for each in found.pending)
    noted = 0 if found.details is None else found.details.entries.noted
    return runs + len(found.pending) + found.consumer_count + noted


def _described(
    state: State, partition: Partition, subscription: Subscription, *, has_details: bool
) -> DescribedSubscription:
    delivery = state.volatile.deliveries.get((partition.partition_id, subscription.name))
    return DescribedSubscription(
        partition_id=partition.partition_id,
        topic=partition.topic,
        index=partition.index,
        name=subscription.name,
        subscription_type=subscription.subscription_type,
        is_durable=subscription.is_durable,
        isolation_level=isolation_of(subscription),
        created_ms=subscription.created_ms,
        position=subscription.position,
        log_start_offset=partition.log_start_offset,
        last_stable_offset=partition.last_stable_offset,
        high_watermark=partition.next_offset,
        is_over_quota=partition.partition_id in state.volatile.refusing,
        consumer_count=0 if delivery is None else len(delivery.consumers),
        acknowledged=tuple(subscription.acknowledged),
        pending=tuple(_pending(subscription)),
        details=_details(state, partition, subscription, delivery) if has_details else None,
    )


def _pending(subscription: Subscription) -> Iterator[DescribedPending]:
    cumulative = subscription.cumulative
    transactions = dict.fromkeys(subscription.pending)
    if cumulative is not None:
        transactions[cumulative.transaction_id] = None
    for transaction_id in transactions:
        runs, before = subscription.pending_of(transaction_id)
        yield DescribedPending(transaction_id=transaction_id, runs=tuple(runs), before=before)


def _details(state: State, partition: Partition, subscription: Subscription, delivery: Delivery | None) -> Details:
    consumers = () if delivery is None else delivery.consumers.values()
    return Details(
        consumers=tuple(
            DescribedConsumer(
                consumer_id=each.consumer_id,
                name=each.name,
                priority=each.priority,
                permits=each.permits,
                held=each.held,
                is_active=delivery is not None and delivery.active == each.consumer_id,
            )
            for each in consumers
        ),
        entries=DescribedEntries() if delivery is None else _entries(delivery),
        properties=dict(subscription.properties),
        waits=tuple(waits(partition, subscription, delivery, state.limits, has_room=room_for_entries(state) > 0)),
        uncommitted=_uncommitted(partition, subscription.position),
        open_transactions=tuple(open_transactions_of(state, partition)),
    )


def _entries(delivery: Delivery) -> DescribedEntries:
    counts = [each.redeliveries for each in delivery.entries.values() if each.redeliveries]
    return DescribedEntries(
        noted=len(delivery.entries),
        waiting=len(delivery.waiting),
        redelivered=len(counts),
        most_redeliveries=max(counts, default=0),
    )


def waits(
    partition: Partition, subscription: Subscription, delivery: Delivery | None, limits: Limits, *, has_room: bool
) -> Iterator[Wait]:
    """Yield every reason why messages that there are, or will be, are not delivered now."""
    if delivery is None or not delivery.consumers:
        yield Wait.NO_CONSUMER
    else:
        if not permits(delivery):
            yield Wait.NO_PERMITS
        elif not delivery.is_in_order and _are_full(delivery, limits):
            yield Wait.FULL_CONSUMERS
        if not looks_further(subscription, delivery, limits):
            if len(subscription.acknowledged) >= limits.max_acknowledged_runs:
                yield Wait.MANY_RUNS
            elif len(delivery.entries) >= limits.max_noted_entries:
                yield Wait.MANY_ENTRIES
        elif not has_room and not delivery.is_in_order:
            yield Wait.NO_ROOM
        if delivery.delayed:
            yield Wait.DELAYED
        if delivery.waiting and delivery.subscription_type is SubscriptionType.KEY_SHARED:
            yield Wait.KEY
    if subscription.withholds:
        yield Wait.PENDING
    if end_of(partition, subscription) < partition.next_offset:
        yield Wait.HELD_BACK


def _are_full(delivery: Delivery, limits: Limits) -> bool:
    asking = (each for each in delivery.consumers.values() if each.permits > 0)
    return all(each.held >= limits.max_unacknowledged_per_consumer for each in asking)


def _uncommitted(partition: Partition, position: Offset) -> int:
    """Count the messages of open transactions from the position on; a run of theirs has nothing else in it."""
    begin = max(position, partition.log_start_offset)
    return sum(
        max(0, last + 1 - max(first, begin))
        for runs in partition.open_runs.values()
        for first, last in zip(runs[::2], runs[1::2], strict=True)
    )
