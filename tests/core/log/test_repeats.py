"""The rule of repeats: every row of its table, over batches as the log takes them."""

import itertools

import pytest

from exacta.core.commands import AppendBatch, CreateTopic
from exacta.core.events import BatchAppended
from exacta.core.ids import NO_PRODUCER_ID, NO_WRITER_ID, WriterId
from exacta.core.log.repeats import TABLE, Kind, Stored, Verdict, stored
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, Appended
from exacta.core.writers import NamedWriter, NamelessWriter
from tests.core.world import Handle, World

BATCHES = {Stored.ALL: (4, 5), Stored.SOME: (5, 6), Stored.NONE: (6, 7)}
"""The first and the last sequence of a batch after one that had 4 and 5."""
INSIDE = pytest.mark.parametrize("inside", [False, True])
CELLS = [
    (kind, is_part, how_much, inside)
    for (kind, is_part), row in TABLE.items()
    for how_much in row
    for inside in (False, True)
    if inside or kind is Kind.NAMED  # outside of a transaction nobody can tell what a nameless writer sends again
]


@pytest.mark.parametrize(
    ("highest", "first", "last", "expected"),
    [
        pytest.param(None, 0, 0, Stored.NONE, id="the first"),
        pytest.param(None, 7, 9, Stored.NONE, id="the first, behind a gap"),
        pytest.param(0, 0, 0, Stored.ALL, id="the same"),
        pytest.param(7, 0, 6, Stored.ALL, id="lower ones"),
        pytest.param(7, 5, 7, Stored.ALL, id="the last ones"),
        pytest.param(7, 7, 8, Stored.SOME, id="the last one and the next"),
        pytest.param(7, 0, 2**40, Stored.SOME, id="all and more"),
        pytest.param(7, 8, 8, Stored.NONE, id="the next"),
        pytest.param(7, 90, 99, Stored.NONE, id="later ones, behind a gap"),
        pytest.param(2**40, 2**40 + 1, 2**40 + 1, Stored.NONE, id="one beyond Kafka's sequences"),
    ],
)
def test_how_much_of_a_batch_is_stored(highest: int | None, first: int, last: int, expected: Stored) -> None:
    assert stored(highest, first, last) is expected


def test_the_table_is_complete() -> None:
    assert TABLE.keys() == set(itertools.product(Kind, (False, True)))
    assert all(row.keys() == set(Stored) for row in TABLE.values())


def write(
    world: World, handle: Handle | None, kind: Kind, batch: tuple[int, int], *, is_part: bool = False
) -> tuple[object, list[BatchAppended]]:
    """Return the answer to a batch of two messages, or to a part of one, and the batches that are in the log for it."""
    first, last = batch
    number = NamelessWriter(number=WriterId(-2), sequence=last, is_back=kind is Kind.BACK, is_part=is_part)
    named = NamedWriter(name="a", first_sequence=first, last_sequence=last, is_part=is_part)
    length = len(world.log)
    answer = world.send(
        AppendBatch(
            topic="t",
            partition=0,
            record_count=1 if is_part else 2,
            size=63,
            max_timestamp_ms=0,
            writer=named if kind is Kind.NAMED else number,
            transaction=None if handle is None else handle.transaction_id,
            handle_producer_id=NO_PRODUCER_ID if handle is None else handle.producer_id,
        )
    )
    return answer, [event for event in world.log[length:] if isinstance(event, BatchAppended)]


@pytest.mark.parametrize(("kind", "is_part", "how_much", "inside"), CELLS)
def test_every_cell_of_the_table(kind: Kind, is_part: bool, how_much: Stored, inside: bool) -> None:
    world = World()
    world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=1))
    handle = world.handle() if inside else None
    write(world, handle, kind, (4, 5))
    answer, appended = write(world, handle, kind, BATCHES[how_much], is_part=is_part)
    if kind is not Kind.NAMED and how_much is Stored.SOME:  # only its last sequence is looked at
        assert TABLE[kind, is_part][Stored.SOME] is TABLE[kind, is_part][Stored.NONE]
    match TABLE[kind, is_part][how_much]:
        case Verdict.REPEAT:
            assert (answer, appended) == (ALREADY_STORED, [])
        case Verdict.PARTLY_STORED:
            assert (answer, appended) == (Rejection.PARTLY_STORED, [])
        case Verdict.COUNTED:
            assert isinstance(answer, Appended)
            assert [each.base_sequence for each in appended] == [BATCHES[how_much][1]]
            assert appended[0].writer_id != NO_WRITER_ID
        case Verdict.UNCOUNTED:
            assert isinstance(answer, Appended)
            assert [(each.base_sequence, each.writer_id) for each in appended] == [(-1, NO_WRITER_ID)]
    world.check()


@INSIDE
def test_a_large_message_counts_when_it_is_whole(inside: bool) -> None:
    world = World()
    world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=1))
    handle = world.handle() if inside else None

    def parts(*which: bool) -> list[type]:
        return [type(write(world, handle, Kind.NAMED, (9, 9), is_part=part)[0]) for part in which]

    assert parts(True, True) == [Appended] * 2
    assert parts(True, True, False) == [Appended] * 3, "the connection was lost before the last part"
    assert parts(True, True, False) == [type(ALREADY_STORED)] * 3


def test_what_a_nameless_writer_sends_outside_of_a_transaction_is_new() -> None:
    world = World()
    world.send(CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=1))
    for _ in range(2):
        answer, appended = write(world, None, Kind.BACK, (4, 5))
        assert isinstance(answer, Appended)
        assert [(each.base_sequence, each.writer_id) for each in appended] == [(-1, NO_WRITER_ID)]
    world.check()
