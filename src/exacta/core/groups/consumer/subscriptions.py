"""The subscriptions of a group's members: names, and patterns in RE2's syntax (KIP-848)."""

from collections.abc import Iterable, Mapping, Set

from exacta.core.pattern import matcher, matching
from exacta.core.state.consumer_membership import ConsumerMember, SubscribedTopic
from exacta.core.state.state import State


def topics_version(state: State) -> tuple[int, int]:
    """Return a value that changes when a topic is created, grows, or is deleted."""
    return state.next_partition_id, len(state.topics)


def topics_to_match(state: State, group_id: str, *, subscribes: bool) -> Set[str]:
    """Return the topics that a heartbeat may match with patterns; none where they have been matched already."""
    group = state.volatile.consumer_groups.get(group_id)
    is_known = group is not None and group.topics_version == topics_version(state)
    return frozenset() if is_known and not subscribes else state.topics.keys()


def is_pattern(pattern: str) -> bool:
    """Return whether RE2 accepts the pattern; the empty one subscribes to nothing."""
    try:
        matcher(pattern)
    except ValueError:
        return False
    return True


def resolve(
    state: State,
    members: Iterable[ConsumerMember],
    hidden: frozenset[str],
    known: Mapping[str, frozenset[str]] | None = None,
) -> tuple[dict[str, SubscribedTopic], dict[str, frozenset[str]]]:
    """Return the topics that exist of those that members subscribe to, and what each pattern matches.

    No pattern matches what is hidden. Where the matches are `known`, nothing is matched.
    """
    patterns: dict[str, frozenset[str]] = {}
    names: set[str] = set()
    for member in members:
        if member.pattern and member.pattern not in patterns:
            matches = None if known is None else known.get(member.pattern, frozenset())
            patterns[member.pattern] = (
                matching(member.pattern, state.topics.keys() - hidden) if matches is None else matches
            )
            names |= patterns[member.pattern]
        names |= member.topics
    topics = {
        name: SubscribedTopic(topic.topic_id, topic.partition_count)
        for name in names
        if (topic := state.topics.get(name)) is not None
    }
    return topics, patterns
