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
from tests.docstring_tables import docstring_table

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


TABLE = docstring_table("exacta.core.log.full_disk", "command")
KINDS = {
    "what makes something new, or moves progress": OnFullDisk.PROGRESS,
    "what ends, frees or forgets something, membership": OnFullDisk.ALWAYS,
}
ROOMS = {"there is plenty": PLENTY, "the disk is full": FULL, "the reserve is used up, too": USED_UP}
REFUSALS = {"taken": None, "RESERVE_USED_UP": Outcome(reply=Rejection.RESERVE_USED_UP)}


def test_the_table_is_complete() -> None:
    assert TABLE.rows.keys() == {"a batch", *KINDS}
    assert {OnFullDisk.BATCH, *KINDS.values()} == set(OnFullDisk)
    assert set(TABLE.columns) == ROOMS.keys()


@pytest.mark.parametrize(("row", "command"), [(row, command) for row, kind in KINDS.items() for command in of(kind)])
def test_every_command_but_a_batch(row: str, command: type[Command]) -> None:
    world = World()
    world.topic()
    writes, nothing = Outcome(events=tuple(world.log), reply=DONE), Outcome(reply=DONE)
    asked = any_of(command)
    for column, room in ROOMS.items():
        if room is None:  # nobody asks
            assert TABLE[row, column] == "taken"
        else:
            assert refusal(world.state, room, asked, writes) == REFUSALS[TABLE[row, column]]
            assert refusal(world.state, room, asked, nothing) is None


@pytest.mark.parametrize("column", TABLE.columns)
def test_a_batch(world: World, column: str) -> None:
    producer = world.producer(None)
    assert isinstance(producer.append(), Appended)
    size = next(each.size for each in world.log if hasattr(each, "size"))
    room = ROOMS[column]
    set_room(world, structs.replace(FULL, append_bytes=2 * size) if room is FULL else room)
    answers = [producer.append() for _ in range(3)]
    match TABLE["a batch", column]:
        case "taken":
            assert [type(each) for each in answers] == [Appended] * 3
        case "taken while it fits into the room, then DISK_FULL":
            assert [type(each) for each in answers[:2]] == [Appended] * 2
            assert answers[2] == Rejection.DISK_FULL
        case "DISK_FULL":
            assert answers == [Rejection.DISK_FULL] * 3
        case other:
            raise AssertionError(other)
    assert (commit(world) is Rejection.RESERVE_USED_UP) is (room is USED_UP)
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
