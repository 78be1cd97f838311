"""Tell how far a group is behind: in records on an Exacta (DescribeLag), on any other cluster in offsets.

This module owns the shape of DescribeLag and the look-ups that stand in for it on any other cluster, where only a
difference of offsets is known: it counts markers and aborted records too, so it is what the lag is at most.
"""

from typing import NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.client.topics import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.messages.k17785_describe_lag import DescribeLagRequest


class BlockingTransaction(NamedTuple):
    """An open transaction that holds readers of committed data back at its first offset."""

    transactional_id: str
    first_offset: int
    open_for_ms: int


class Lag(NamedTuple):
    """One partition; `committed_offset` is -1 where the group has no position there."""

    partition: TopicPartition
    committed_offset: int
    last_stable_offset: int
    high_watermark: int
    unread: int
    """The records that a read_committed reader would get now. On another cluster than an Exacta these are offsets."""
    held_back: int
    """The records, or offsets, that are behind an open transaction."""
    held_by: tuple[BlockingTransaction, ...] = ()


class GroupLag(NamedTuple):
    """The lag of a group.

    If `exact`, it is counted in records. Else it is counted in offsets, and is at most so many.
    """

    exact: bool
    partitions: list[Lag]


def describe_lag(client: Client, group: str, deadline: Deadline | None = None) -> GroupLag:
    """Return how far a group is behind in each partition where it has a position.

    Raises `KafkaError`, GROUP_ID_NOT_FOUND where an Exacta knows of no such group; others answer for any name.
    """
    deadline = deadline or client.deadline()
    if not client.offers(Coordinator(GROUP, group), DescribeLagRequest(), deadline):
        return GroupLag(False, _by_offsets(client, group, deadline))
    response = client.call(
        Coordinator(GROUP, group),
        DescribeLagRequest(groups=[group]),
        what=f"asking how far group '{group}' is behind",
        codes=lambda reply: [reply.error_code, *(entry.error_code for entry in reply.groups)],
        deadline=deadline,
    )
    found = [
        Lag(
            TopicPartition(topic.name, entry.partition_index),
            entry.committed_offset,
            entry.last_stable_offset,
            entry.high_watermark,
            entry.unread_records,
            entry.held_back_records,
            tuple(
                BlockingTransaction(each.transactional_id, each.first_offset, response.now_ms - each.start_ms)
                for each in entry.open_transactions
            ),
        )
        for entry_of_group in response.groups
        for topic in entry_of_group.topics
        for entry in topic.partitions
    ]
    return GroupLag(True, found)


def _by_offsets(client: Client, group: str, deadline: Deadline) -> list[Lag]:
    committed = {at: found.offset for at, found in fetch_offsets(client, group, deadline=deadline).items()}
    first = list_offsets(client, committed, EARLIEST, deadline=deadline)
    stable = list_offsets(client, committed, LATEST, isolation_level=READ_COMMITTED, deadline=deadline)
    ends = list_offsets(client, committed, LATEST, isolation_level=READ_UNCOMMITTED, deadline=deadline)
    found = []
    for partition, offset in sorted(committed.items()):
        at = max(offset, first[partition])
        unread = max(0, stable[partition] - at)
        held_back = max(0, ends[partition] - max(at, stable[partition]))
        found.append(Lag(partition, offset, stable[partition], ends[partition], unread, held_back))
    return found
