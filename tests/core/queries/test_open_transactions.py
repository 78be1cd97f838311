"""What is told of open transactions: whether one may be used, what it has done, and what it holds back."""

from functools import partial
from typing import Any

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.core.ids import Offset, TransactionId
from exacta.core.queries.open_transactions import (
    HeldBack,
    InPartition,
    WrittenPartition,
    describe_open_transaction,
    ended_by_time,
    open_since,
    open_transaction_ids,
    why_not_open,
)
from exacta.core.rejections import Rejection
from exacta.core.values.transaction_buffer import SIDECAR, TRANSACTION_BUFFER
from tests.core.subscriptions.consumer import Consumer
from tests.core.world import World


def of(world: World, query: Any, transaction_id: int) -> Any:
    return query(world.state, world.now_ms, transaction_id=TransactionId(transaction_id))


def test_one_may_be_used_as_long_as_it_is_open() -> None:
    world = World()
    world.topic()
    handle, owned = world.handle(), world.producer("x")
    owned.add()
    why = partial(of, world, why_not_open)
    assert why(handle.transaction_id) is None
    assert why(world.ongoing("x").transaction_id) is Rejection.TRANSACTION_NOT_FOUND, "only its holder uses it"
    handle.end(commit=True)
    assert why(handle.transaction_id) is Rejection.TRANSACTION_ENDED
    assert why(99) is Rejection.TRANSACTION_NOT_FOUND


def test_it_tells_of_records_and_acknowledgements() -> None:
    world = World()
    world.topic(partition_count=1)
    alone, cumulative = Consumer(world, "alone").begin(), Consumer(world, "cumulative").begin()
    alone.write(3)
    handle, other = world.handle(), world.handle()
    other.append()
    handle.append()
    alone.acknowledge((1, 1), inside=handle)
    cumulative.acknowledge_before(2, inside=handle)
    described = of(world, describe_open_transaction, handle.transaction_id)
    place = InPartition(topic="t", index=0, partition_id=alone.key[0], is_one_of_several=False)
    assert described.written == (WrittenPartition(place, Offset(4)),)
    assert [(each.name, each.partition, each.before) for each in described.acknowledged] == [
        ("alone", place, None),
        ("cumulative", place, 2),
    ]
    assert of(world, describe_open_transaction, other.transaction_id).acknowledged == ()
    handle.end(commit=False)
    assert of(world, describe_open_transaction, handle.transaction_id) is None
    world.send(DeleteTopic(topic="t"))
    assert of(world, describe_open_transaction, other.transaction_id).written == ()


def test_staged_records_have_no_offset_yet() -> None:
    world = World()
    world.send(CreateTopic(topic="t", topic_id=b"2" * 16, partition_count=2, configs={TRANSACTION_BUFFER: SIDECAR}))
    handle = world.handle()
    handle.append(1)
    [written] = of(world, describe_open_transaction, handle.transaction_id).written
    assert (written.partition.index, written.partition.is_one_of_several, written.first_offset) == (1, True, None)


def test_it_tells_whom_it_holds_back() -> None:
    world = World()
    world.topic()
    handle, idle = world.handle(), world.handle()
    for index in (0, 1, 1):
        handle.append(index)
    assert open_transaction_ids(world.state) == [handle.transaction_id, idle.transaction_id]
    begun, nothing = open_since(world.state, [handle.transaction_id, TransactionId(99), idle.transaction_id])
    partitions = [world.state.partition("t", index) for index in (0, 1)]
    assert set(begun.held_back) == {
        HeldBack(each.partition_id, "t", offsets) for each, offsets in zip(partitions, (1, 2), strict=True) if each
    }
    assert (begun.start_ms, begun.topics) == (world.now_ms, frozenset({"t"}))
    assert (nothing.topics, nothing.held_back) == (frozenset(), ())


def test_time_ends_that_of_a_transactional_id() -> None:
    world = World()
    world.topic()
    producer = world.producer("x")
    assert ended_by_time(world.state, "x") is None
    producer.add()
    assert ended_by_time(world.state, "x") == world.ongoing("x").transaction_id
    assert ended_by_time(world.state, "nobody's") is None
