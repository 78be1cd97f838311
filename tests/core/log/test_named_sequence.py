"""Named writers: a batch is new if its sequence is above all before it; names have numbers, and are bounded."""

import pytest

from exacta.core.commands import AppendBatch, CreateTopic, DeleteTopic
from exacta.core.events import BatchAppended, WriterNamed, WritersExpired
from exacta.core.ids import Body, Offset, PartitionId, WriterId
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, Appended
from exacta.core.values.limits import Limits
from tests.core.world import World, named_writer

EXPIRATION_MS = 5_000
REPEAT = ALREADY_STORED


@pytest.fixture
def world() -> World:
    limits = Limits(
        max_named_writers=3,
        max_named_writers_per_partition=2,
        producer_id_expiration_ms=EXPIRATION_MS,
        producer_id_expiry_interval_ms=1_000,
        max_expired_at_once=2,
    )
    world = World(limits)
    world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=3))
    return world


def write(world: World, sequence: int, name: str = "a", partition: int = 0) -> object:
    writer = named_writer(name, sequence)
    return world.send(
        AppendBatch(topic="t", partition=partition, record_count=1, size=62, max_timestamp_ms=0, writer=writer)
    )


def at(offset: int) -> Appended:
    return Appended(base_offset=Offset(offset))


def test_a_repeat_is_stored_once_in_each_partition(world: World) -> None:
    assert [write(world, sequence) for sequence in (3, 3, 1, 9, 9)] == [at(0), REPEAT, REPEAT, at(1), REPEAT]
    assert write(world, 3, partition=1) == at(0)
    assert world.state.partitions[PartitionId(0)].named_sequences == {0: 9}
    assert world.state.partitions[PartitionId(1)].named_sequences == {0: 3}
    world.check()


def test_a_name_has_one_number_in_all_partitions(world: World) -> None:
    write(world, 0, "a")
    write(world, 0, "b")
    write(world, 0, "a", partition=1)
    named = [event for event in world.log if isinstance(event, WriterNamed)]
    assert [(event.name, event.writer_id) for event in named] == [("a", 0), ("b", 1)]
    assert [event.writer_id for event in world.log if isinstance(event, BatchAppended)] == [0, 1, 0]
    world.check()


def test_a_named_writer_is_no_producer(world: World) -> None:
    write(world, 0)
    partition = world.state.partitions[PartitionId(0)]
    assert (partition.producers, partition.bodies) == ({}, {Body.KAFKA})
    world.check()


def test_a_crash_forgets_no_sequence(world: World) -> None:
    write(world, 4)
    world.crash()
    assert write(world, 4) == REPEAT
    assert write(world, 5, "b") == at(1)
    assert world.log[-2] == WriterNamed(writer_id=WriterId(1), name="b", at_ms=world.now_ms)
    world.check()


def test_a_partition_that_is_full_of_names_refuses_a_new_one(world: World) -> None:
    assert [write(world, 0, name) for name in "abc"] == [at(0), at(1), Rejection.LIMIT_REACHED]
    assert write(world, 1, "a") == at(2), "known ones go on"
    assert write(world, 1, "a", partition=1) == at(0)
    world.check()


def test_a_new_name_beyond_the_limit_is_refused_until_an_idle_one_expires(world: World) -> None:
    for number, name in enumerate("abc"):
        assert write(world, 0, name, partition=number) == at(0)
    assert write(world, 0, "d", partition=1) is Rejection.LIMIT_REACHED
    world.pass_time(EXPIRATION_MS - 1_000)
    assert write(world, 1, "b", partition=1) == at(1)
    world.pass_time(2_000)
    assert set(world.state.volatile.writer_ids) == {"b"}
    assert write(world, 0, "d", partition=0) == at(1)
    assert write(world, 0, "a", partition=0) == at(2), "it is forgotten, hence new"
    assert world.state.volatile.writer_ids == {"b": 1, "d": 3, "a": 4}, "no number is used again"
    world.check()


def test_one_step_forgets_about_as_many_as_it_may(world: World) -> None:
    for name, partition in (("a", 0), ("a", 1), ("b", 0), ("c", 2)):
        write(world, 0, name, partition)
    world.pass_time(EXPIRATION_MS + 1_000)
    expired = [event.writer_ids for event in world.log if isinstance(event, WritersExpired)]
    assert expired == [(0,), (1,), (2,)], "each costs its name and its sequences"
    assert world.state.writers == {}
    world.check()


def test_a_topic_takes_the_sequences_with_it(world: World) -> None:
    write(world, 0)
    world.send(DeleteTopic(topic="t"))
    world.check()
    world.pass_time(EXPIRATION_MS + 1_000)
    assert world.state.writers == {}
    world.check()
