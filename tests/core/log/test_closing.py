"""A partition that refuses a batch closes its writers: no later batch of a writer is stored before the refused one."""

import pytest

from exacta.core.commands import AppendBatch, DeleteTopic, RefuseAppends, SetDiskRoom
from exacta.core.decide import undecided
from exacta.core.events import WritersClosed
from exacta.core.ids import Offset, PartitionId
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, Appended
from exacta.core.state.disk_room import DiskRoom
from tests.core.world import World, named_writer
from tests.docstring_tables import docstring_table

SIZE = 62
QUOTA = Rejection.BACKLOG_QUOTA_EXCEEDED


def write(
    world: World, sequence: int, closings: int | None = 0, *, name: str = "a", size: int = SIZE, partition: int = 0
) -> object:
    batch = AppendBatch(
        topic="t",
        partition=partition,
        partition_id=PartitionId(partition),
        closings=closings,
        record_count=1,
        size=size,
        max_timestamp_ms=0,
        writer=named_writer(name, sequence),
    )
    return world.send(batch)


def at(offset: int) -> Appended:
    return Appended(base_offset=Offset(offset))


def refuse(world: World, reason: Rejection | None) -> None:
    world.send(RefuseAppends(topic="t", partition=0, reason=reason))


def room(world: World, append_bytes: int | None) -> None:
    world.send(SetDiskRoom(room=None if append_bytes is None else DiskRoom(append_bytes=append_bytes)))


def closed(world: World) -> int:
    return world.state.volatile.closings.get(PartitionId(0), 0)


TABLE = docstring_table("exacta.core.log.closing", "the writer was opened")
TAKES, TAKES_NONE = TABLE.columns
OPENED: dict[str, int | None] = {
    "since the last closing": 1,
    "before the last closing": 0,
    "never (a Kafka producer)": None,
}
REASONS = {
    "quota": (lambda world: refuse(world, QUOTA), QUOTA),
    "disk": (lambda world: room(world, SIZE - 1), Rejection.DISK_FULL),
}


def test_the_table_has_all_writers() -> None:
    assert TABLE.rows.keys() == OPENED.keys()


@pytest.mark.parametrize("reason", [None, *REASONS])
@pytest.mark.parametrize("opened", OPENED)
def test_every_cell_of_the_table(world: World, opened: str, reason: str | None) -> None:
    write(world, 0)
    refuse(world, QUOTA)
    assert write(world, 1) is QUOTA
    refuse(world, None)
    before = closed(world)
    assert before == 1
    taken, refused = TABLE[opened, TAKES], TABLE[opened, TAKES_NONE]
    if reason is not None:
        REASONS[reason][0](world)
    answer = write(world, 2, OPENED[opened])
    match taken if reason is None else refused.split(", ")[0]:
        case "appended":
            assert answer == at(1)
        case "WRITER_CLOSED":
            assert answer is Rejection.WRITER_CLOSED
        case "the reason":
            assert reason is not None
            assert answer is REASONS[reason][1]
    assert closed(world) - before == (reason is not None and "closes its writers" in refused)
    assert write(world, 0, OPENED[opened]) == ALREADY_STORED, "a repeat is a repeat"
    world.check()


def test_a_later_batch_that_has_room_is_not_stored_before_the_refused_one(world: World) -> None:
    """Its client would send the first one again, and be told that it is stored: it lies below the highest sequence."""
    room(world, 2 * SIZE)
    answers = [write(world, 0, size=3 * SIZE), write(world, 1), write(world, 2, name="b")]
    assert answers == [Rejection.DISK_FULL, Rejection.WRITER_CLOSED, Rejection.WRITER_CLOSED]
    room(world, None)
    assert write(world, 1) is Rejection.WRITER_CLOSED
    assert [write(world, each, closings=1) for each in (0, 1)] == [at(each) for each in (0, 1)]
    assert write(world, 0, partition=1) == at(0), "the writers of another partition go on"
    world.check()


def test_a_batch_that_could_not_be_decided_closes_the_writers_as_well(world: World) -> None:
    batch = AppendBatch(
        topic="t", partition=0, closings=0, record_count=1, size=SIZE, max_timestamp_ms=0, writer=named_writer("a", 0)
    )
    outcome = undecided(world.state, batch)
    assert outcome == Outcome(events=(WritersClosed(partition_id=PartitionId(0)),), reply=Rejection.STORAGE_ERROR)
    assert undecided(world.state, SetDiskRoom(room=None)).events == ()


def test_a_writer_of_a_topic_that_was_created_again_writes_nothing(world: World) -> None:
    assert write(world, 0) == at(0)
    refuse(world, QUOTA)
    write(world, 1)
    world.send(DeleteTopic(topic="t"))
    assert world.state.volatile.closings == {}
    world.topic()
    assert write(world, 1) is Rejection.UNKNOWN_TOPIC_OR_PARTITION
    world.check()


def test_a_restart_forgets_the_closings_with_the_connections(world: World) -> None:
    refuse(world, QUOTA)
    write(world, 0)
    world.crash()
    assert write(world, 0) == at(0)
    world.check()
