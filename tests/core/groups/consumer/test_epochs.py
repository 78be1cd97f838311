"""Epochs of groups: they fence commits, and none is given out twice (decision 0012)."""

from exacta.core.commands import (
    CommitOffsets,
    DeleteGroup,
    LeaveGroup,
    MemberToRemove,
    OffsetToCommit,
)
from exacta.core.events import GroupEpochsReserved
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from tests.core.groups.consumer.answers import FIRST, SECOND, STALE, UNKNOWN
from tests.core.groups.consumer.members import Consumer, group_of, settle
from tests.core.world import World


def test_an_epoch_that_a_leaving_member_brings_about_is_reserved_before_anybody_is_told(world: World) -> None:
    """Or a member that is forgotten with its group would come to them a second time."""
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    b.join()
    settle(a, b)
    while group_of(world).epoch + 1 < world.state.reserved_group_epoch:
        a.subscribe(*(("t", "u") if a.topics == ("t",) else ("t",)))
    world.send(LeaveGroup(group_id="g", members=(MemberToRemove(member_id="b"),)))
    for topics in (("t", "u"), ("t",), ("t", "u"), ("t",)):
        a.subscribe(*topics)
    told = a.epoch
    a.leave()
    world.crash()
    a.join()
    assert a.epoch > told


def test_commits_are_fenced_by_the_epoch(world: World) -> None:
    """KIP-447; one that was on its way while the epoch rose is taken for what was held all the time (KIP-1251)."""
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    settle(a)
    b.join()
    settle(a, b)
    kept, lost = a.indexes[0], b.indexes[0]
    producer = world.producer()
    producer.add_group()

    def transactional(epoch: int, partition: int) -> object:
        return producer.commit_offsets(1, member_id="a", generation=epoch, partition=partition)

    for commit in (lambda epoch, partition: a.commit(epoch=epoch, partition=partition), transactional):
        assert commit(SECOND, kept) is DONE
        assert commit(FIRST, kept) is DONE
        assert commit(FIRST, lost) is STALE
        assert commit(SECOND + 1, kept) is STALE
        assert commit(0, kept) is STALE
    stranger = Consumer(world, "who", "t")
    assert stranger.commit(epoch=SECOND) is UNKNOWN
    assert producer.commit_offsets(1) is DONE, "who names nobody: old request versions can name none"
    assert stranger.world.send(plain_commit()) is UNKNOWN
    old = CommitOffsets(
        group_id="g",
        offsets=(OffsetToCommit(topic="t", partition=kept, offset=1),),
        member_id="a",
        generation=SECOND,
        knows_member_epochs=False,
    )
    assert world.send(old) is Rejection.MEMBER_EPOCH_NEEDED
    a.leave()
    assert transactional(SECOND, kept) is UNKNOWN
    b.leave()
    assert world.send(plain_commit()) is DONE
    world.check()


def plain_commit() -> CommitOffsets:
    return CommitOffsets(group_id="g", offsets=(OffsetToCommit(topic="t", partition=0, offset=1),))


def test_no_epoch_is_ever_given_out_twice(world: World) -> None:
    """A member's id is its client's own: its late commits of before must not be taken for those of now."""
    producer = world.producer()
    given: set[int] = set()
    for _ in range(4):
        a = Consumer(world, "a", "t")
        a.join()
        for name in ("b", "c"):
            other = Consumer(world, name, "t")
            other.join()
            settle(a, other)
            assert given.isdisjoint({a.epoch, other.epoch})
            other.leave()
        settle(a)
        given.update(range(group_of(world).epoch + 1))
        late = a.epoch
        a.leave()
        world.crash()
        assert a.beat() is UNKNOWN, "it joins again, and does not give up as where there is no group"
        a.join()
        assert a.epoch not in given
        producer.add_group()
        assert producer.commit_offsets(1, member_id="a", generation=late) is STALE
        assert a.commit(epoch=late) is STALE
        a.leave()
        assert world.send(DeleteGroup(group_id="g")) == DONE
    world.check()


def test_a_group_that_was_deleted_goes_on_counting(world: World) -> None:
    a = Consumer(world, "a", "t")
    a.join()
    a.leave()
    before = group_of(world).epoch
    world.send(DeleteGroup(group_id="g"))
    a.join()
    assert a.epoch > before


def test_a_few_epochs_make_one_durable_event(world: World) -> None:
    a = Consumer(world, "a", "t")
    for _ in range(20):
        a.join()
        a.leave()
    assert len([event for event in world.log if isinstance(event, GroupEpochsReserved)]) == 1
