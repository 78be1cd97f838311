"""Sidecar topics: the table of staged streams as a sweep, and what holds of staged batches all the while."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from exacta.core.commands import DeleteRecords, DeleteTopic
from exacta.core.events import TransactionEnded
from exacta.core.ids import Body
from exacta.core.log import staging, staging_fold
from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, TopicDeletedReply, TransactionEndedReply
from exacta.core.snapshot import is_same
from exacta.core.state.staged import HELD
from exacta.core.values.limits import Limits
from tests.core.log.staging_world import (
    LIMITS,
    MARKER,
    ONE,
    SIDECAR,
    WIDE,
    append_as,
    partition_of,
    since,
    staged_as,
    told,
    words,
    world_with,
)
from tests.core.world import World
from tests.docstring_tables import docstring_table


@pytest.fixture
def world() -> World:
    return world_with(t=SIDECAR)


# --- the table --------------------------------------------------------------------------------------------------------

TABLE = docstring_table("exacta.core.log.staging", "input \\ the producer's stream in the partition")
ROOM, TOO_MUCH = "a batch that the state has room for", "a batch that would be too much for the state"
COMMIT, ABORT, DELETION = "commit", "abort", "deletion of the topic"
EVENTS = {
    # what a cell says of a batch, or of a commit: the words for its events
    "stage, held": ["stage, held"],
    "stage, spilled": ["stage, spilled"],
    "spill, stage": ["spill", "stage, spilled"],
    "enter, copied": ["enter"],
    "enter, in place": ["enter"],
}


def events_of(given: str, cell: str) -> list[str]:
    if cell in ("-", "drop"):
        return [] if given == DELETION else ["nothing enters"]
    return EVENTS[cell]


def test_the_table_is_complete() -> None:
    assert list(TABLE.rows) == [ROOM, TOO_MUCH, COMMIT, ABORT, DELETION]


@pytest.mark.parametrize("begins_again", [False, True])
@pytest.mark.parametrize(("given", "state", "cell"), TABLE.cells())
def test_the_table(world: World, given: str, state: str, cell: str, begins_again: bool) -> None:
    world.producer(None).append()  # offset 0
    producer = staged_as(world, state)
    partition, producer_id = partition_of(world), producer.producer_id
    if begins_again:
        world.crash()
        partition = partition_of(world)
    before = partition.staged.get(producer_id)
    count, stream = (0, HELD) if before is None else (before.record_count, before.stream)
    length = len(world.log)
    if given in (ROOM, TOO_MUCH):
        added = 1 if given == ROOM else WIDE
        assert producer.append(count=added) == told(count)
        staged = partition.staged[producer_id]
        assert staged.record_count == count + added
        assert len(staged.held) == (cell == "stage, held") * (1 + (state == "held"))
        assert partition.next_offset == partition.last_stable_offset == 1, "nobody sees it, and nobody waits"
    elif given in (COMMIT, ABORT):
        assert isinstance(producer.end(commit=given == COMMIT), TransactionEndedReply)
        entered = count if given == COMMIT else 0
        assert partition.next_offset == partition.last_stable_offset == 1 + entered
        places = [(each.first_offset, each.end_offset, each.stream) for each in partition.entered]
        assert places == ([(1, 1 + count, stream)] if cell == "enter, in place" else [])
        assert world.state.volatile.streams_let_go == ([stream] if cell == "drop" and state == "spilled" else [])
        assert not partition.aborted, "readers are told of nothing that was never there"
    else:
        assert isinstance(world.send(DeleteTopic(topic="t")), TopicDeletedReply)
        assert world.state.volatile.streams_let_go == ([stream] if cell == "drop" and state == "spilled" else [])
    assert words(since(world, length)) == events_of(given, cell)
    if given in (COMMIT, ABORT, DELETION):
        assert (world.state.volatile.held_bytes, world.state.volatile.staged_bytes) == (0, 0)
        assert not partition.staged or given == DELETION
    world.check()
    before_crash = world.state
    world.durable_length = len(world.log)
    world.crash()
    assert is_same(world.state, before_crash)


@pytest.mark.parametrize(
    ("limits", "held"),
    [
        (
            replace(LIMITS, max_held_batches_per_stream=2, max_held_bytes_per_stream=99 * ONE, max_held_bytes=99 * ONE),
            2,
        ),
        (replace(LIMITS, max_held_bytes_per_stream=3 * ONE - 1, max_held_bytes=9 * ONE), 2),
        (replace(LIMITS, max_held_bytes=2 * ONE), 2),
        (replace(LIMITS, max_held_batches_per_stream=0), 0),
    ],
)
def test_each_bound_of_what_the_state_holds(limits: Limits, held: int) -> None:
    world = world_with(limits, t=SIDECAR)
    writer = world.handle()
    for _ in range(4):
        writer.append()
    spilled = ["spill"] if held else []
    assert words(since(world, 0)) == ["stage, held"] * held + spilled + ["stage, spilled"] * (4 - held)
    world.check()


def test_what_all_streams_hold_is_bounded_together(world: World) -> None:
    first, second = world.handle(), world.handle()
    for writer in (first, first, first, second, second, second):
        writer.append()
    held = [len(each.held) for each in partition_of(world).staged.values()]
    assert held == [3, 0], "the sixth batch is too much for the state, so that its stream is spilled"
    first.end(commit=False)
    third = world.handle()
    third.append()
    assert len(partition_of(world).staged[third.producer_id].held) == 1, "there is room again"
    world.check()


# --- entering ---------------------------------------------------------------------------------------------------------


def test_transactions_lie_in_the_order_of_their_commits(world: World) -> None:
    first, second, third = world.handle(), world.handle(), world.handle()
    first.append(count=2)
    second.append(count=WIDE)
    first.append(count=1)
    third.append(count=5)
    assert partition_of(world).next_offset == 0
    for writer, commit in ((second, True), (third, False), (first, True)):
        assert writer.end(commit=commit) == DONE
    entries = [each.entries for each in world.log if isinstance(each, TransactionEnded)]
    assert entries == [
        ((0, 0, second.producer_id, WIDE),),
        (),
        ((0, WIDE, first.producer_id, 3),),
    ]
    assert partition_of(world).last_stable_offset == WIDE + 3
    world.check()


def test_marker_and_sidecar_topics_end_in_the_same_event() -> None:
    world = world_with(t=SIDECAR, m=MARKER)
    producer = world.producer()
    for topic, count in (("m", 2), ("t", 3)):
        producer.add(topic=topic)
        producer.append(count=count, topic=topic)
    marker, sidecar = partition_of(world, "m"), partition_of(world)
    assert (marker.last_stable_offset, sidecar.last_stable_offset) == (0, 0)
    producer.end(commit=True)
    [event] = [each for each in world.log if isinstance(each, TransactionEnded)]
    assert event.markers == ((marker.partition_id, 2, producer.producer_id),)
    assert event.entries == ((sidecar.partition_id, 0, producer.producer_id, 3),)
    assert (marker.last_stable_offset, sidecar.last_stable_offset) == (3, 3)
    world.check()


def test_the_two_streams_of_a_joint_transaction_enter_one_after_the_other(world: World) -> None:
    producer = world.producer()
    producer.add()
    producer.append(count=2)
    other = producer.join()
    other.append(count=WIDE)
    producer.append(count=1)
    other.append(count=1)
    assert producer.end(commit=True) != Rejection.INVALID_TRANSACTION_STATE
    [event] = [each for each in world.log if isinstance(each, TransactionEnded)]
    assert event.entries == ((0, 0, producer.producer_id, 3), (0, 3, other.producer_id, WIDE + 1))
    assert partition_of(world).next_offset == WIDE + 4
    world.check()


@pytest.mark.parametrize("before", ["sidecar", "marker"])
def test_both_sides_of_a_joint_transaction_go_on_in_a_partition_as_it_began(before: str) -> None:
    """The broker was started again with another default: records and a marker would lie across one another."""
    world = world_with(replace(LIMITS, transaction_buffer=before), t={})
    producer = world.producer()
    producer.add()
    producer.append()
    other = producer.join()
    world.state.limits = replace(LIMITS, transaction_buffer="marker" if before == "sidecar" else "sidecar")
    other.append()
    assert bool(partition_of(world).open_transactions) is (before == "marker")
    producer.end(commit=True)
    assert partition_of(world).next_offset == (2 if before == "sidecar" else 4)
    world.check()


def test_transactions_that_end_together_enter_one_after_the_other(world: World) -> None:
    producers = [world.producer(name) for name in "xyz"]
    for count, producer in enumerate(producers, 1):
        producer.add()
        producer.append(count=count)
    assert world.end_all(*producers, commit=True, partitions=(("t", 0),)) == DONE
    ends = [each for each in world.log if isinstance(each, TransactionEnded)]
    assert [each.entries for each in ends] == [
        ((0, 0, producers[0].producer_id, 1),),
        ((0, 1, producers[1].producer_id, 2),),
        ((0, 3, producers[2].producer_id, 3),),
    ]
    world.check()


def test_the_log_s_timestamps_are_the_time_of_the_commit(world: World) -> None:
    writer = world.handle()
    append_as(writer, count=WIDE, takes_append_time=True)
    world.now_ms += 500
    writer.end(commit=True)
    [entered] = partition_of(world).entered
    assert (entered.max_timestamp_ms, entered.append_time_ms) == (world.now_ms, world.now_ms)
    other = world.handle()
    append_as(other, count=WIDE)
    written_ms = world.now_ms
    world.now_ms += 500
    other.end(commit=True)
    entered = partition_of(world).entered[1]
    assert (entered.max_timestamp_ms, entered.append_time_ms) == (written_ms, -1)
    world.check()


# --- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, WIDE])
@pytest.mark.parametrize("ending", ["open", "commit", "abort"])
def test_a_repeat_gets_the_same_answer(world: World, ending: str, count: int) -> None:
    producer = world.producer()
    producer.add()
    first, second = producer.append(count=count), producer.append(count=2)
    assert (first, second) == (told(0), told(count))
    if ending != "open":
        assert isinstance(producer.end(commit=ending == "commit"), TransactionEndedReply)
    again = told(count, repeated=True, timestamp_ms=world.now_ms)
    assert producer.append(count=2, sequence=count) == again
    world.crash()
    assert producer.append(count=2, sequence=count) == again
    assert partition_of(world).staged_count == count + 2
    world.check()


def test_an_aborted_batch_s_sequences_stay_used(world: World) -> None:
    producer = world.producer()
    producer.add()
    producer.append(count=3)
    producer.end(commit=False)
    producer.add()
    assert producer.append(sequence=4) is Rejection.OUT_OF_ORDER_SEQUENCE
    assert producer.append(sequence=3) == told(3), "and no provisional offset is given out a second time"
    world.check()


def test_a_provisional_offset_is_none_of_the_protocols_numbers() -> None:
    assert all(not staging.is_provisional(each) for each in (-5, -2, -1, 0, 1, 2**62))
    last = FIRST_PROVISIONAL_OFFSET + 2**60
    assert staging.is_provisional(FIRST_PROVISIONAL_OFFSET)
    assert staging.is_provisional(last)
    assert last + 2**31 < -1, "what a client adds to it stays below zero"
    assert staging.place_of(last) == 2**60


OPEN, GONE = staging.NotEntered


def test_a_receipt_leads_to_the_offset_at_which_its_message_has_entered(world: World) -> None:
    first, second, aborted = world.handle(), world.handle(), world.handle()
    for writer, count in ((first, 2), (second, 3), (first, 1), (aborted, 4), (second, WIDE), (first, 1)):
        append_as(writer, count=count, body=Body.PULSAR)
    partition = partition_of(world)

    def offsets(places: Iterable[int]) -> list[int | None]:
        return [staging.offset_of_receipt(partition, FIRST_PROVISIONAL_OFFSET + place) for place in places]

    def found(place: int) -> object:
        return staging.find_staged(partition, FIRST_PROVISIONAL_OFFSET + place)

    last = 10 + WIDE
    assert offsets([0, 5, last]) == [None, None, None], "it has not entered yet"
    assert [found(place) for place in (0, 5, last, last + 1, -1)] == [OPEN, OPEN, OPEN, GONE, GONE]
    second.end(commit=True)
    aborted.end(commit=False)
    first.end(commit=True)
    end = WIDE + 3
    assert offsets([2, 3, 4]) == [0, 1, 2]
    assert offsets([10, 9 + WIDE]) == [3, end - 1]
    assert offsets([0, 1, 5, last]) == [end, end + 1, end + 2, end + 3]
    assert offsets([6, 9, last + 1, -1]) == [None] * 4
    assert [found(place) for place in (2, 0, 6, last + 1)] == [0, end, GONE, GONE]
    world.send(DeleteRecords(topic="t", partition=0, before_offset=end + 1))
    assert offsets([2, 10, 0]) == [None] * 3, "it is not there any more"
    assert offsets([1, 5]) == [end + 1, end + 2]
    world.check()


def test_receipts_that_follow_one_another_are_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        writer = world.handle()
        append_as(writer, count=2, body=Body.PULSAR)
        writer.end(commit=True)
    assert [(each.first_place, each.first_offset, each.count) for each in partition_of(world).receipts] == [(0, 0, 6)]
    monkeypatch.setattr(staging_fold, "MOST_RECEIPTS", 2)
    for _ in range(3):
        aborted, writer = world.handle(), world.handle()
        for each in (aborted, writer):
            append_as(each, body=Body.PULSAR)
        aborted.end(commit=False)
        writer.end(commit=True)
    assert [each.first_place for each in partition_of(world).receipts] == [9, 11], "the oldest are forgotten"


@pytest.mark.parametrize("few", [0, 1, 50])
def test_many_receipts_are_remembered_as_few_are(world: World, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """If transactions take turns in a partition, each message has a receipt of its own."""
    monkeypatch.setattr(staging_fold, "FEW_RECEIPTS", few)
    writers = [world.handle() for _ in range(3)]
    for number in range(9):
        append_as(writers[number % 3], count=1 + number % 2, body=Body.KAFKA if number == 4 else Body.PULSAR)
    for number in (2, 0, 1):
        writers[number].end(commit=True)
    found = [(each.first_place, each.first_offset, each.count) for each in partition_of(world).receipts]
    assert found == [(0, 4, 1), (1, 8, 2), (3, 0, 1), (4, 5, 2), (7, 1, 2), (9, 7, 1), (10, 11, 2), (12, 3, 1)]
    world.check()


def test_places_that_nobody_asks_for_take_no_room(world: World) -> None:
    """Two bulk loads into one partition would note each of their batches."""
    kafka, pulsar = world.handle(), world.handle()
    for _ in range(9):
        append_as(kafka)
        append_as(pulsar, body=Body.PULSAR)
    append_as(kafka, body=Body.PULSAR)
    partition = partition_of(world)
    assert next(each.places for each in partition.staged.values()) == [~0, 9, 18, 1]
    found = [staging.find_staged(partition, FIRST_PROVISIONAL_OFFSET + place) for place in (0, 1, 2, 17, 18, 19)]
    assert found == [GONE, OPEN, GONE, OPEN, OPEN, GONE]
    kafka.end(commit=True)
    assert staging.find_staged(partition, FIRST_PROVISIONAL_OFFSET + 18) == 9
    world.check()


@pytest.mark.parametrize("between", ["a plain batch", "an abort"])
def test_what_is_between_two_transactions_parts_their_receipts(world: World, between: str) -> None:
    for _ in range(2):
        handle = world.handle()
        append_as(handle, body=Body.PULSAR)
        handle.end(commit=True)
        if between == "an abort":
            aborted = world.handle()
            append_as(aborted, body=Body.PULSAR)
            aborted.end(commit=False)
        else:
            world.producer(None).append()
    places = [(each.first_place, each.first_offset) for each in partition_of(world).receipts]
    assert places == ([(0, 0), (2, 1)] if between == "an abort" else [(0, 0), (1, 2)])
