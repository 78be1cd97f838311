"""Views of subscriptions: lists page by page, descriptions, and why delivery waits; `backlog.py` has the numbers.

A page goes on after the last subscription of the one before, in the order of topics, partitions and names. It ends
after this many subscriptions, or when what was looked at for them has a certain size.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import nsmallest

from msgspec import Struct, field

from exacta.core.groups.lag import blocking_transactions
from exacta.core.ids import Offset, PartitionId, TransactionId
from exacta.core.state.delivery import Delivery
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.subscription import Subscription
from exacta.core.state.transaction import handle_name
from exacta.core.subscriptions.delivering import looks_further, permits, room_for_entries
from exacta.core.subscriptions.isolation import end_of, isolation_of
from exacta.core.values.limits import Limits
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType
from exacta.readmodel import subscriptions as told
from exacta.readmodel.subscriptions import Place

FIRST: Place = ("", -1, "")


MOST_SHOWN = 100
"""This many runs, and this many transactions, are shown of one subscription. Their numbers are shown in any case."""

TYPES = {
    SubscriptionType.EXCLUSIVE: "Exclusive",
    SubscriptionType.SHARED: "Shared",
    SubscriptionType.FAILOVER: "Failover",
    SubscriptionType.KEY_SHARED: "Key_Shared",
}
"""The types by the names that Pulsar clients read."""


class WaitReason(StrEnum):
    """A reason why messages of a subscription are not delivered now."""

    NO_CONSUMER = "no consumer is connected"
    NO_PERMITS = "no consumer that could be served has asked for messages"
    FULL_CONSUMERS = "every consumer that asks has as many unacknowledged messages as one may have"
    MANY_ENTRIES = "as many entries are unacknowledged as one subscription may have"
    MANY_RUNS = (
        "as many runs are acknowledged out of order as one subscription may have: the oldest messages must come first"
    )
    KEY = "entries wait until the consumer of their key takes them"
    PENDING = "open transactions have acknowledged messages, which come again if these abort"
    HELD_BACK = "an open transaction has written to the partition, and holds back what follows its first message"
    DELAYED = "entries are delayed until the time that their producers have named"
    UNREADABLE = "messages could not be read: the broker's log says why, and it tries again every 10 s"
    """The engine knows of it."""
    NO_ROOM = "as many entries are unacknowledged as all subscriptions together may have"


class PendingRuns(Struct, frozen=True, kw_only=True):
    """The messages of a subscription that an open transaction has acknowledged."""

    transaction_id: TransactionId
    runs: tuple[Run, ...]
    before: Offset
    """All messages before this offset, too; 0: only those of the runs."""


class DescribedSubscription(Struct, frozen=True, kw_only=True):
    """A subscription, with all that its backlog is counted by (`backlog.py`)."""

    partition_id: PartitionId
    reads_committed: bool
    acknowledged: tuple[Run, ...]
    pending: tuple[PendingRuns, ...]
    told: told.SubscriptionDescription
    """The subscription as it is shown, in which nothing is counted yet."""


class SubscriptionsWanted(Struct, frozen=True, kw_only=True):
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


def page_of(state: State, wanted: SubscriptionsWanted, now_ms: int = 0) -> Page:
    """Describe the subscriptions that are wanted, up to a bound. `now_ms` is for the age of transactions."""
    page, size = Page(), 0
    for number, partition in enumerate(_partitions(state, wanted)):
        if number == wanted.most_partitions:
            page.end = partition.topic, partition.index, ""
            return page
        after = wanted.after[2] if (partition.topic, partition.index) == wanted.after[:2] else ""
        names = _names(state.subscription_names(partition.partition_id), wanted, after)
        for name in nsmallest(wanted.most + 1 - len(page.subscriptions), names):
            if len(page.subscriptions) == wanted.most or size >= wanted.most_size:
                page.end = page.subscriptions[-1].told.place
                return page
            subscription = state.subscription((partition.partition_id, name))
            assert subscription is not None
            found = _described(state, now_ms if wanted.has_details else None, partition, subscription)
            page.subscriptions.append(found)
            size += _size(found)
    return page


def _partitions(state: State, wanted: SubscriptionsWanted) -> Iterator[Partition]:
    for name in sorted(each for each in wanted.topics if each >= wanted.after[0]):
        topic = state.topics.get(name)
        if topic is None:
            continue
        indexes = wanted.topics[name]
        for index, partition_id in enumerate(topic.partition_ids):
            is_wanted = indexes is None or index in indexes
            if is_wanted and (name, index) >= wanted.after[:2]:
                yield state.partitions[partition_id]


def _names(known: Iterable[str], wanted: SubscriptionsWanted, after: str) -> Iterator[str]:
    """Yield the names after one that are wanted, in any order."""
    return (each for each in known if each > after and (wanted.names is None or each in wanted.names))


def _size(found: DescribedSubscription) -> int:
    """Return how much was looked at for a subscription."""
    runs = len(found.acknowledged) + sum(len(each.runs) for each in found.pending)
    noted = 0 if found.told.details is None else found.told.details.noted_entries
    return runs + len(found.pending) + found.told.consumer_count + noted


def _described(
    state: State, now_ms: int | None, partition: Partition, subscription: Subscription
) -> DescribedSubscription:
    """Describe a subscription; its details as of `now_ms`, or without them."""
    delivery = state.volatile.deliveries.get((partition.partition_id, subscription.name))
    reads_committed = isolation_of(subscription) is IsolationLevel.READ_COMMITTED
    pending = tuple(_pending(subscription))
    return DescribedSubscription(
        partition_id=partition.partition_id,
        reads_committed=reads_committed,
        acknowledged=tuple(subscription.acknowledged),
        pending=pending,
        told=told.SubscriptionDescription(
            topic=partition.topic,
            partition=partition.index,
            name=subscription.name,
            subscription_type=TYPES[subscription.subscription_type],
            is_durable=subscription.is_durable,
            reads_uncommitted=not reads_committed,
            created_ms=subscription.created_ms,
            position=subscription.position,
            log_start_offset=partition.log_start_offset,
            last_stable_offset=partition.last_stable_offset,
            high_watermark=partition.next_offset,
            is_over_quota=partition.partition_id in state.volatile.refusing,
            consumer_count=0 if delivery is None else len(delivery.consumers),
            left=0,
            pending=0,
            held_back=0,
            run_count=len(subscription.acknowledged),
            pending_count=len(pending),
            details=None if now_ms is None else _details(state, now_ms, partition, subscription, delivery, pending),
        ),
    )


def _pending(subscription: Subscription) -> Iterator[PendingRuns]:
    cumulative = subscription.cumulative
    transactions = dict.fromkeys(subscription.pending)
    if cumulative is not None:
        transactions[cumulative.transaction_id] = None
    for transaction_id in transactions:
        runs, before = subscription.pending_of(transaction_id)
        yield PendingRuns(transaction_id=transaction_id, runs=tuple(runs), before=before)


def _details(
    state: State,
    now_ms: int,
    partition: Partition,
    subscription: Subscription,
    delivery: Delivery | None,
    pending: Sequence[PendingRuns],
) -> told.Details:
    entries = {} if delivery is None else delivery.entries
    counts = [each.redeliveries for each in entries.values() if each.redeliveries]
    has_room = room_for_entries(state) > 0
    return told.Details(
        uncommitted=_uncommitted(partition, subscription.position),
        acknowledged_runs=tuple(subscription.acknowledged[:MOST_SHOWN]),
        pending=tuple(
            told.Pending(
                transaction=handle_name(each.transaction_id),
                before=each.before or None,
                run_count=len(each.runs),
                runs=each.runs[:MOST_SHOWN],
            )
            for each in pending[:MOST_SHOWN]
        ),
        consumers=tuple(_consumers(delivery)),
        noted_entries=len(entries),
        waiting_entries=0 if delivery is None else len(delivery.waiting),
        redelivered_entries=len(counts),
        most_redeliveries=max(counts, default=0),
        waits=tuple(waits(partition, subscription, delivery, state.limits, has_room=has_room)),
        properties=dict(subscription.properties),
        held_by=tuple(blocking_transactions(state, now_ms, partition)),
    )


def _consumers(delivery: Delivery | None) -> Iterator[told.ConsumerDescription]:
    for each in () if delivery is None else delivery.consumers.values():
        yield told.ConsumerDescription(
            consumer_id=each.consumer_id,
            name=each.name,
            priority=each.priority,
            permits=each.permits,
            held=each.held,
            is_active=delivery is not None and delivery.active == each.consumer_id,
        )


def waits(
    partition: Partition, subscription: Subscription, delivery: Delivery | None, limits: Limits, *, has_room: bool
) -> Iterator[WaitReason]:
    """Yield every reason why messages that there are, or will be, are not delivered now."""
    if delivery is None or not delivery.consumers:
        yield WaitReason.NO_CONSUMER
    else:
        if not permits(delivery):
            yield WaitReason.NO_PERMITS
        elif not delivery.is_in_order and _are_full(delivery, limits):
            yield WaitReason.FULL_CONSUMERS
        if not looks_further(subscription, delivery, limits):
            if len(subscription.acknowledged) >= limits.max_acknowledged_runs:
                yield WaitReason.MANY_RUNS
            elif len(delivery.entries) >= limits.max_noted_entries:
                yield WaitReason.MANY_ENTRIES
        elif not has_room and not delivery.is_in_order:
            yield WaitReason.NO_ROOM
        if delivery.delayed:
            yield WaitReason.DELAYED
        if delivery.waiting and delivery.subscription_type is SubscriptionType.KEY_SHARED:
            yield WaitReason.KEY
    if subscription.withholds:
        yield WaitReason.PENDING
    if end_of(partition, subscription) < partition.next_offset:
        yield WaitReason.HELD_BACK


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
