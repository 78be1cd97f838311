"""Deleting groups: what is refused, what goes, and what an open transaction makes of it."""

import pytest

from exacta.core.commands import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    JoinGroup,
    LeaveGroup,
    MemberToRemove,
    OffsetToCommit,
    SyncGroup,
)
from exacta.core.ids import Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, OffsetsDeletedReply
from tests.core.groups.reading import fetch_offsets
from tests.core.world import World


def delete(world: World, group_id: str = "g") -> object:
    return world.send(DeleteGroup(group_id=group_id))


def committed(world: World) -> list[object]:
    return [entry.offset for entry in fetch_offsets(world.state, "g", None, require_stable=False)]


def commit(world: World, offset: int) -> None:
    offsets = (OffsetToCommit(topic="t", partition=0, offset=offset),)
    assert world.send(CommitOffsets(group_id="g", offsets=offsets)) == DONE


def join(world: World, subscription: frozenset[str] | None = None, protocol_type: str = "consumer") -> None:
    world.send(
        JoinGroup(
            ticket=Ticket(1),
            group_id="g",
            member_id="",
            new_member_id="m",
            client_id="c",
            client_host="h",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            protocol_type=protocol_type,
            protocols=(("range", b""),),
            knows_member_id_required=False,
            subscription=subscription,
        )
    )


def sync(world: World) -> None:
    world.send(SyncGroup(ticket=Ticket(2), group_id="g", member_id="m", generation=1))


def test_a_deleted_group_has_no_offsets_and_may_begin_anew(world: World) -> None:
    commit(world, 5)
    assert delete(world) == DONE
    assert (committed(world), world.state.groups) == ([], {})
    assert delete(world) is Rejection.GROUP_ID_NOT_FOUND
    commit(world, 3)
    assert committed(world) == [3]
    world.check()


def test_what_cannot_be_deleted(world: World) -> None:
    assert delete(world, "nobody") is Rejection.GROUP_ID_NOT_FOUND
    assert delete(world, "") is Rejection.GROUP_ID_NOT_FOUND


def test_a_group_with_members_stays_until_they_have_left(world: World) -> None:
    commit(world, 5)
    join(world)
    assert delete(world) is Rejection.NON_EMPTY_GROUP
    sync(world)
    assert delete(world) is Rejection.NON_EMPTY_GROUP
    world.send(LeaveGroup(group_id="g", members=(MemberToRemove(member_id="m"),)))
    assert delete(world) == DONE
    assert "g" not in world.state.volatile.memberships
    world.pass_time(10_000)  # the member's timers find nobody
    world.check()


@pytest.mark.parametrize("end", [True, False])
def test_offsets_of_an_open_transaction_go_too_and_do_not_come_back(world: World, end: bool) -> None:
    commit(world, 1)
    producer = world.producer()
    producer.add_group()
    producer.commit_offsets(5)
    assert delete(world) == DONE
    producer.end(commit=end)
    assert world.state.groups == {}
    world.check()


def test_a_transaction_may_commit_to_the_group_again(world: World) -> None:
    producer = world.producer()
    producer.add_group()
    producer.commit_offsets(5)
    delete(world)
    assert producer.commit_offsets(6) is DONE
    producer.end(commit=True)
    assert committed(world) == [6]
    world.check()


def test_a_deletion_survives_a_crash(world: World) -> None:
    commit(world, 5)
    delete(world)
    world.crash()
    assert committed(world) == []


def forget(world: World, *partitions: tuple[str, int]) -> object:
    return world.send(DeleteOffsets(group_id="g", partitions=partitions))


def test_offsets_are_deleted_one_by_one(world: World) -> None:
    commit(world, 5)
    assert forget(world, ("t", 0), ("t", 0), ("t", 1), ("nowhere", 0)) == OffsetsDeletedReply(
        rejections=(None, None, None, Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    )
    assert committed(world) == []
    length = len(world.log)
    assert forget(world, ("t", 0)) == OffsetsDeletedReply(rejections=(None,)), (
        "there is none, which is what was asked for"
    )
    assert len(world.log) == length
    world.check()


def test_offsets_of_a_group_that_is_not_there(world: World) -> None:
    assert forget(world, ("t", 0)) is Rejection.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("subscription", "kept"), [(frozenset({"t"}), True), (frozenset({"u"}), False), (frozenset(), False), (None, True)]
)
def test_what_a_member_reads_is_not_deleted(world: World, subscription: frozenset[str] | None, kept: bool) -> None:
    commit(world, 5)
    join(world, subscription)
    sync(world)
    rejection = Rejection.GROUP_SUBSCRIBED_TO_TOPIC if kept else None
    assert forget(world, ("t", 0)) == OffsetsDeletedReply(rejections=(rejection,))
    assert committed(world) == ([5] if kept else [])
    world.check()


def test_groups_of_others_than_consumers_say_nothing_of_what_they_read(world: World) -> None:
    commit(world, 5)
    join(world, protocol_type="connect")
    sync(world)
    assert forget(world, ("t", 0)) is Rejection.NON_EMPTY_GROUP


def test_offsets_that_are_pending_are_forgotten_too(world: World) -> None:
    producer = world.producer()
    producer.add_group()
    producer.commit_offsets(7)
    commit(world, 5)
    forget(world, ("t", 0))
    assert committed(world) == []
    producer.end(commit=True)
    assert committed(world) == []
    world.check()
