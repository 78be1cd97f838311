"""Partitions that one writer has for itself: the table of epochs, restarts, and topics that are created again."""

import pytest

from exacta.core.commands import CreateTopic, DeleteTopic, TakePartition
from exacta.core.events import TopicEpochMoved
from exacta.core.rejections import Rejection
from exacta.core.replies import PartitionTaken
from exacta.core.values.internal_topics import GROUP_OFFSETS
from tests.core.world import World
from tests.docstring_tables import docstring_table


@pytest.fixture
def world() -> World:
    world = World()
    world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=2))
    return world


def take(world: World, topic_epoch: int | None = None, partition: int = 0, topic: str = "t") -> int | Rejection:
    """Take a partition; return the epoch."""
    answer = world.send(TakePartition(topic=topic, partition=partition, topic_epoch=topic_epoch))
    assert isinstance(answer, PartitionTaken | Rejection)
    return answer.topic_epoch if isinstance(answer, PartitionTaken) else answer


TABLE = docstring_table("exacta.core.log.exclusive", "the writer's epoch")


@pytest.mark.parametrize("present", [-1, 0, 3])
@pytest.mark.parametrize("presented", [None, 0, 2, 3, 4, 9])
def test_the_table_of_epochs(world: World, present: int, presented: int | None) -> None:
    for _ in range(present + 1):
        take(world)
    before = len(world.log)
    answer = take(world, presented)
    moved = [event.topic_epoch for event in world.log[before:] if isinstance(event, TopicEpochMoved)]
    if presented is None:
        row = "none"
    else:
        row = f"{'below' if presented < present else 'above' if presented > present else ''} the partition's".strip()
    match TABLE[row, "answer"].split(":")[0]:
        case "the next epoch, which is the partition's from now on":
            assert (answer, moved) == (present + 1, [present + 1])
        case "PRODUCER_FENCED":
            assert (answer, moved) == (Rejection.PRODUCER_FENCED, [])
        case "the same epoch, and nothing changes":
            assert (answer, moved) == (present, [])
        case "the writer's epoch, which is the partition's from now on":
            assert (answer, moved) == (presented, [presented])
        case other:
            raise AssertionError(other)
    assert take(world) == (moved[-1] if moved else present) + 1


def test_each_partition_has_epochs_of_its_own_and_they_outlive_a_crash(world: World) -> None:
    assert [take(world), take(world), take(world, partition=1)] == [0, 1, 0]
    world.crash()
    assert take(world, 0) is Rejection.PRODUCER_FENCED
    assert [take(world), take(world, partition=1)] == [2, 1]


def test_epochs_are_those_of_a_topic_that_is_there(world: World) -> None:
    take(world)
    world.send(DeleteTopic(topic="t"))
    assert take(world) is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    world.send(CreateTopic(topic="t", topic_id=b"u" * 16, partition_count=1))
    assert take(world, 5) == 5, "the writer of the topic before goes on"
    assert take(world, 4) is Rejection.PRODUCER_FENCED
    world.send(CreateTopic(topic=GROUP_OFFSETS, topic_id=b"o" * 16, partition_count=1))
    assert take(world, topic=GROUP_OFFSETS) is Rejection.INTERNAL_TOPIC
