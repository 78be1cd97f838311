"""Lists of topics: all of them, and those that clients may list, which are all but the internal ones."""

from collections.abc import Iterable

from exacta.core.state.state import State
from exacta.core.values.internal_topics import INTERNAL_TOPICS


def topic_names(state: State) -> list[str]:
    """Return the names of all topics."""
    return list(state.topics)


def topics_and_partitions(state: State) -> tuple[int, int]:
    """Return how many topics there are, and how many partitions."""
    return len(state.topics), len(state.partitions)


def ordinary_topics(state: State, now_ms: int) -> list[str]:
    """Return the names of all topics but the internal ones."""
    return [topic for topic in state.topics if topic not in INTERNAL_TOPICS]


def partition_counts(state: State, now_ms: int, topics: Iterable[str]) -> dict[str, int]:
    """Return how many partitions each of these topics has; those that are not there are left out."""
    return {topic: found.partition_count for topic in topics if (found := state.topics.get(topic)) is not None}


def ordinary_partition_counts(state: State, now_ms: int) -> dict[str, int]:
    """Return how many partitions each topic has but the internal ones."""
    return partition_counts(state, now_ms, ordinary_topics(state, now_ms))
