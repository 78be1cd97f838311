"""A full disk refuses what its table says: every command is tried, at every level."""

import pytest
from msgspec import structs

from exacta.core import commands as c
from exacta.core.admission import ADMISSION, OnFullDisk
from exacta.core.command import Command
from exacta.core.commands.groups import OffsetToCommit
from exacta.core.log.full_disk import refusal
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TopicDeletedReply
from exacta.core.state.disk_room import DiskRoom
from tests.core.world import World

PLENTY, FULL, USED_UP = None, DiskRoom(append_bytes=0), DiskRoom(append_bytes=0, is_used_up=True)


def of(kind: OnFullDisk) -> list[type[Command]]:
    return [command for command, row in ADMISSION.items() if row.on_full_disk is kind]


def any_of(command: type[Command]) -> Command:
    """Return a command of this class, with nothing in it."""
    needed = [each.name for each in structs.fields(command) if each.required]
    return command(**dict.fromkeys(needed))


def set_room(world: World, room: DiskRoom | None) -> None:
    assert world.send(c.SetDiskRoom(room=room)) == DONE


def commit(world: World) -> object:
    return world.send(c.CommitOffsets(group_id="g", offsets=(OffsetToCommit(topic="t", partition=0, offset=1),)))


@pytest.mark.parametrize("command", of(OnFullDisk.ALWAYS))
def test_what_frees_or_ends_is_never_refused(command: type[Command]) -> None:
    world = World()
    world.topic()
    outcome = Outcome(events=tuple(world.log), reply=DONE)
    assert refusal(world.state, USED_UP, any_of(command), outcome) is None


@pytest.mark.parametrize("command", of(OnFullDisk.PROGRESS))
def test_what_is_new_goes_on_until_the_reserve_is_used_up(command: type[Command]) -> None:
    world = World()
    world.topic()
    writes, nothing = Outcome(events=tuple(world.log), reply=DONE), Outcome(reply=DONE)
    asked = any_of(command)
    assert refusal(world.state, FULL, asked, writes) is None
    assert refusal(world.state, USED_UP, asked, writes) == Outcome(reply=Rejection.RESERVE_USED_UP)
    assert refusal(world.state, USED_UP, asked, nothing) is None


def test_batches_are_taken_as_far_as_there_is_room(world: World) -> None:
    producer = world.producer(None)
    before = producer.append()
    size = next(each.size for each in world.log if hasattr(each, "size"))
    assert isinstance(before, Appended)
    set_room(world, DiskRoom(append_bytes=2 * size))
    assert isinstance(producer.append(), Appended)
    assert isinstance(producer.append(), Appended)
    assert producer.append() == Rejection.DISK_FULL
    assert not isinstance(commit(world), Rejection)
    set_room(world, USED_UP)
    assert commit(world) == Rejection.RESERVE_USED_UP
    set_room(world, PLENTY)
    assert isinstance(producer.append(), Appended)
    assert not isinstance(commit(world), Rejection)
    world.check()


def test_a_repeat_is_a_repeat_on_a_full_disk(world: World) -> None:
    producer = world.producer("x")
    producer.add()
    first = producer.append(sequence=0)
    set_room(world, FULL)
    again = producer.append(sequence=0)
    assert isinstance(first, Appended)
    assert isinstance(again, Appended)
    assert (again.base_offset, again.repeated) == (first.base_offset, True)
    assert producer.append(sequence=1) == Rejection.DISK_FULL
    world.check()


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("room", [FULL, USED_UP])
def test_a_transaction_ends_and_a_topic_goes(world: World, room: DiskRoom, committed: bool) -> None:
    producer = world.producer("x")
    producer.add()
    producer.append(sequence=0)
    set_room(world, room)
    assert not isinstance(producer.end(commit=committed), Rejection)
    assert isinstance(world.send(c.DeleteTopic(topic="t")), TopicDeletedReply)
    world.check()


def test_a_start_knows_of_no_room(world: World) -> None:
    set_room(world, FULL)
    world.crash()
    assert world.state.volatile.disk_room is None
