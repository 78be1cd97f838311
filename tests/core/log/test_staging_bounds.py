"""Sidecar topics: a changed configuration, bounds, deletions, and what a recovery finds."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import CreateTopic, DeleteRecords, DeleteTopic, SetTopicConfigs
from exacta.core.events import BatchAppended, BatchStaged, Event, TransactionEnded
from exacta.core.ids import Body, PartitionId
from exacta.core.log import staging
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, RecordsDeleted
from exacta.core.snapshot import after_recovery, is_same, restore, snapshot
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
    words,
    world_with,
)
from tests.core.world import World


@pytest.fixture
def world() -> World:
    return world_with(t=SIDECAR)


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
    assert second.append() is Rejection.TOO_MUCH_STAGED
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
    assert again.volatile.held_batches == world.state.volatile.held_batches == 1
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
    assert writer.append() in (Rejection.TRANSACTION_NOT_FOUND, Rejection.TRANSACTION_ENDED)
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


def test_many_large_streams_leave_room_for_small_ones() -> None:
    """A large load into one topic must not let every small transaction of all others spill."""
    limits = replace(
        LIMITS, max_held_bytes_per_stream=4 * ONE, max_held_bytes=12 * ONE, small_held_bytes_per_stream=2 * ONE
    )
    world = world_with(limits, t=SIDECAR)
    large = [world.handle() for _ in range(4)]
    for writer in large:
        for _ in range(3):
            writer.append()
    staged = partition_of(world).staged
    assert [staged[writer.producer_id].stream == HELD for writer in large] == [True, True, False, False]
    small = [world.handle() for _ in range(4)]
    for writer in small:
        writer.append()
    assert all(staged[writer.producer_id].stream == HELD for writer in small)
    small[0].append()
    assert staged[small[0].producer_id].stream == HELD
    small[0].append()
    assert staged[small[0].producer_id].stream != HELD, "it is not small any more"
    world.check()


@pytest.mark.parametrize("end", ["commit", "abort", "delete the topic"])
def test_no_commit_has_more_batches_than_may_be_held_at_all(end: str) -> None:
    """A transaction with single records in a thousand partitions would hold up everybody else."""
    limits = replace(LIMITS, max_held_bytes=99 * ONE, max_held_batches=4)
    world = world_with(limits, t=SIDECAR, u=SIDECAR)
    writers = [world.handle() for _ in range(3)]
    for _ in range(2):
        for writer in writers:
            writer.append()
    staged = partition_of(world).staged
    assert [staged[writer.producer_id].stream == HELD for writer in writers] == [True, False, True]
    assert world.state.volatile.held_batches == 4
    for writer in writers:
        if end == "delete the topic":
            world.send(DeleteTopic(topic="t"))
        writer.end(commit=end == "commit")
    assert world.state.volatile.held_batches == 0
    world.check()
