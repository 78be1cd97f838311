"""Taking the lead of the log: each leader has an epoch of its own, in every partition (decision 0060)."""

import pytest

from exacta.core.commands import AppendBatch, CreateTopic, DeleteRecords, TakeLead
from exacta.core.ids import PartitionId
from exacta.core.replies import LeadTakenReply
from exacta.core.snapshot import restore, snapshot
from exacta.core.values.leader_epochs import LeaderEpochs
from simulation.invariants.leaders import epochs_are_those_of_the_leaders
from tests.core.world import SMALL, World


def lead(world: World) -> int:
    reply = world.send(TakeLead(node_id=7))
    assert isinstance(reply, LeadTakenReply)
    world.check()
    return reply.leader_epoch


def append(world: World, count: int = 1, partition: int = 0) -> None:
    world.send(AppendBatch(topic="t", partition=partition, record_count=count, size=62, max_timestamp_ms=0))
    world.check()


def epochs(world: World, partition: int = 0) -> LeaderEpochs:
    return world.state.partitions[PartitionId(partition)].leader_epochs


def test_where_nobody_takes_the_lead_there_is_one_epoch(world: World) -> None:
    world.topic()
    append(world)
    assert world.state.leader_epoch == 0
    assert epochs(world) == ()


def test_each_leader_begins_where_the_log_ends(world: World) -> None:
    world.topic()
    append(world, 3)
    assert lead(world) == 1
    assert lead(world) == 2, "also the same node"
    append(world)
    assert lead(world) == 3
    assert epochs(world) == ((0, 0), (2, 3), (3, 4))
    assert epochs(world, 1) == ((3, 0),)


def test_ends_of_transactions_are_of_the_epoch_in_which_they_end(world: World) -> None:
    world.topic()
    producer = world.producer()
    producer.add()
    producer.append(count=2)
    lead(world)
    producer.end(commit=True)
    lead(world)
    assert epochs(world) == ((0, 0), (1, 2), (2, 3))


def test_a_new_topic_begins_in_the_present_epoch(world: World) -> None:
    lead(world)
    world.send(CreateTopic(topic="t", topic_id=b"1" * 16, partition_count=1))
    append(world)
    assert epochs(world) == ((1, 0),)


def test_deletion_moves_the_first_epoch(world: World) -> None:
    world.topic()
    append(world, 3)
    lead(world)
    append(world, 3)
    world.send(DeleteRecords(topic="t", partition=0, before_offset=4))
    world.check()
    assert epochs(world) == ((1, 4),)


def test_a_restart_keeps_all_of_it(world: World) -> None:
    world.topic()
    append(world)
    lead(world)
    world.state = restore(snapshot(world.state), SMALL)
    assert (world.state.leader_epoch, epochs(world)) == (1, ((0, 0), (1, 1)))
    world.crash()
    assert (world.state.leader_epoch, epochs(world)) == (1, ((0, 0), (1, 1)))
    assert lead(world) == 2


@pytest.mark.parametrize("wrong", [(), ((0, 0),), ((1, 0),), ((0, 0), (1, 2))])
def test_the_invariant_sees_other_epochs(world: World, wrong: LeaderEpochs) -> None:
    world.topic()
    append(world)
    lead(world)
    append(world)
    assert not list(epochs_are_those_of_the_leaders(world.state, world.log))
    world.state.partitions[PartitionId(0)].leader_epochs = wrong
    assert list(epochs_are_those_of_the_leaders(world.state, world.log))
