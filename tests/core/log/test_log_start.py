"""Deleting records: where a partition begins, whatever lies before it."""

import pytest

from exacta.core.commands import HIGH_WATERMARK, DeleteRecords
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import Appended, RecordsDeleted
from exacta.core.snapshot import restore, snapshot
from exacta.core.state.aborted import aborted_between
from exacta.core.state.partition import Partition
from tests.core.world import SMALL, World


def delete(world: World, before_offset: int, partition: int = 0, *, topic: str = "t", allowed: bool = True) -> object:
    command = DeleteRecords(topic=topic, partition=partition, before_offset=before_offset, allowed=allowed)
    return world.send(command)


def partition(world: World) -> Partition:
    return world.state.partitions[world.state.topics["t"].partition_ids[0]]


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("start", [0, 2, 4])
@pytest.mark.parametrize("before_offset", [-2, HIGH_WATERMARK, 0, 1, 2, 3, 4, 5])
def test_the_start_moves_up_to_the_end_and_never_back(
    world: World, start: int, before_offset: int, allowed: bool
) -> None:
    producer = world.producer(None)
    for _ in range(4):
        producer.append()
    delete(world, start)
    length = len(world.log)
    answer = delete(world, before_offset, allowed=allowed)
    wanted = 4 if before_offset == HIGH_WATERMARK else before_offset
    if not allowed:
        assert answer is Rejection.DELETION_NOT_ALLOWED
    elif not 0 <= wanted <= 4:
        assert answer is Rejection.OFFSET_OUT_OF_RANGE
    else:
        assert answer == RecordsDeleted(log_start_offset=Offset(max(start, wanted)))
    moved = isinstance(answer, RecordsDeleted) and wanted > start
    assert partition(world).log_start_offset == (wanted if moved else start)
    assert len(world.log) == length + moved
    world.check()


@pytest.mark.parametrize("allowed", [True, False])
def test_there_must_be_a_partition(world: World, allowed: bool) -> None:
    assert delete(world, 0, 2, allowed=allowed) is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(world, 0, topic="nowhere", allowed=allowed) is Rejection.UNKNOWN_TOPIC_OR_PARTITION


def test_of_an_open_transaction_what_is_left_counts(world: World) -> None:
    """As Apache Kafka 4.4 does it: its readers are held back from where the log begins."""
    producer, other = world.producer("x"), world.producer("y")
    for each in (producer, other, producer):
        each.add()
        each.append()
    assert partition(world).last_stable_offset == 0
    for before_offset, stable in [(1, 1), (HIGH_WATERMARK, 3)]:
        delete(world, before_offset)
        assert partition(world).last_stable_offset == stable
    world.producer(None).append()
    assert partition(world).last_stable_offset == 3, "of what is open nothing is left, but its marker is to come"
    producer.end(commit=False)
    other.end(commit=True)
    assert partition(world).last_stable_offset == partition(world).next_offset == 6
    world.check()


def test_of_aborted_transactions_those_stay_that_a_reader_may_meet(world: World) -> None:
    for _ in range(3):
        producer = world.producer("x")
        producer.add()
        producer.append()
        producer.end(commit=False)
    for before_offset, kept in [(1, [1, 3, 5]), (2, [3, 5]), (5, [5]), (6, [])]:
        delete(world, before_offset)
        found = aborted_between(partition(world), partition(world).log_start_offset, partition(world).next_offset)
        assert [entry.last_offset for entry in found] == kept
        assert [entry.last_offset for entry in partition(world).aborted] == kept
        world.check()


def test_a_repeat_of_what_was_deleted_is_a_repeat(world: World) -> None:
    producer = world.producer(None)
    producer.append()
    delete(world, HIGH_WATERMARK)
    repeat = producer.append(sequence=0)
    assert isinstance(repeat, Appended)
    assert (repeat.base_offset, repeat.repeated) == (0, True)
    assert producer.append() == Appended(base_offset=Offset(1))
    world.check()


def test_it_is_durable(world: World) -> None:
    producer = world.producer(None)
    for _ in range(3):
        producer.append()
    delete(world, 2)
    restored = restore(snapshot(world.state), SMALL)
    assert restored.partitions[partition(world).partition_id].log_start_offset == 2
    world.crash()
    assert partition(world).log_start_offset == 2
    world.check()
