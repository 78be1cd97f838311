"""The invariants must be able to fail: each planted defect is found, by the invariant that it breaks."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from exacta.core.commands import AppendBatch, ForgetCompacted, OffsetToCommit
from exacta.core.events import (
    BatchAppended,
    GroupDeleted,
    GroupEpochsReserved,
    GroupSettled,
    IdsReserved,
    OffsetsCommitted,
    TopicEpochMoved,
    TransactionalOffsetsCommitted,
    TransactionBegun,
    TransactionEnded,
    WriterNamed,
)
from exacta.core.groups.expiry import KEPT_METADATA
from exacta.core.ids import Offset, PartitionId, ProducerEpoch, ProducerId, TransactionId
from exacta.core.state.partition import ProducerState
from simulation.invariants.invariants import violations
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import Consumer, settle
from tests.core.world import World, named_writer


def history() -> World:
    """Two committed transactions, an aborted one, an open one, and a group's offsets."""
    world = World()
    world.topic()
    for commit in (True, False, True):
        producer = world.producer()
        producer.add()
        producer.append(count=2)
        producer.append()
        producer.add_group()
        producer.commit_offsets(3)
        producer.end(commit=commit)
    producer = world.producer("y")
    producer.add()
    producer.append()
    for name in ("m", "n", "m"):
        writer = named_writer(name, len(world.log))
        world.send(AppendBatch(topic="t", partition=0, record_count=1, size=62, max_timestamp_ms=0, writer=writer))
    world.check()
    return world


def _change_log(world: World, kind: type, number: int, **fields: object) -> None:
    places = [place for place, event in enumerate(world.log) if isinstance(event, kind)]
    world.log[places[number]] = replace(world.log[places[number]], **fields)


def lose_a_batch(world: World) -> None:
    del world.log[next(place for place, event in enumerate(world.log) if isinstance(event, BatchAppended))]


def append_twice(world: World) -> None:
    event = next(event for event in world.log if isinstance(event, BatchAppended))
    world.log.append(replace(event, base_offset=Offset(99)))


def forget_the_aborted(world: World) -> None:
    world.state.partitions[next(iter(world.state.partitions))].aborted.clear()


def miscount_the_aborted(world: World) -> None:
    for partition in world.state.partitions.values():
        partition.aborted = [replace(each, runs=each.runs[:1] * 2) for each in partition.aborted]


def let_the_lso_run_ahead(world: World) -> None:
    world.state.partitions[next(iter(world.state.partitions))].open_transactions.clear()


def pin_the_lso(world: World) -> None:
    world.state.partitions[next(iter(world.state.partitions))].open_transactions[ProducerId(77)] = Offset(1)


def keep_offsets_pending(world: World) -> None:
    world.state.groups["g"].pending[TransactionId(77)] = {}


def let_an_offset_not_take_effect(world: World) -> None:
    offsets = world.state.groups["g"].offsets["t"]
    offsets[0] = replace(offsets[0], offset=offsets[0].offset - 1)


def accept_an_old_epoch(world: World) -> None:
    _change_log(world, BatchAppended, -4, producer_epoch=ProducerEpoch(-1))


def store_a_named_repeat(world: World) -> None:
    _change_log(world, BatchAppended, -1, base_sequence=0)


def give_a_name_two_numbers(world: World) -> None:
    _change_log(world, WriterNamed, -1, name="m")


def give_a_topic_epoch_twice(world: World) -> None:
    world.log.extend(2 * [TopicEpochMoved(partition_id=PartitionId(0), topic_epoch=0)])
    world.state.partitions[PartitionId(0)].topic_epoch = 0


def let_a_named_writer_be_a_producer(world: World) -> None:
    world.state.partitions[PartitionId(0)].producers[ProducerId(77)] = ProducerState(ProducerEpoch(0), [])


def forget_a_body(world: World) -> None:
    world.state.partitions[PartitionId(0)].bodies.clear()


def skip_a_marker(world: World) -> None:
    _change_log(world, TransactionEnded, 0, markers=())


def forget_a_deadline(world: World) -> None:
    world.ongoing("y").timeout_ms = 0


def lose_an_open_transaction(world: World) -> None:
    world.state.transactional_ids["y"].open = None


def forget_a_producer_id(world: World) -> None:
    world.state.volatile.transaction_by_producer.clear()


def miscount_the_handles(world: World) -> None:
    world.state.volatile.open_handles += 1


def miscount_the_runs_of_a_transaction(world: World) -> None:
    found = next(iter(world.state.transactions.values()))
    found.acknowledged_runs += 1
    world.state.volatile.pending_runs += 1


def give_a_transaction_id_twice(world: World) -> None:
    first = next(event for event in world.log if isinstance(event, TransactionBegun))
    _change_log(world, TransactionBegun, -1, transaction_id=first.transaction_id)


def go_back_to_ids_of_before(world: World) -> None:
    world.state.volatile.next_transaction_id = TransactionId(0)


def reserve_no_ids(world: World) -> None:
    world.log[:] = [event for event in world.log if not isinstance(event, IdsReserved)]


def take_back_a_reservation(world: World) -> None:
    world.log.append(IdsReserved(end_producer_id=ProducerId(1), end_transaction_id=TransactionId(1)))


def give_a_handle_somebodys_producer_id(world: World) -> None:
    begun = [event for event in world.log if isinstance(event, TransactionBegun)]
    world.log.append(replace(begun[-1], transaction_id=TransactionId(77), owner=None))


def commit_a_lost_handle(world: World) -> None:
    handle = world.handle()
    world.found_after_loss.add(handle.transaction_id)
    handle.end(commit=True)


def forget_an_offset(world: World) -> None:
    world.state.groups["g"].offsets.clear()


@pytest.mark.parametrize(
    ("plant", "invariant"),
    [
        (lose_a_batch, "2"),
        (append_twice, "1"),
        (store_a_named_repeat, "1"),
        (give_a_name_two_numbers, "writers"),
        (give_a_topic_epoch_twice, "writers"),
        (let_a_named_writer_be_a_producer, "writers"),
        (forget_a_body, "bodies"),
        (forget_the_aborted, "5"),
        (miscount_the_aborted, "5"),
        (let_the_lso_run_ahead, "4"),
        (pin_the_lso, "3"),
        (keep_offsets_pending, "3"),
        (let_an_offset_not_take_effect, "3"),
        (accept_an_old_epoch, "6"),
        (forget_a_deadline, "7"),
        (lose_an_open_transaction, "7"),
        (forget_a_producer_id, "7"),
        (miscount_the_handles, "7"),
        (miscount_the_runs_of_a_transaction, "limits"),
        (give_a_transaction_id_twice, "9"),
        (go_back_to_ids_of_before, "9"),
        (reserve_no_ids, "9"),
        (take_back_a_reservation, "9"),
        (give_a_handle_somebodys_producer_id, "6"),
        (commit_a_lost_handle, "2"),
        (forget_an_offset, "8"),
    ],
)
def test_a_planted_defect_is_found(plant: Callable[[World], None], invariant: str) -> None:
    world = history()
    plant(world)
    found = violations(world.state, world.log, world.acknowledged, world.found_after_loss)
    assert any(sentence.startswith(f"{invariant}:") for sentence in found), found


def test_a_record_that_nothing_older_holds_back_is_found() -> None:
    world = history()
    partition = world.state.partitions[next(iter(world.state.partitions))]
    partition.open_transactions = {ProducerId(77): Offset(1), **partition.open_transactions}
    found = [each for each in violations(world.state, world.log) if "nothing older holds back" in each]
    assert all(each.startswith("3: TransactionEnded") for each in found)
    # Each of the three has two batches; the second record of the first batch lies at 1.
    assert [int(each.split()[-3]) for each in found] == [1, 2, 4, 6, 8, 10]


def groups() -> World:
    """A group of each protocol, the classic one after its second rebalance."""
    group = Group()
    group.stable("a")
    group.stable("a", "b")
    consumers = [Consumer(group.world, name, "t", group_id="h") for name in ("c", "d")]
    for consumer in consumers:
        consumer.join()
    settle(*consumers)
    group.world.check()
    return group.world


def forget_the_last_rebalance(world: World) -> None:
    first = next(event for event in world.log if isinstance(event, GroupSettled))
    assert first.membership is not None
    world.state.settled["g"] = first.membership


def forget_a_member(world: World) -> None:
    kept = world.state.settled_consumers["h"]
    world.state.settled_consumers["h"] = replace(kept, members={"c": kept.members["c"]})


def give_a_partition_to_both(world: World) -> None:
    members = world.state.volatile.consumer_groups["h"].members
    members["c"].assigned.update(members["d"].assigned)


def begin_a_generation_again(world: World) -> None:
    settled = [event for event in world.log if isinstance(event, GroupSettled)]
    assert settled[-1].membership is not None
    _change_log(world, GroupSettled, -1, membership=replace(settled[-1].membership, generation=0))


def expire_a_group_that_has_members(world: World) -> None:
    world.log.append(GroupDeleted(group_id="h", expired_at_ms=world.now_ms + world.state.limits.offsets_retention_ms))


def expire_a_group_that_has_left_just_now(world: World) -> None:
    settled = GroupSettled(group_id="g", membership=None)
    committed = OffsetsCommitted(group_id="g", offsets=(), at_ms=world.now_ms)
    too_early_ms = world.now_ms + world.state.limits.offsets_retention_ms - 1
    world.log += [settled, committed, GroupDeleted(group_id="g", expired_at_ms=too_early_ms)]


def expire_a_group_whose_offset_waits(world: World) -> None:
    waiting = TransactionalOffsetsCommitted(group_id="w", transaction_id=TransactionId(99), offsets=(), at_ms=0)
    world.log += [waiting, GroupDeleted(group_id="w", expired_at_ms=world.state.limits.offsets_retention_ms)]


def expire_a_group_of_a_spark_query(world: World) -> None:
    remembered = OffsetToCommit(topic="t", partition=0, offset=1, metadata=KEPT_METADATA[0])
    committed = OffsetsCommitted(group_id="s", offsets=(remembered,), at_ms=0)
    world.log += [committed, GroupDeleted(group_id="s", expired_at_ms=world.state.limits.offsets_retention_ms)]


def reserve_nothing(world: World) -> None:
    world.log[:] = [event for event in world.log if not isinstance(event, GroupEpochsReserved)]


@pytest.mark.parametrize(
    "plant",
    [
        forget_the_last_rebalance,
        forget_a_member,
        give_a_partition_to_both,
        begin_a_generation_again,
        reserve_nothing,
        expire_a_group_that_has_members,
        expire_a_group_that_has_left_just_now,
        expire_a_group_whose_offset_waits,
        expire_a_group_of_a_spark_query,
    ],
)
def test_a_planted_defect_of_groups_is_found(plant: Callable[[World], None]) -> None:
    world = groups()
    plant(world)
    found = violations(world.state, world.log)
    assert any(sentence.startswith("groups:") for sentence in found), found


def test_a_missing_marker_is_found() -> None:
    world = history()
    skip_a_marker(world)
    found = violations(world.state, world.log, world.acknowledged)
    assert any(sentence.startswith("7:") for sentence in found), found


def test_what_compaction_has_removed_readers_are_told_of_no_more() -> None:
    world = history()
    for partition in list(world.state.partitions.values()):
        end_offset = partition.last_stable_offset
        world.send(ForgetCompacted(topic=partition.topic, partition=partition.index, before_offset=end_offset))
    assert not any(partition.aborted for partition in world.state.partitions.values())
    world.check()
