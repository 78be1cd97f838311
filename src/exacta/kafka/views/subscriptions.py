"""The view of Apache Pulsar's subscriptions, page by page, with their backlogs.

A page is taken from one state, once all of it lies in the journal, where the messages are counted. A page is bounded in
what is looked at for it. The asker needs DESCRIBE on the topics that it names, and on the groups of the names of
subscriptions that it names; of others only what it may see is shown.
"""

from collections.abc import Container

from msgspec import json, structs

from exacta.core.queries.topic_lists import topic_names
from exacta.core.subscriptions.description import (
    FIRST,
    DescribedSubscription,
    Page,
    SubscriptionsWanted,
    WaitReason,
    page_of,
)
from exacta.front.backlog_counts import Backlog, count_backlogs
from exacta.front.broker import Broker
from exacta.kafka.access import describable_topics
from exacta.kafka.context import RequestContext
from exacta.kafka.views.view import Asker, Done
from exacta.ports.authorizer import ResourceKind
from exacta.readmodel.subscriptions import AskSubscriptions, SubscriptionDescription, Subscriptions

MOST_SUBSCRIPTIONS = 1_000
"""The bound on subscriptions of one answer, whatever a client asks for."""

MOST_SIZE = 100_000
"""A page ends when this many runs, consumers and entries were looked at for it. The last subscription may have more."""

MOST_PARTITIONS = 2_500
"""A page also ends when this many partitions were looked at for it. It may be empty, and others follow."""


def tell(broker: Broker, context: RequestContext, asked: AskSubscriptions, done: Done) -> None:
    """Describe a page of the subscriptions that are wanted."""
    asker = Asker(broker, context)
    refused = asker.refusal(ResourceKind.TOPIC, *(asked.topics or ())) or asker.refusal(
        ResourceKind.GROUP, *(asked.names or ())
    )
    if refused is not None:
        done(refused)
        return

    topics = asked.topics
    if topics is None:
        topics = tuple(describable_topics(broker, context, broker.engine.advice.look(topic_names)))
    indexes: Container[int] | None = None if asked.partitions is None else frozenset(asked.partitions)
    wanted = SubscriptionsWanted(
        topics=dict.fromkeys(topics, indexes),
        names=None if asked.names is None else frozenset(asked.names),
        after=asked.after or FIRST,
        most=max(1, min(asked.most, MOST_SUBSCRIPTIONS)),
        most_size=MOST_SIZE,
        most_partitions=MOST_PARTITIONS,
        has_details=asked.has_details,
    )

    def described(page: Page) -> None:
        seen = [each for each in page.subscriptions if asker.sees(ResourceKind.GROUP, each.told.name)]
        count_backlogs(broker, context, seen, lambda backlogs: counted(page, seen, backlogs))

    def counted(page: Page, seen: list[DescribedSubscription], backlogs: list[Backlog]) -> None:
        pairs = zip(seen, backlogs, strict=True)
        found = tuple(_told(broker, asker, each, backlog) for each, backlog in pairs)
        done(json.encode(Subscriptions(subscriptions=found, end=page.end)))

    broker.read(context, lambda state, now_ms: page_of(state, wanted, now_ms), described)


def _told(broker: Broker, asker: Asker, found: DescribedSubscription, backlog: Backlog) -> SubscriptionDescription:
    told = found.told
    details = told.details
    if details is not None:
        details = asker.blocking(details)
        if (found.partition_id, told.name) in broker.engine.dispatcher.unread:
            details = structs.replace(details, waits=(*details.waits, WaitReason.UNREADABLE))
    return structs.replace(
        told, left=backlog.left, pending=backlog.pending, held_back=backlog.held_back, details=details
    )
