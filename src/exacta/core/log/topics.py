"""Creating, configuring and deleting topics."""

import re

from exacta.core.commands import CreatePartitions, CreateTopic, DeleteTopic, SetTopicConfigs
from exacta.core.events import Event, PartitionsAdded, TopicConfigsSet, TopicCreated, TopicDeleted
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, TopicCreatedReply, TopicDeletedReply
from exacta.core.state.state import State
from exacta.core.subscriptions.subscribing import closed
from exacta.core.values.internal_topics import INTERNAL_TOPICS

MAX_NAME_BYTES = 512

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and halves of characters, which have no bytes."""


def is_possible_name(topic: str) -> bool:
    """Say whether a topic can have this name at all; each protocol's front allows fewer."""
    return bool(topic) and _UNPRINTABLE.search(topic) is None and len(topic.encode()) <= MAX_NAME_BYTES


def create(state: State, command: CreateTopic, now_ms: int) -> Outcome:
    """Create a topic under a name that its front has found legal in its protocol."""
    if not is_possible_name(command.topic):
        return Outcome(reply=Rejection.INVALID_TOPIC)
    if command.topic in state.topics:
        return Outcome(reply=Rejection.TOPIC_ALREADY_EXISTS)
    if not 1 <= command.partition_count <= _room(state, command.topic, 0):
        return Outcome(reply=Rejection.INVALID_PARTITIONS)
    reply = TopicCreatedReply(topic_id=command.topic_id, partition_count=command.partition_count)
    events: tuple[Event, ...] = ()
    if not command.validate_only:
        created = TopicCreated(
            topic=command.topic,
            topic_id=command.topic_id,
            first_partition_id=state.next_partition_id,
            partition_count=command.partition_count,
            configs=command.configs,
            at_ms=now_ms,
        )
        events = (created,)
    return Outcome(events=events, reply=reply)


def _room(state: State, topic: str, partition_count: int) -> int:
    """Return how many partitions may be added to a topic that has `partition_count` ones.

    The cluster's own topics take no room from the others: an operator's bound is of what clients make.
    """
    limits = state.limits
    room = limits.max_partitions_per_topic - partition_count
    if topic in INTERNAL_TOPICS:
        return room
    own = sum(state.topics[name].partition_count for name in INTERNAL_TOPICS & state.topics.keys())
    return min(room, limits.max_partitions - (len(state.partitions) - own))


def create_partitions(state: State, command: CreatePartitions, now_ms: int) -> Outcome:
    """Add partitions to a topic. The count is checked before the assignment of replicas, as Kafka does it."""
    topic = state.topics.get(command.topic)
    if topic is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    more = command.total_count - topic.partition_count
    if not 1 <= more <= _room(state, command.topic, topic.partition_count):
        return Outcome(reply=Rejection.INVALID_PARTITIONS)
    if command.assigned_count not in (None, more):
        return Outcome(reply=Rejection.INVALID_REPLICA_ASSIGNMENT)
    if command.validate_only:
        return Outcome(reply=DONE)
    added = PartitionsAdded(topic=command.topic, first_partition_id=state.next_partition_id, partition_count=more)
    return Outcome(events=(added,), reply=DONE)


def delete(state: State, command: DeleteTopic, now_ms: int) -> Outcome:
    """Delete a topic; an open transaction goes on without its partitions."""
    if command.topic_id:
        found = state.topics.get(state.volatile.topic_names.get(command.topic_id, ""))
        unknown = Rejection.UNKNOWN_TOPIC_ID
    else:
        found = state.topics.get(command.topic)
        unknown = Rejection.UNKNOWN_TOPIC_OR_PARTITION
    if found is None:
        return Outcome(reply=unknown)
    reply = TopicDeletedReply(topic=found.topic, topic_id=found.topic_id)
    disconnected = tuple(
        notice
        for partition_id in found.partition_ids
        for name in state.subscription_names(partition_id)
        for notice in closed(state.volatile.deliveries.get((partition_id, name)))
    )
    return Outcome(events=(TopicDeleted(topic=found.topic),), reply=reply, notices=disconnected)


def set_configs(state: State, command: SetTopicConfigs, now_ms: int) -> Outcome:
    """Replace the configurations of a topic; do nothing if they are the same."""
    topic = state.topics.get(command.topic)
    if topic is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if command.validate_only or command.configs == topic.configs:
        return Outcome(reply=DONE)
    return Outcome(events=(TopicConfigsSet(topic=command.topic, configs=command.configs),), reply=DONE)
