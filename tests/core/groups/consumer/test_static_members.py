"""Static members of the consumer protocol (KIP-345, KIP-848): successors, and their removal."""

from exacta.core.commands import (
    LeaveGroup,
    MemberToRemove,
)
from exacta.core.rejections import Rejection
from exacta.core.replies import ConsumerHeartbeatDone, MembersLeft
from tests.core.groups.consumer.answers import SESSION_MS, UNKNOWN
from tests.core.groups.consumer.members import Consumer, group_of, settle
from tests.core.world import World


def test_a_static_member_that_left_for_a_while_is_succeeded_without_a_rebalance(world: World) -> None:
    a = Consumer(world, "a", "t", instance_id="A")
    b = Consumer(world, "b", "t", instance_id="B")
    a.join()
    b.join()
    settle(a, b)
    epoch, had = group_of(world).epoch, b.shall_own
    left = b.leave(-2)
    assert isinstance(left, ConsumerHeartbeatDone)
    assert left.member_epoch == -2
    a.step()
    assert len(a.shall_own) == 3, "they wait for the successor"
    successor = Consumer(world, "b2", "t", instance_id="B")
    successor.join()
    assert (successor.epoch, successor.shall_own) == (epoch, had)
    assert group_of(world).epoch == epoch
    assert b.beat() is Rejection.FENCED_INSTANCE_ID
    assert b.leave() is Rejection.FENCED_INSTANCE_ID
    assert b.commit(partition=0, epoch=epoch) is UNKNOWN


def test_a_member_that_succeeds_another_gives_its_own_part_to_the_others(world: World) -> None:
    """Or one of the two parts would belong to nobody, with nothing to change that."""
    a = Consumer(world, "a", "t", instance_id="A")
    b = Consumer(world, "b", "t")
    a.join()
    b.join()
    settle(a, b)
    a.leave(-2)
    b.instance_id = "A"
    b.join()
    settle(b)
    assert b.indexes == [0, 1, 2, 3, 4, 5]


def test_members_are_removed_by_administrators(world: World) -> None:
    """By the classic protocol's request, as in Apache Kafka."""
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t", instance_id="B")
    a.join()
    b.join()
    removed = [
        MemberToRemove(member_id="a"),
        MemberToRemove(member_id="who"),
        MemberToRemove(member_id="who", instance_id="B"),
        MemberToRemove(instance_id="B"),
        MemberToRemove(instance_id="Z"),
    ]
    left = world.send(LeaveGroup(group_id="g", members=tuple(removed)))
    assert left == MembersLeft(rejections=(None, UNKNOWN, Rejection.FENCED_INSTANCE_ID, None, UNKNOWN))
    assert group_of(world).members == {}


def test_an_instance_id_is_not_taken_from_who_has_it(world: World) -> None:
    a, thief = Consumer(world, "a", "t", instance_id="A"), Consumer(world, "thief", "t", instance_id="A")
    a.join()
    assert thief.join() is Rejection.UNRELEASED_INSTANCE_ID
    assert thief.send(1) is Rejection.FENCED_INSTANCE_ID
    assert Consumer(world, "a", "t", instance_id="Z").send(1) is UNKNOWN


def test_a_member_that_changes_its_instance_id_lets_the_old_one_go(world: World) -> None:
    a = Consumer(world, "a", "t", instance_id="A")
    a.join()
    a.instance_id = "Z"
    a.join()
    assert group_of(world).static == {"Z": "a"}
    assert isinstance(Consumer(world, "b", "t", instance_id="A").join(), ConsumerHeartbeatDone)


def test_a_static_member_that_does_not_come_back_is_out(world: World) -> None:
    a, b = Consumer(world, "a", "t", instance_id="A"), Consumer(world, "b", "t")
    a.join()
    b.join()
    settle(a, b)
    a.leave(-2)
    world.pass_time(SESSION_MS - 1)
    b.beat()
    world.pass_time(1)
    b.step()
    assert len(b.shall_own) == 6
    assert group_of(world).static == {}
