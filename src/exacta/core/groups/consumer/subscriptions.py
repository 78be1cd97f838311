"""What a group's members subscribe to: names, and patterns in RE2's syntax (KIP-848)."""

from collections.abc import Iterable

from exacta.core.pattern import matcher
from exacta.core.state.consumer_membership import ConsumerMember, SubscribedTopic
from exacta.core.state.state import State


def topics_version(state: State) -> tuple[int, int]:
    """Return what differs whenever a topic has been created, has grown, or was deleted since."""
    return state.next_partition_id, len(state.topics)


def is_pattern(pattern: str) -> bool:
    """Whether RE2 takes it; the empty one subscribes to nothing."""
    try:
        matcher(pattern)
    except ValueError:
        return False
    return True


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a pattern matches as a whole."""
    if not pattern:
        return frozenset()
    match = matcher(pattern)
    return frozenset(name for name in names if match(name))


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
