"""Groups of the consumer protocol go on after a restart as if there had been none (decision 0025)."""

import pytest

from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, ConsumerHeartbeatDone
from exacta.core.state.consumer_membership import MemberPhase
from tests.core.groups.consumer.members import REBALANCE_MS, Consumer, group_of, settle
from tests.core.world import World

SESSION_MS = 45_000


@pytest.fixture
def world() -> World:
    world = World()
    world.topic(partition_count=6)
    return world


@pytest.fixture
def settled(world: World) -> tuple[Consumer, Consumer]:
    pair = Consumer(world, "a", "t"), Consumer(world, "b", "t", instance_id="B")
    for consumer in pair:
        consumer.join()
    settle(*pair)
    return pair


def test_members_go_on_under_the_epoch_that_they_have(world: World, settled: tuple[Consumer, Consumer]) -> None:
    before = [(each.epoch, each.shall_own) for each in settled]
    producer = world.producer()
    world.crash()
    producer.add_group()
    for consumer, (epoch, owned) in zip(settled, before, strict=True):
        assert consumer.commit(partition=min(consumer.indexes)) is DONE
        assert producer.commit_offsets(1, member_id=consumer.member_id, generation=epoch) is DONE
        consumer.step()
        assert (consumer.epoch, consumer.shall_own) == (epoch, owned)
    world.check()


def test_heartbeats_write_nothing(world: World, settled: tuple[Consumer, Consumer]) -> None:
    world.topic("of nobody's interest")
    length = len(world.log)
    for _ in range(3):
        for consumer in settled:
            consumer.step()
    assert len(world.log) == length


def test_sessions_begin_anew(world: World, settled: tuple[Consumer, Consumer]) -> None:
    a, b = settled
    world.pass_time(SESSION_MS - 1)
    world.crash()
    world.pass_time(SESSION_MS - 1)
    assert isinstance(a.beat(), ConsumerHeartbeatDone)
    world.pass_time(1)
    assert group_of(world).members.keys() == {"a"}
    assert b.beat() is Rejection.UNKNOWN_MEMBER_ID


def test_a_rebalance_goes_on_where_it_was(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    settle(a)
    b.join()
    a.beat()
    assert a.state.phase is MemberPhase.UNREVOKED
    world.crash()
    assert a.state.phase is MemberPhase.UNREVOKED
    settle(a, b)
    assert (len(a.indexes), len(b.indexes)) == (3, 3)


def test_who_gives_up_nothing_after_it_is_out_by_its_deadline(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    settle(a)
    b.join()
    a.beat()
    world.crash()
    world.pass_time(REBALANCE_MS - 1)
    assert "a" in group_of(world).members
    world.pass_time(1)
    assert group_of(world).members.keys() == {"b"}


def test_a_static_member_may_still_come_back(world: World, settled: tuple[Consumer, Consumer]) -> None:
    _, b = settled
    had = b.shall_own
    b.leave(-2)
    world.crash()
    successor = Consumer(world, "b2", "t", instance_id="B")
    successor.join()
    assert successor.shall_own == had


def test_a_group_without_members_is_forgotten(world: World, settled: tuple[Consumer, Consumer]) -> None:
    for consumer in settled:
        consumer.leave()
    world.crash()
    assert world.state.volatile.consumer_groups == {}
    assert world.state.settled_consumers == {}
    world.check()
