"""Sidecar topics: the table of staged streams as a sweep, and what holds of staged batches all the while."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from exacta.core.commands import AppendBatch, CreateTopic, DeleteRecords, DeleteTopic, SetTopicConfigs
from exacta.core.events import BatchAppended, BatchStaged, Event, StagedStreamSpilled, TransactionEnded
from exacta.core.ids import Body, PartitionId
from exacta.core.log import staging, staging_fold
from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, RecordsDeleted, TopicDeletedReply, TransactionEndedReply
from exacta.core.snapshot import after_recovery, is_same, restore, snapshot
from exacta.core.state.limits import Limits
from exacta.core.state.partition import Partition
from exacta.core.state.staged import HELD
from tests.core.world import SMALL, Handle, Producer, World

ONE = 62
"""The bytes of a batch of one record, as `tests.core.world` writes it."""
WIDE = 150
"""So many records in one batch are too much for the state."""
SIDECAR, MARKER = {"transaction.buffer": "sidecar"}, {"transaction.buffer": "marker"}
LIMITS = replace(
    SMALL,
    sequence_modulus=2**31,
    max_held_bytes_per_stream=3 * ONE,
    max_held_batches_per_stream=3,
    max_held_bytes=5 * ONE,
    max_staged_bytes=100 * ONE,
)


def world_with(limits: Limits = LIMITS, **topics: dict[str, str]) -> World:
    """Return a world with topics of two partitions each, of these configurations."""
    world = World(limits)
    for name, configs in topics.items():
        topic_id = name.encode().ljust(16, b"0")
        world.send(CreateTopic(topic=name, topic_id=topic_id, partition_count=2, configs=configs))
    return world


@pytest.fixture
def world() -> World:
    return world_with(t=SIDECAR)


def partition_of(world: World, topic: str = "t", index: int = 0) -> Partition:
    partition = world.state.partition(topic, index)
    assert partition is not None
    return partition


def told(place: int, *, repeated: bool = False, timestamp_ms: int = -1) -> Appended:
    base_offset = FIRST_PROVISIONAL_OFFSET + place
    return Appended(base_offset=base_offset, repeated=repeated, max_timestamp_ms=timestamp_ms)  # type: ignore[arg-type]


def since(world: World, length: int) -> list[Event]:
    return [each for each in world.log[length:] if isinstance(each, _OF_STAGING)]


_OF_STAGING = (BatchAppended, BatchStaged, StagedStreamSpilled, TransactionEnded)


def words(events: Iterable[Event]) -> list[str]:
    """Say what happens to a staged stream."""
    found: list[str] = []
    for event in events:
        if isinstance(event, StagedStreamSpilled):
            found.append("spill")
        elif isinstance(event, BatchStaged):
            found.append("stage, held" if event.is_held else "stage, spilled")
        elif isinstance(event, TransactionEnded):
            assert event.markers == ()
            found.append("enter" if event.entries else "nothing enters")
        elif isinstance(event, BatchAppended):
            found.append("append")
    return found


# --- the table --------------------------------------------------------------------------------------------------------

TABLE = {
    ("room", "none"): ["stage, held"],
    ("room", "held"): ["stage, held"],
    ("room", "spilled"): ["stage, spilled"],
    ("too much", "none"): ["stage, spilled"],
    ("too much", "held"): ["spill", "stage, spilled"],
    ("too much", "spilled"): ["stage, spilled"],
    ("commit", "none"): ["nothing enters"],
    ("commit", "held"): ["enter"],
    ("commit", "spilled"): ["enter"],
    ("abort", "none"): ["nothing enters"],
    ("abort", "held"): ["nothing enters"],
    ("abort", "spilled"): ["nothing enters"],
    ("deletion", "none"): [],
    ("deletion", "held"): [],
    ("deletion", "spilled"): [],
}


def staged_as(world: World, state: str) -> Producer:
    """Return a producer whose stream in partition 0 of `t` is in this state."""
    producer = world.producer()
    assert producer.add() == DONE
    if state == "held":
        assert isinstance(producer.append(), Appended)
    if state == "spilled":
        assert isinstance(producer.append(count=WIDE), Appended)
    stream = partition_of(world).staged.get(producer.producer_id)
    assert ("none" if stream is None else "held" if stream.stream == HELD else "spilled") == state
    return producer


@pytest.mark.parametrize("begins_again", [False, True])
@pytest.mark.parametrize(("given", "state"), TABLE)
def test_the_table(world: World, given: str, state: str, begins_again: bool) -> None:
    world.producer(None).append()  # offset 0
    producer = staged_as(world, state)
    partition, producer_id = partition_of(world), producer.producer_id
    if begins_again:
        world.crash()
        partition = partition_of(world)
    before = partition.staged.get(producer_id)
    count, stream = (0, HELD) if before is None else (before.record_count, before.stream)
    length = len(world.log)
    match given:
        case "room" | "too much":
            added = 1 if given == "room" else WIDE
            assert producer.append(count=added) == told(count)
            staged = partition.staged[producer_id]
            assert staged.record_count == count + added
            assert len(staged.held) == TABLE[given, state].count("stage, held") + (given == "room" and state == "held")
            assert partition.next_offset == partition.last_stable_offset == 1, "nobody sees it, and nobody waits"
        case "commit" | "abort":
            assert isinstance(producer.end(commit=given == "commit"), TransactionEndedReply)
            entered = count if given == "commit" else 0
            assert partition.next_offset == partition.last_stable_offset == 1 + entered
            places = [(each.first_offset, each.end_offset, each.stream) for each in partition.entered]
            assert places == ([(1, 1 + count, stream)] if entered and state == "spilled" else [])
            assert world.state.volatile.streams_let_go == ([stream] if given == "abort" and state == "spilled" else [])
            assert not partition.aborted, "readers are told of nothing that was never there"
        case _:
            assert isinstance(world.send(DeleteTopic(topic="t")), TopicDeletedReply)
            assert world.state.volatile.streams_let_go == ([stream] if state == "spilled" else [])
    assert words(since(world, length)) == TABLE[given, state]
    if given in ("commit", "abort", "deletion"):
        assert (world.state.volatile.held_bytes, world.state.volatile.staged_bytes) == (0, 0)
        assert not partition.staged or given == "deletion"
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


def append_as(handle: Handle, *, count: int = 1, body: Body = Body.KAFKA, takes_append_time: bool = False) -> object:
    return handle.world.send(
        AppendBatch(
            topic="t",
            partition=0,
            record_count=count,
            size=61 + count,
            max_timestamp_ms=handle.world.now_ms,
            body=body,
            takes_append_time=takes_append_time,
            transaction=handle.transaction_id,
            handle_producer_id=handle.producer_id,
        )
    )


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


# --- the configuration ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begins_again", [False, True])
@pytest.mark.parametrize("limits", [LIMITS, replace(LIMITS, transaction_buffer="sidecar")])
@pytest.mark.parametrize(("before", "after"), [(SIDECAR, MARKER), (MARKER, SIDECAR), ({}, MARKER), (SIDECAR, {})])
def test_a_changed_buffer_holds_for_transactions_that_begin_later(
    before: dict[str, str], after: dict[str, str], limits: Limits, begins_again: bool
) -> None:
    world = world_with(limits, t=before)
    wrote, only_began = world.handle(), world.handle()
    wrote.append()
    assert world.send(SetTopicConfigs(topic="t", configs=after)) == DONE
    if begins_again:
        world.state = restore(snapshot(world.state), limits)
        after_recovery(world.state)
    later = world.handle()
    length = len(world.log)
    for writer in (wrote, only_began, later):
        writer.append()
        writer.append(1)

    def kind(configs: dict[str, str]) -> type[Event]:
        is_sidecar = configs.get("transaction.buffer", limits.transaction_buffer) == "sidecar"
        return BatchStaged if is_sidecar else BatchAppended

    written = [type(each) for each in since(world, length) if isinstance(each, BatchAppended | BatchStaged)]
    assert written == [kind(before)] * 4 + [kind(after)] * 2
    for writer in (wrote, only_began, later):
        assert writer.end(commit=True) == DONE
    world.check()
    assert partition_of(world).last_stable_offset == partition_of(world).next_offset


def test_two_changes_hold_each_for_those_that_begin_after_it() -> None:
    world = world_with(t=SIDECAR)
    writers = [world.handle()]
    for configs in (MARKER, SIDECAR):
        world.send(SetTopicConfigs(topic="t", configs=configs))
        writers.append(world.handle())
    for writer in writers:
        writer.append()
    partition = partition_of(world)
    assert [writer.producer_id in partition.staged for writer in writers] == [True, False, True]
    assert [writer.producer_id in partition.open_transactions for writer in writers] == [False, True, False]
    for writer in writers:
        writer.end(commit=True)
    world.check()


def test_a_transaction_goes_on_in_a_partition_as_it_began_there_whatever_the_broker_s_default_is() -> None:
    world = world_with(replace(LIMITS, transaction_buffer="sidecar"), t={})
    staged, marked = world.handle(), world.handle()
    staged.append()
    world.state = restore(snapshot(world.state), LIMITS)
    marked.append()
    world.state = restore(snapshot(world.state), replace(LIMITS, transaction_buffer="sidecar"))
    length = len(world.log)
    marked.append()
    staged.append()
    world.state = restore(snapshot(world.state), LIMITS)
    staged.append()
    assert words(since(world, length)) == ["append", "stage, held", "stage, held"]
    for writer in (staged, marked):
        writer.end(commit=True)
    world.check()


def test_no_more_is_remembered_of_changes_than_open_transactions_need(world: World) -> None:
    topic, writer = world.state.topics["t"], world.handle()
    for configs in (MARKER, SIDECAR, MARKER):
        world.send(SetTopicConfigs(topic="t", configs=configs))
    assert topic.buffers == [(writer.transaction_id, "sidecar")]
    writer.end(commit=False)
    world.send(SetTopicConfigs(topic="t", configs={**MARKER, "a": "1"}))
    assert topic.buffers == []


# --- bounds, deletions, recovery --------------------------------------------------------------------------------------


def test_so_many_bytes_are_staged_at_most() -> None:
    world = world_with(replace(LIMITS, max_staged_bytes=4 * ONE), t=SIDECAR, m=MARKER)
    first, second, producer = world.handle(), world.handle(), world.producer()
    producer.add(topic="m")
    for writer in (first, first, first, second):
        assert isinstance(writer.append(), Appended)
    length = len(world.log)
    assert second.append() is Rejection.LIMIT_REACHED
    assert len(world.log) == length
    assert isinstance(producer.append(topic="m"), Appended), "it is not for what lies in the log"
    assert isinstance(world.producer(None).append(), Appended)
    first.end(commit=False)
    assert isinstance(second.append(), Appended)
    world.check()


def test_what_is_staged_goes_with_its_topic_and_the_transaction_goes_on() -> None:
    world = world_with(t=SIDECAR, u=SIDECAR)
    producer = world.producer()
    for topic, count in (("t", 1), ("u", 2)):
        producer.add(topic=topic)
        producer.append(count=count, topic=topic)
    other = world.handle()
    other.append(count=WIDE)
    other.end(commit=True)
    other = world.handle()
    other.append(count=WIDE)
    streams = [partition_of(world).entered[0].stream, partition_of(world).staged[other.producer_id].stream]
    world.send(DeleteTopic(topic="t"))
    assert sorted(world.state.volatile.streams_let_go) == sorted(streams)
    assert other.end(commit=True) == DONE
    producer.end(commit=True)
    ends = [each.entries for each in world.log if isinstance(each, TransactionEnded)]
    assert ends[1:] == [(), ((partition_of(world, "u").partition_id, 0, producer.producer_id, 2),)]
    assert (world.state.volatile.held_bytes, world.state.volatile.staged_bytes) == (0, 0)
    world.check()


def test_records_are_deleted_through_a_stream_that_has_entered(world: World) -> None:
    world.producer(None).append(count=2)
    for _ in range(2):
        writer = world.handle()
        writer.append(count=WIDE)
        writer.end(commit=True)
    first, second = (each.stream for each in partition_of(world).entered)

    def delete(before_offset: int) -> tuple[dict[int, int], list[PartitionId]]:
        answer = world.send(DeleteRecords(topic="t", partition=0, before_offset=before_offset))
        assert answer == RecordsDeleted(log_start_offset=before_offset)  # type: ignore[arg-type]
        world.check()
        partition = partition_of(world)
        return staging.streams_of(partition, partition.log_start_offset), world.state.volatile.streams_let_go

    assert delete(1) == ({first: 0, second: 0}, [])
    assert delete(7) == ({first: 5, second: 0}, [])
    assert delete(WIDE + 2) == ({second: 0}, [first])
    assert delete(2 * WIDE + 2) == ({}, [first, second])


def test_a_snapshot_has_all_that_is_staged(world: World) -> None:
    committed, held, spilled = world.handle(), world.handle(), world.handle()
    append_as(committed, count=WIDE, body=Body.PULSAR)
    committed.end(commit=True)
    held.append()
    append_as(spilled, count=WIDE, takes_append_time=True)
    again = restore(snapshot(world.state), LIMITS)
    assert is_same(again, world.state)
    assert again.volatile.held_bytes == world.state.volatile.held_bytes == ONE
    assert again.volatile.staged_bytes == world.state.volatile.staged_bytes == ONE + 61 + WIDE
    world.state = again
    after_recovery(world.state)
    for writer in (held, spilled):
        assert writer.end(commit=True) == DONE
    assert partition_of(world).next_offset == 2 * WIDE + 1
    world.check()


def test_a_transaction_that_time_ends_drops_what_it_has_staged(world: World) -> None:
    writer = world.handle(timeout_ms=1000)
    writer.append(count=WIDE)
    world.pass_time(2000)
    assert not partition_of(world).staged
    assert partition_of(world).next_offset == 0
    assert writer.append() in (Rejection.TRANSACTION_NOT_FOUND, Rejection.INVALID_TRANSACTION_STATE)
    world.check()


def test_a_new_owner_of_the_transactional_id_drops_what_was_staged(world: World) -> None:
    zombie = staged_as(world, "spilled")
    world.producer()
    assert not partition_of(world).staged
    assert isinstance(zombie.append(), Rejection)
    assert isinstance(zombie.end(commit=True), Rejection)
    world.check()


def test_the_id_of_a_spilled_stream_is_no_partition_s(world: World) -> None:
    writer = world.handle()
    writer.append(count=WIDE)
    stream = partition_of(world).staged[writer.producer_id].stream
    assert staging.streams_of(partition_of(world), 0) == {stream: 0}
    world.send(CreateTopic(topic="u", topic_id=b"u" * 16, partition_count=2))
    assert stream not in world.state.partitions
    writer.end(commit=False)
    other = world.handle()
    other.append(count=WIDE)
    assert partition_of(world).staged[other.producer_id].stream > stream, "and it is not given out a second time"
    world.check()
