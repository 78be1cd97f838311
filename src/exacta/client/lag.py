"""Tell how far a group is behind: in records on an Exacta, on any other cluster in offsets.

This module owns the look-ups that stand in on any other cluster for what an Exacta is asked (Ask). Only a difference of
offsets is known there: it counts markers and aborted records too, so it is what the lag is at most.
"""

from exacta.client.ask import answers, ask
from exacta.client.deadline import Deadline
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.client.topics import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.readmodel.groups import AskLag, GroupLag, Lag


def describe_lag(client: Client, group: str, deadline: Deadline | None = None) -> GroupLag:
    """Return how far a group is behind in each partition where it has a position.

    Raises `KafkaError`, GROUP_ID_NOT_FOUND where an Exacta knows of no such group; others answer for any name.
    """
    deadline = deadline or client.deadline()
    if not answers(client, deadline):
        return GroupLag(group=group, exact=False, partitions=tuple(_by_offsets(client, group, deadline)))
    what = f"asking how far group '{group}' is behind"
    return ask(client, AskLag(group=group), GroupLag, what, deadline, Coordinator(GROUP, group))


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
        found.append(
            Lag(
                topic=partition.topic,
                partition=partition.partition,
                committed_offset=offset,
                last_stable_offset=stable[partition],
                high_watermark=ends[partition],
                unread=unread,
                held_back=held_back,
            )
        )
    return found
