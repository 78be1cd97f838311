"""Nameless writers: within a transaction a batch that is sent again by one that has come back is a repeat."""

import pytest

from exacta.core.commands import AppendBatch, CreateTopic, DeleteTopic
from exacta.core.ids import Offset, PartitionId, WriterId
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, Appended
from exacta.core.values.limits import Limits
from exacta.core.writers import NamelessWriter
from tests.core.transactions.test_joint import restarted
from tests.core.world import Handle, World

REPEAT = ALREADY_STORED


@pytest.fixture
def world() -> World:
    world = World(Limits(max_named_writers=3, max_named_writers_per_partition=2))
    world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=3))
    return world


def writer(sequence: int, number: int = -2, *, is_back: bool = True) -> NamelessWriter:
    return NamelessWriter(number=WriterId(number), sequence=sequence, is_back=is_back)


def write(handle: Handle, sequence: int, number: int = -2, partition: int = 0, *, is_back: bool = True) -> object:
    return handle.append(partition, writer=writer(sequence, number, is_back=is_back))


def at(offset: int) -> Appended:
    return Appended(base_offset=Offset(offset))


def test_what_is_sent_again_after_coming_back_is_a_repeat(world: World) -> None:
    handle = world.handle()
    assert [write(handle, sequence, is_back=False) for sequence in (0, 1)] == [at(0), at(1)]
    assert [write(handle, sequence) for sequence in (0, 1, 2, 2)] == [REPEAT, REPEAT, at(2), REPEAT]
    assert write(handle, 0, number=-3) == at(3), "another writer"
    assert write(handle, 0, partition=1) == at(0), "another partition"
    world.check()


def test_one_that_was_never_away_may_use_any_sequences(world: World) -> None:
    handle = world.handle()
    assert [write(handle, sequence, is_back=False) for sequence in (5, 5, 3)] == [at(0), at(1), at(2)]
    assert world.state.partitions[PartitionId(0)].nameless_sequences == {handle.producer_id: {-2: 5}}
    world.check()


@pytest.mark.parametrize("commit", [True, False])
def test_its_end_is_all_that_it_takes_to_forget_it(world: World, commit: bool) -> None:
    first, second = world.handle(), world.handle()
    assert [write(each, 7) for each in (first, second)] == [at(0), at(1)]
    first.end(commit=commit)
    assert write(second, 7) == REPEAT
    assert list(world.state.partitions[PartitionId(0)].nameless_sequences) == [second.producer_id]
    assert world.state.volatile.nameless_writers == 1
    world.check()


def test_outside_of_a_transaction_nobody_can_tell(world: World) -> None:
    command = AppendBatch(topic="t", partition=0, record_count=1, size=62, max_timestamp_ms=0, writer=writer(0))
    assert [world.send(command) for _ in range(2)] == [at(0), at(1)]
    assert world.state.partitions[PartitionId(0)].nameless_sequences == {}
    world.check()


def test_a_restart_forgets_nothing(world: World) -> None:
    handle = world.handle()
    write(handle, 7)
    restarted(world)
    assert world.state.volatile.nameless_writers == 1
    assert write(handle, 7) == REPEAT
    world.check()


def test_they_are_bounded_in_a_partition_and_in_all(world: World) -> None:
    handle = world.handle()
    assert [write(handle, 0, number) for number in (-2, -3)] == [at(0), at(1)]
    assert write(handle, 0, -4) is Rejection.LIMIT_REACHED
    assert write(handle, 0, -4, partition=1) == at(0)
    assert write(handle, 0, -5, partition=2) is Rejection.LIMIT_REACHED
    assert write(handle, 1, -2) == at(2), "those that are known go on"
    world.send(DeleteTopic(topic="t"))
    assert world.state.volatile.nameless_writers == 0
    world.check()
