"""Partitions that one writer has for itself: the epochs by which a writer that was replaced is told so.

A writer that takes a partition for itself gets the next epoch, and presents it when it comes back. If the epoch has
moved in between, then another one has had the partition, and the older writer must not go on. Apache Pulsar's topic
epoch works like this (PIP-68). An epoch outlives restarts, so that it is never given out twice. Who has the partition
now is a matter of connections, which each front knows.

    the writer's epoch         answer
    none                       the next epoch, which is the partition's from now on
    below the partition's      PRODUCER_FENCED
    the partition's            the same epoch, and nothing changes: the writer comes back
    above the partition's      the writer's epoch, which is the partition's from now on: the topic was created again
"""

from exacta.core.commands import TakePartition
from exacta.core.events import TopicEpochMoved
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import PartitionTaken
from exacta.core.state.state import State
from exacta.core.values.internal_topics import INTERNAL_TOPICS


def take_partition(state: State, command: TakePartition, now_ms: int) -> Outcome:
    """Give a writer its epoch, or refuse one that was replaced."""
    partition = state.partition(command.topic, command.partition)
    if partition is None:
        return Outcome(reply=Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    if command.topic in INTERNAL_TOPICS:
        return Outcome(reply=Rejection.INTERNAL_TOPIC)
    epoch = partition.topic_epoch + 1 if command.topic_epoch is None else command.topic_epoch
    if is_behind(epoch, partition.topic_epoch):
        return Outcome(reply=Rejection.PRODUCER_FENCED)
    reply = PartitionTaken(topic_epoch=epoch)
    if epoch == partition.topic_epoch:
        return Outcome(reply=reply)
    return Outcome(events=(TopicEpochMoved(partition_id=partition.partition_id, topic_epoch=epoch),), reply=reply)


def is_behind(topic_epoch: int | None, last_epoch: int) -> bool:
    """Return whether another writer has had the partition since this epoch was given; `last_epoch` is the partition's.

    A writer that has none is not behind.
    """
    return topic_epoch is not None and topic_epoch < last_epoch
