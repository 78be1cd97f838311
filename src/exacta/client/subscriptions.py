"""See and move the subscriptions of Apache Pulsar's clients on an Exacta: DescribeSubscriptions, ResetSubscription."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.errors import UnsupportedByBroker
from exacta.client.handles import handle_name
from exacta.client.lag import BlockingTransaction
from exacta.client.routing import Anyone, Client
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17787_describe_subscriptions import (
    DescribeSubscriptionsRequest,
    TopicRequest,
)
from exacta.protocol.kafka.messages.k17788_reset_subscription import (
    PartitionReset,
    ResetSubscriptionRequest,
    TopicReset,
)

EARLIEST, LATEST = -2, -1
"""These stand for the start of the log and for its end, as offsets to go to."""

_READ_UNCOMMITTED = 1
"""An isolation level of subscriptions, by the numbers of PIP-298."""

TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")
WAITS = (
    "no consumer is connected",
    "no consumer that could be served has asked for messages",
    "every consumer that asks has as many unacknowledged messages as one may have",
    "as many entries are unacknowledged as one subscription may have",
    "as many runs are acknowledged out of order as one subscription may have: the oldest messages must come first",
    "entries wait until the consumer of their key takes them",
    "open transactions have acknowledged messages, which come again if these abort",
    "an open transaction has written to the partition, and holds back what follows its first message",
    "entries are delayed until the time that their producers have named",
    "messages could not be read: the broker's log says why, and it tries again every 10 s",
    "as many entries are unacknowledged as all subscriptions together may have",
)

_NOT_RETRIED = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""The topic is looked for where it would be: asking again finds nothing else."""

Run = tuple[int, int]
"""The first and the last offset of consecutive messages."""


class Consumer(NamedTuple):
    """A consumer that is connected. `is_active`: an Exclusive or Failover subscription delivers to it."""

    name: str
    priority: int
    permits: int
    held: int
    is_active: bool


class Pending(NamedTuple):
    """The messages that an open transaction has acknowledged.

    The transaction has acknowledged all messages before `before`, too, unless that is None. `runs` are the first ones.
    """

    transaction: str
    before: int | None
    run_count: int
    runs: tuple[Run, ...]


class Details(NamedTuple):
    """The parts of a subscription that a list does not have. The first 100 runs and transactions are known."""

    created_ms: int
    uncommitted: int
    """The messages that open transactions have written; they are among those that are held back."""
    acknowledged_runs: tuple[Run, ...]
    pending: tuple[Pending, ...]
    consumers: tuple[Consumer, ...]
    noted_entries: int
    waiting_entries: int
    redelivered_entries: int
    most_redeliveries: int
    waits: tuple[str, ...]
    properties: dict[str, str]
    last_stable_offset: int
    high_watermark: int
    is_over_quota: bool
    """True if nothing is appended, because more is kept for subscriptions than the topic's backlog quota allows."""
    held_by: tuple[BlockingTransaction, ...]


class Subscription(NamedTuple):
    """A subscription of one partition. `left`: the messages that it will get and has not acknowledged."""

    partition: TopicPartition
    name: str
    subscription_type: str
    is_durable: bool
    """False: it is a reader's, and gone with its last consumer and with a restart."""
    reads_uncommitted: bool
    """True: it also gets the messages of open and of aborted transactions."""
    position: int
    consumer_count: int
    left: int
    pending: int
    """The messages that open transactions have acknowledged."""
    held_back: int
    """The messages that are behind an open transaction, or in one."""
    run_count: int
    pending_count: int
    details: Details | None


class Target(NamedTuple):
    """The place where a subscription is to go on: a time where one is given, else an offset, `EARLIEST` or `LATEST`."""

    offset: int = LATEST
    timestamp_ms: int = -1


class Reset(NamedTuple):
    """The outcome of a reset in one partition; `error` is None where it is done, or can be."""

    partition: int
    error: ErrorCode | None
    old_position: int
    position: int
    closed_consumers: int


def describe_subscriptions(
    client: Client,
    topics: Iterable[str] | None = None,
    names: Iterable[str] | None = None,
    *,
    partition: int | None = None,
    details: bool = False,
    page: int = 1000,
    deadline: Deadline | None = None,
) -> Iterator[Subscription]:
    """Yield subscriptions in the order of topics, partitions and names, page by page.

    Raises `UnsupportedByBroker` on any other cluster than an Exacta, and what `Client.call` raises. A topic that is not
    there has no subscriptions.
    """
    indexes = None if partition is None else [partition]
    request = DescribeSubscriptionsRequest(
        topics=None if topics is None else [TopicRequest(name=each, partitions=indexes) for each in topics],
        subscriptions=None if names is None else list(names),
        include_details=details,
        subscription_limit=page,
    )
    _check_exacta(client, request, deadline)
    while True:
        reply = client.call(
            Anyone(),
            request,
            what="looking at subscriptions",
            codes=lambda reply: (reply.error_code, *_refusals(reply)),
            deadline=deadline,
        )
        for topic in reply.topics:
            for found in topic.partitions:
                at = TopicPartition(topic.name, found.partition_index)
                yield from (_subscription(at, found, each, reply.now_ms, details) for each in found.subscriptions)
        if reply.next_cursor is None:
            return
        request.cursor = reply.next_cursor


def reset_subscription(
    client: Client,
    topic: str,
    name: str,
    partitions: Iterable[int],
    to: Target,
    *,
    dry_run: bool = False,
    deadline: Deadline | None = None,
) -> list[Reset]:
    """Let a subscription go on elsewhere; a time stands for the first message of that time or later.

    Its consumers are disconnected, and connect again. Raises what `describe_subscriptions` raises.
    """
    wanted = [
        PartitionReset(partition_index=each, offset=to.offset, timestamp_ms=to.timestamp_ms) for each in partitions
    ]
    request = ResetSubscriptionRequest(
        subscription=name, topics=[TopicReset(name=topic, partitions=wanted)], validate_only=dry_run
    )
    _check_exacta(client, request, deadline)
    reply = client.call(
        Anyone(),
        request,
        what=f"moving subscription '{name}' of topic '{topic}'",
        codes=lambda reply: (
            each.error_code
            for found in reply.topics
            for each in found.partitions
            if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ),
        deadline=deadline,
    )
    return [
        Reset(
            each.partition_index,
            ErrorCode(each.error_code) if each.error_code else None,
            each.old_position,
            each.position,
            each.closed_consumers,
        )
        for found in reply.topics
        for each in found.partitions
    ]


def _check_exacta(client: Client, request: Any, deadline: Deadline | None) -> None:
    if not client.offers(Anyone(), request, deadline):
        raise UnsupportedByBroker(f"{client.bootstrap} is not an Exacta, or is an older one: it shows no subscriptions")


def _refusals(reply: Any) -> Iterator[int]:
    return (each.error_code for each in reply.topics if each.error_code not in _NOT_RETRIED)


def _subscription(at: TopicPartition, partition: Any, found: Any, now_ms: int, details: bool) -> Subscription:
    return Subscription(
        partition=at,
        name=found.name,
        subscription_type=_word(TYPES, found.subscription_type, "type"),
        is_durable=found.is_durable,
        reads_uncommitted=found.isolation_level == _READ_UNCOMMITTED,
        position=found.position,
        consumer_count=found.consumer_count,
        left=found.left_messages,
        pending=found.pending_messages,
        held_back=found.held_back_messages,
        run_count=found.acknowledged_run_count,
        pending_count=found.pending_transaction_count,
        details=_details(partition, found, now_ms) if details else None,
    )


def _details(partition: Any, found: Any, now_ms: int) -> Details:
    return Details(
        created_ms=found.created_ms,
        uncommitted=found.uncommitted_messages,
        acknowledged_runs=_runs(found.acknowledged_runs),
        pending=tuple(
            Pending(
                handle_name(each.transaction_id),
                None if each.before_offset < 0 else each.before_offset,
                each.run_count,
                _runs(each.runs),
            )
            for each in found.pending
        ),
        consumers=tuple(
            Consumer(each.name, each.priority, each.permits, each.held_messages, each.is_active)
            for each in found.consumers
        ),
        noted_entries=found.noted_entries,
        waiting_entries=found.waiting_entries,
        redelivered_entries=found.redelivered_entries,
        most_redeliveries=found.most_redeliveries,
        waits=tuple(_word(WAITS, each, "reason") for each in found.waits_for),
        properties={each.key: each.value for each in found.properties},
        last_stable_offset=partition.last_stable_offset,
        high_watermark=partition.high_watermark,
        is_over_quota=partition.is_over_quota,
        held_by=tuple(
            BlockingTransaction(each.transactional_id, each.first_offset, now_ms - each.start_ms)
            for each in partition.open_transactions
        ),
    )


def _runs(runs: Sequence[Any]) -> tuple[Run, ...]:
    return tuple((each.first_offset, each.last_offset) for each in runs)


def _word(words: Sequence[str], number: int, what: str) -> str:
    """Return a word by its number; a newer broker may have more of them."""
    return words[number] if 0 <= number < len(words) else f"{what} {number}"
