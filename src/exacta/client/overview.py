"""Look at all of a cluster at once: the ends of its topics, the lag of its groups, its open transactions.

This module owns what one look holds. It is made of many requests, so its parts are not of the same moment.
"""

import time
from collections.abc import Collection
from typing import NamedTuple

from exacta.client.errors import KafkaError
from exacta.client.explanations import explain
from exacta.client.lag import describe_lag
from exacta.client.routing import Client
from exacta.client.topic_administration import describe_topics
from exacta.client.topics import LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode


class TopicView(NamedTuple):
    """A topic: the sum of its partitions' ends, and the offsets that open transactions hold back from readers."""

    partitions: int
    end_offsets: int
    held_back: int


class GroupView(NamedTuple):
    """A group that has a position somewhere. `is_exact`: the numbers are records, not offsets."""

    unread: int
    held_back: int
    is_exact: bool


class TransactionOverview(NamedTuple):
    """A transaction that is open, since `start_ms` if that is told, and how many partitions it has."""

    transaction: str
    start_ms: int | None
    partitions: int


class Overview(NamedTuple):
    """A look at a cluster, at a point of this machine's monotonic clock."""

    at_s: float
    brokers: int
    topics: dict[str, TopicView]
    groups: dict[str, GroupView]
    transactions: tuple[TransactionOverview, ...]


def look(client: Client, groups: Collection[str]) -> Overview:
    """Return how a cluster is now, with these groups; what is deleted meanwhile is left out."""
    found = describe_topics(client)
    partitions = [
        TopicPartition(topic.name, each.partition)
        for topic in found
        if not topic.is_internal
        for each in topic.partitions
        if each.leader is not None
    ]
    ends = list_offsets(client, partitions, LATEST, isolation_level=READ_UNCOMMITTED)
    stable = list_offsets(client, partitions, LATEST, isolation_level=READ_COMMITTED)
    at_s = time.monotonic()
    topics: dict[str, TopicView] = {}
    for each in partitions:
        count, end, held_back = topics.get(each.topic, (0, 0, 0))
        more = max(0, ends[each] - stable[each])
        topics[each.topic] = TopicView(count + 1, end + ends[each], held_back + more)
    lags = {group: view for group in groups if (view := _group(client, group)) is not None}
    open_now = sorted(
        (
            TransactionOverview(each.transactional_id, each.start_ms, len(each.partitions))
            for each in explain(client)
            if each.is_open
        ),
        key=lambda each: each.start_ms or 0,
    )
    return Overview(at_s, len(client.nodes()), topics, lags, tuple(open_now))


def _group(client: Client, group: str) -> GroupView | None:
    try:
        found = describe_lag(client, group)
    except KafkaError as error:
        if error.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            return None
        raise
    if not found.partitions:
        return None
    unread = sum(each.unread for each in found.partitions)
    return GroupView(unread, sum(each.held_back for each in found.partitions), found.exact)


def rates(before: Overview, after: Overview) -> dict[str, float]:
    """Return how many offsets a second each topic has grown by between two looks; a new one from nothing."""
    seconds = max(after.at_s - before.at_s, 1e-9)
    found = {}
    for name, topic in after.topics.items():
        grown = topic.end_offsets - (before.topics[name].end_offsets if name in before.topics else 0)
        found[name] = max(0, grown) / seconds  # a topic that was created again ends earlier than it did
    return found
