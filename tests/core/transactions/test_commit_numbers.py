"""Each commit has a number: dense, in order, given once, and the same after a restart (decision 0058)."""

import pytest

from exacta.core.commands import AppendBatch, CreateTopic, DeleteTopic, SetTopicConfigs
from exacta.core.events import BatchAppended, TransactionEnded
from exacta.core.snapshot import after_recovery, restore, snapshot
from exacta.core.writers import NamedWriter
from simulation.invariants.invariants import violations
from tests.core.world import SMALL, World


def append(world: World, writer: NamedWriter | None = None) -> None:
    world.send(AppendBatch(topic="t", partition=0, record_count=2, size=62, max_timestamp_ms=0, writer=writer))


def test_each_batch_outside_of_a_transaction_has_one(world: World) -> None:
    world.topic()
    append(world)
    append(world, NamedWriter(name="n", first_sequence=0, last_sequence=0))
    append(world, NamedWriter(name="n", first_sequence=1, last_sequence=1))
    assert world.state.commit_number == 3
    append(world, NamedWriter(name="n", first_sequence=1, last_sequence=1))
    assert world.state.commit_number == 3, "a repeat is no commit"


@pytest.mark.parametrize("configs", [{}, {"transaction.buffer": "sidecar"}], ids=["in place", "staged"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_has_one_when_it_commits(world: World, configs: dict[str, str], *, commit: bool) -> None:
    world.topic()
    world.send(SetTopicConfigs(topic="t", configs=configs))
    producer = world.producer()
    producer.add()
    producer.append()
    producer.append()
    assert world.state.commit_number == 0
    producer.end(commit=commit)
    assert world.state.commit_number == commit


def test_a_restart_goes_on_with_the_next_one(world: World) -> None:
    world.topic()
    for commit in (True, False, True):
        producer = world.producer()
        producer.add()
        producer.append()
        append(world)
        producer.end(commit=commit)
    assert world.state.commit_number == 5
    world.crash()
    assert world.state.commit_number == 5
    world.state = restore(snapshot(world.state), SMALL)
    after_recovery(world.state)
    append(world)
    assert world.state.commit_number == 6


def test_what_is_deleted_takes_no_number_with_it(world: World) -> None:
    world.topic()
    append(world)
    world.send(DeleteTopic(topic="t"))
    world.send(CreateTopic(topic="t", topic_id=b"2" * 16, partition_count=1))
    append(world)
    world.check()
    assert world.state.commit_number == 2


@pytest.mark.parametrize("number", [0, 1, 3])
def test_the_invariant_sees_another_number(world: World, number: int) -> None:
    world.topic()
    append(world)
    append(world)
    world.state.commit_number = number
    assert any("commits: " in each for each in violations(world.state, world.log))


def test_no_event_grows_by_it() -> None:
    assert not any("commit" in name for name in BatchAppended.__struct_fields__)
    assert [name for name in TransactionEnded.__struct_fields__ if "commit" in name] == ["committed"]
