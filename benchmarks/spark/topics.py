"""The topics of a turn: input of a given size over some partitions, and an empty output."""

from __future__ import annotations

import random
from uuid import uuid4

from benchmarks import clients
from benchmarks.cases.bulk import BATCH, STALL_S, send

_LETTERS = b"abcdefghijklmnopqrstuvwxyz"


def new_topic(bootstrap: str, label: str, partitions: int) -> str:
    """Create an empty topic."""
    topic = f"bench-{label}-{uuid4().hex[:8]}"
    clients.create_topic(bootstrap, topic, partitions)
    return topic


def filled_topic(bootstrap: str, label: str, partitions: int, *, rows: int, row_bytes: int) -> str:
    """Create a topic with this many messages of lower-case letters, without keys, evenly over its partitions.

    Raises TimeoutError where some are not acknowledged.
    """
    topic = new_topic(bootstrap, label, partitions)
    producer = clients.idempotent_producer(bootstrap)
    letters = random.Random(row_bytes)
    share = min(BATCH, -(-rows // partitions))
    batch = [{"value": bytes(letters.choices(_LETTERS, k=row_bytes))} for _ in range(share)]
    sent = 0
    for turn in range(-(-rows // share)):
        part = batch[: min(share, rows - sent)]
        send(producer, topic, part, partition=turn % partitions)
        sent += len(part)
    if left := producer.flush(STALL_S):
        raise TimeoutError(f"{left} messages were not acknowledged within {STALL_S:.0f} s")
    return topic
