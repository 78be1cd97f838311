"""The bytes of partitions that the log's own streams do not have: those of open transactions in sidecar topics."""

from collections.abc import Iterable

from exacta.core.log import staging
from exacta.core.state.state import State

Places = tuple[str, Iterable[int]]
"""A topic, and indexes of partitions of it."""


def all_places(state: State, now_ms: int) -> list[Places]:
    """Return all topics with all of their partitions."""
    return [(name, range(topic.partition_count)) for name, topic in state.topics.items()]


def staged_bytes(state: State, now_ms: int, places: Places) -> dict[int, int]:
    """Return the bytes that open transactions have staged, by index, of those of these partitions that are there."""
    topic, indexes = places
    found = ((index, state.partition(topic, index)) for index in indexes)
    return {index: staging.staged_bytes(partition) for index, partition in found if partition is not None}
