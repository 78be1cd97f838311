"""DescribeSubscriptions tells of Apache Pulsar's subscriptions, page by page, and counts their backlogs. Exacta's own.

The answer is taken from one state, once all of it lies in the journal, where the messages are counted. A page is
bounded in what is looked at for it. `k17784_end_transactions` says why our own keys begin where they do.
"""

from collections.abc import Iterable, Sequence, Set
from itertools import groupby, islice

from exacta.core.ids import Offset
from exacta.core.state.runs import Run
from exacta.core.state.state import State
from exacta.core.subscriptions.description import (
    FIRST,
    DescribedPending,
    DescribedSubscription,
    Page,
    Place,
    Wait,
    Wanted,
    page_of,
)
from exacta.front.backlog_counts import Backlog, count_backlogs
from exacta.kafka.access import describable_topics
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside, Shown
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k17787_describe_subscriptions as wire
from exacta.protocol.kafka.messages.k17787_describe_subscriptions import (
    DescribeSubscriptionsRequest,
    DescribeSubscriptionsResponse,
)

KEY = ApiKey.DESCRIBE_SUBSCRIPTIONS
MIN_VERSION = 0
MAX_VERSION = 0

MOST_SUBSCRIPTIONS = 1_000
"""The bound on subscriptions of one answer, whatever a client asks for."""

MOST_SIZE = 100_000
"""A page ends when so many runs, consumers and entries were looked at for it. The last subscription may have more."""

MOST_PARTITIONS = 2_500
"""A page also ends when so many partitions were looked at for it. It may be empty, and others follow."""

MOST_NAMED = 10_000
"""The topics that one request names: each page sorts them, and says of all which are not there."""

MOST_SHOWN = 100
"""So many runs, and so many transactions, are shown of one subscription. Their numbers are shown in any case."""

NEEDS = (
    Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
    Shown(
        Operation.DESCRIBE,
        ResourceKind.TRANSACTIONAL_ID,
        "topics.partitions.open_transactions",
        name="transactional_id",
    ),
)


def handle(broker: BrokerContext, request: DescribeSubscriptionsRequest, context: RequestContext, reply: Reply) -> None:
    """Describe a page of the subscriptions that are wanted, and name the topics that are not there."""
    if request.topics is not None and len(request.topics) > MOST_NAMED:
        reply(DescribeSubscriptionsResponse(error_code=ErrorCode.POLICY_VIOLATION))
        return
    response = DescribeSubscriptionsResponse()
    named = None if request.topics is None else list(dict.fromkeys(each.name for each in request.topics))
    if named is not None:
        seen = frozenset(describable_topics(broker, context, named))
        response.topics = [_refused(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for each in named if each not in seen]
        if named and not seen:
            reply(response)
            return

    def view(state: State, now_ms: int) -> Page:
        response.now_ms = now_ms
        if named is None:
            return page_of(state, _wanted(request, frozenset(describable_topics(broker, context, state.topics))))
        unknown = (each for each in named if each in seen and each not in state.topics)
        response.topics += [_refused(each, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for each in unknown]
        return page_of(state, _wanted(request, seen))

    def described(page: Page) -> None:
        count_backlogs(broker, context, page.subscriptions, lambda backlogs: counted(page, backlogs))

    def counted(page: Page, backlogs: list[Backlog]) -> None:
        unread = broker.engine.dispatcher.unread
        unreadable = {each.place for each in page.subscriptions if (each.partition_id, each.name) in unread}
        response.topics += _topics(page.subscriptions, backlogs, unreadable)
        if page.end is not None:
            topic, index, name = page.end
            response.next_cursor = wire.Cursor(topic_name=topic, partition_index=index, subscription=name)
        reply(response)

    broker.read(context, view, described)


def _wanted(request: DescribeSubscriptionsRequest, allowed: frozenset[str]) -> Wanted:
    topics: dict[str, frozenset[int] | None] = dict.fromkeys(allowed)
    for each in request.topics or ():
        if each.name in topics and each.partitions is not None:
            topics[each.name] = frozenset(each.partitions) | (topics[each.name] or frozenset())
    names = request.subscriptions
    return Wanted(
        topics=topics,
        names=None if names is None else frozenset(names),
        after=_place(request.cursor),
        most=max(1, min(request.subscription_limit, MOST_SUBSCRIPTIONS)),
        most_size=MOST_SIZE,
        most_partitions=MOST_PARTITIONS,
        has_details=request.include_details,
    )


def _place(cursor: wire.Cursor | None) -> Place:
    return FIRST if cursor is None else (cursor.topic_name, cursor.partition_index, cursor.subscription)


def _refused(name: str, code: ErrorCode) -> wire.DescribedTopic:
    return wire.DescribedTopic(name=name, error_code=code)


def _topics(
    found: Sequence[DescribedSubscription], backlogs: Sequence[Backlog], unreadable: Set[Place]
) -> Iterable[wire.DescribedTopic]:
    pairs = zip(found, backlogs, strict=True)
    for topic, of_topic in groupby(pairs, key=lambda pair: pair[0].topic):
        partitions = [
            _partition(index, list(of_partition), unreadable)
            for index, of_partition in groupby(of_topic, key=lambda pair: pair[0].index)
        ]
        yield wire.DescribedTopic(name=topic, partitions=partitions)


def _partition(
    index: int, pairs: Sequence[tuple[DescribedSubscription, Backlog]], unreadable: Set[Place]
) -> wire.DescribedPartition:
    one = pairs[0][0]
    return wire.DescribedPartition(
        partition_index=index,
        log_start_offset=one.log_start_offset,
        last_stable_offset=one.last_stable_offset,
        high_watermark=one.high_watermark,
        is_over_quota=one.is_over_quota,
        open_transactions=[
            wire.OpenTransaction(
                transactional_id=each.transactional_id, first_offset=each.first_offset, start_ms=each.start_ms
            )
            for each in (() if one.details is None else one.details.open_transactions)
        ],
        subscriptions=[_subscription(found, backlog, found.place in unreadable) for found, backlog in pairs],
    )


def _subscription(found: DescribedSubscription, backlog: Backlog, is_unreadable: bool) -> wire.DescribedSubscription:
    shown = wire.DescribedSubscription(
        name=found.name,
        subscription_type=found.subscription_type,
        is_durable=found.is_durable,
        isolation_level=found.isolation_level,
        created_ms=found.created_ms,
        position=found.position,
        consumer_count=found.consumer_count,
        left_messages=backlog.left,
        pending_messages=backlog.pending,
        held_back_messages=backlog.held_back,
        acknowledged_run_count=len(found.acknowledged),
        pending_transaction_count=len(found.pending),
    )
    details = found.details
    if details is not None:
        shown.uncommitted_messages = details.uncommitted
        shown.acknowledged_runs = _runs(found.acknowledged)
        shown.pending = [_pending(each) for each in islice(found.pending, MOST_SHOWN)]
        shown.consumers = [
            wire.Consumer(
                consumer_id=each.consumer_id,
                name=each.name,
                priority=each.priority,
                permits=each.permits,
                held_messages=each.held,
                is_active=each.is_active,
            )
            for each in details.consumers
        ]
        shown.noted_entries, shown.waiting_entries = details.entries.noted, details.entries.waiting
        shown.redelivered_entries = details.entries.redelivered
        shown.most_redeliveries = details.entries.most_redeliveries
        shown.waits_for = [int(each) for each in (*details.waits, *([Wait.UNREADABLE] if is_unreadable else []))]
        shown.properties = [wire.Property(key=key, value=value) for key, value in details.properties.items()]
    return shown


def _pending(pending: DescribedPending) -> wire.PendingAcknowledgements:
    return wire.PendingAcknowledgements(
        transaction_id=pending.transaction_id,
        before_offset=-1 if pending.before == Offset(0) else pending.before,
        run_count=len(pending.runs),
        runs=_runs(pending.runs),
    )


def _runs(runs: Sequence[Run]) -> list[wire.Run]:
    return [wire.Run(first_offset=first, last_offset=last) for first, last in runs[:MOST_SHOWN]]


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    plain_error=DescribeSubscriptionsResponse,
)
