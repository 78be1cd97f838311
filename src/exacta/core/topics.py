"""Creating and deleting topics."""

import re

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.core.events import Event, TopicCreated, TopicDeleted
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.replies import TopicCreated as TopicCreatedReply
from exacta.core.state import State

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def create(state: State, command: CreateTopic, now_ms: int) -> Outcome:
    """Create a topic under a name legal in Kafka."""
    if not _LEGAL_NAME.fullmatch(command.topic) or command.topic in (".", ".."):
        return Outcome(reply=Rejection.INVALID_TOPIC)
    if command.topic in state.topics:
        return Outcome(reply=Rejection.TOPIC_ALREADY_EXISTS)
    if not 1 <= command.partition_count <= state.limits.max_partitions_per_topic:
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


def delete(state: State, command: DeleteTopic, now_ms: int) -> Outcome:
    """Delete a topic; an open transaction goes on without its partitions."""
    if command.topic not in state.topics:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    return Outcome(events=(TopicDeleted(topic=command.topic),), reply=DONE)
