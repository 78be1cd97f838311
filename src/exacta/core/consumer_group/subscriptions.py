"""What a group's members subscribe to: names, and patterns in RE2's syntax (KIP-848)."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from exacta.core.consumer_membership import ConsumerMember, SubscribedTopic
from exacta.core.state import State

MAX_PATTERN_MEMORY_BYTES = 1 << 18
"""What RE2 may use for one pattern, of which it keeps some for the next time: one that expands to more is refused."""


def topics_version(state: State) -> tuple[int, int]:
    """Return what differs whenever a topic has been created, has grown, or was deleted since."""
    return state.next_partition_id, len(state.topics)


def is_pattern(pattern: str) -> bool:
    """Whether RE2 takes it; the empty one subscribes to nothing."""
    try:
        _matcher(pattern)
    except ValueError:
        return False
    return True


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a pattern matches as a whole."""
    if not pattern:
        return frozenset()
    match = _matcher(pattern)
    return frozenset(name for name in names if match(name))


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> Callable[[str], Any]:
    """Compile; raises ValueError for what RE2 does not take. Its time is linear in the name whatever the pattern."""
    import re2  # here: few use patterns, and every start would pay for it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_MEMORY_BYTES
    try:
        match: Callable[[str], Any] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        raise ValueError(str(error)) from error
    return match


def resolve(
    state: State, members: Iterable[ConsumerMember]
) -> tuple[dict[str, SubscribedTopic], dict[str, frozenset[str]]]:
    """Return the topics that exist of those that members subscribe to, and what each pattern matches."""
    patterns: dict[str, frozenset[str]] = {}
    names: set[str] = set()
    for member in members:
        if member.pattern and member.pattern not in patterns:
            patterns[member.pattern] = matching(member.pattern, state.topics)
            names |= patterns[member.pattern]
        names |= member.topics
    topics = {
        name: SubscribedTopic(topic.topic_id, topic.partition_count)
        for name in names
        if (topic := state.topics.get(name)) is not None
    }
    return topics, patterns
