"""Trimming a log, as far as transactions and subscriptions let it; and partitions that take no batches."""

import pytest

from exacta.core.commands import DeleteRecords, DeleteTopic, RefuseAppends, Skip, Trim
from exacta.core.ids import Offset, PartitionId, TransactionId
from exacta.core.log.keeping import slowest_position
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, RecordsDeleted
from exacta.engine.backlog import REASONS, QuotaAction
from tests.core.subscriptions.consumer import Consumer
from tests.core.world import World
from tests.docstring_tables import docstring_table

REASON = Rejection.BACKLOG_QUOTA_EXCEEDED


def trim(world: World, before_offset: int, topic: str = "t") -> object:
    return world.send(Trim(topic=topic, partition=0, before_offset=before_offset))


def refuse(world: World, reason: Rejection | None, topic: str = "t") -> object:
    return world.send(RefuseAppends(topic=topic, partition=0, reason=reason))


TABLE = docstring_table("exacta.core.log.keeping", "what asks for it")
RETENTION = "retention.ms, retention.bytes"


def ask(world: World, row: str) -> None:
    """Ask as the engine and clients do, for all of a log of four messages."""
    match row:
        case "DeleteRecords":
            world.send(DeleteRecords(topic="t", partition=0, before_offset=4))
        case "DeleteTopic":
            world.send(DeleteTopic(topic="t"))
        case "pulsar.message.ttl.ms" | "consumer_backlog_eviction":
            assert world.send(Skip(topic="t", partition=0, before=Offset(4))) == DONE
        case "producer_request_hold" | "producer_exception":
            reason = REASONS[QuotaAction[row.upper()]]
            assert refuse(world, reason) == DONE
        case _:
            assert row == RETENTION
    if row in (RETENTION, "consumer_backlog_eviction", "producer_request_hold", "producer_exception"):
        trim(world, 4)


@pytest.mark.parametrize(("row", "column", "cell"), TABLE.cells())
def test_every_cell_of_the_table(world: World, row: str, column: str, cell: str) -> None:
    partition = world.state.partitions[PartitionId(0)]
    for _ in range(4):
        world.producer(None).append()
    if column != "without a durable subscription":
        consumer = Consumer(world).begin()
        if column == "all durable subscriptions are past the message":
            consumer.acknowledge_before(4)
    ask(world, row)
    is_there = PartitionId(0) in world.state.partitions
    kept, is_behind = is_there and partition.log_start_offset == 0, slowest_position(partition) == 0
    refused = isinstance(world.producer(None).append(), Rejection)
    match cell:
        case "removed":
            assert not kept
        case "kept":
            assert (kept, is_behind, refused) == (True, True, False)
        case "kept, nothing is appended":
            assert (kept, is_behind, refused) == (True, True, True)
        case "removed, acknowledged":
            assert (kept, is_behind, refused) == (False, False, False)
        case "removed, with the subscription":
            assert not is_there
        case "acknowledged":
            assert (kept, is_behind, refused) == (True, False, False)
        case "-":
            assert kept
            assert slowest_position(partition) in (None, 4)
        case other:
            raise AssertionError(other)
    world.check()


@pytest.mark.parametrize("begins_again", [False, True])
@pytest.mark.parametrize("open_at", [None, 1, 3])
@pytest.mark.parametrize("slowest", [None, 0, 2, 4])
@pytest.mark.parametrize("before_offset", [-1, 0, 1, 2, 3, 4, 9])
def test_a_trim_goes_as_far_as_what_is_needed_least(
    world: World, before_offset: int, slowest: int | None, open_at: int | None, begins_again: bool
) -> None:
    for offset in range(4):
        if offset == open_at:
            world.handle().append()
        else:
            world.producer(None).append()
    stable = 4 if open_at is None else open_at
    if slowest is not None:
        Consumer(world, "fast").begin().acknowledge_before(stable)
        Consumer(world).begin().acknowledge_before(min(slowest, stable))
    if begins_again:
        world.crash()
    expected = max(0, min(before_offset, stable, 4 if slowest is None else slowest))
    length = len(world.log)
    assert trim(world, before_offset) == RecordsDeleted(log_start_offset=Offset(expected))
    assert len(world.log) == length + (expected > 0)
    assert world.state.partitions[PartitionId(0)].log_start_offset == expected
    assert trim(world, before_offset) == RecordsDeleted(log_start_offset=Offset(expected))
    world.check()


def test_what_is_pending_is_kept_and_what_is_acknowledged_behind_it(world: World) -> None:
    consumer, writer, reader = Consumer(world).begin(), world.handle(), world.handle()
    writer.append(count=5)
    writer.end(commit=True)
    consumer.acknowledge((0, 0))
    consumer.acknowledge((1, 1), inside=reader)
    consumer.acknowledge((2, 4))
    assert trim(world, 5) == RecordsDeleted(log_start_offset=Offset(1))
    reader.end(commit=True)
    assert trim(world, 5) == RecordsDeleted(log_start_offset=Offset(5))
    world.check()


def test_without_a_subscription_nobody_is_slow(world: World) -> None:
    assert slowest_position(world.state.partitions[PartitionId(0)]) is None


def test_where_nothing_is_appended_a_repeat_is_still_a_repeat_and_an_end_is_an_end(world: World) -> None:
    idempotent, transactional, handle = world.producer(None), world.producer("x"), world.handle()
    idempotent.append(sequence=0)
    transactional.add()
    transactional.append()
    handle.append()
    assert refuse(world, REASON) == DONE
    again = idempotent.append(sequence=0)
    assert isinstance(again, Appended)
    assert again.repeated
    assert idempotent.append(sequence=1) is REASON
    assert transactional.append(sequence=1) is REASON
    assert handle.append() is REASON
    assert idempotent.append(1, sequence=0) == Appended(base_offset=Offset(0)), "another partition goes on"
    closed = world.handle()
    closed.end(commit=True)
    assert closed.append() is Rejection.TRANSACTION_ENDED, "what cannot help is told first"
    assert handle.end(commit=True) == DONE
    assert not isinstance(transactional.end(commit=True), Rejection)
    assert refuse(world, None) == DONE
    assert isinstance(idempotent.append(sequence=1), Appended)
    world.check()


def test_a_reason_is_forgotten_by_a_restart_and_with_its_topic(world: World) -> None:
    refuse(world, REASON)
    refuse(world, Rejection.BACKLOG_HOLDS_PRODUCERS)
    assert world.state.volatile.refusing == {0: Rejection.BACKLOG_HOLDS_PRODUCERS}
    world.crash()
    assert not world.state.volatile.refusing
    refuse(world, REASON)
    world.send(DeleteTopic(topic="t"))
    assert not world.state.volatile.refusing


def test_there_must_be_a_partition(world: World) -> None:
    assert trim(world, 0, "nowhere") is refuse(world, None, "nowhere") is Rejection.UNKNOWN_TOPIC_OR_PARTITION


def test_a_refused_write_does_not_become_part_of_its_transaction(world: World) -> None:
    handle = world.handle()
    refuse(world, REASON)
    assert handle.append() is REASON
    assert not world.state.transactions[TransactionId(handle.transaction_id)].partitions
    world.check()
