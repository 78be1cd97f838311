"""Snapshots hold the members of groups, and those of before (decision 0025) can be read."""

import msgspec
import pytest

from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.snapshot import after_recovery, is_same, restore, snapshot
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import Consumer, settle
from tests.core.world import SMALL, World

FIELDS_BEFORE = 12


@pytest.fixture
def world() -> World:
    """Return a world with a group of the classic protocol, `g`, and one of the consumer protocol, `h`."""
    group = Group()
    group.stable("a", "b")
    consumers = [Consumer(group.world, name, "t", pattern="u.*", group_id="h") for name in ("c", "d")]
    for consumer in consumers:
        consumer.join()
    settle(*consumers)
    return group.world


def test_members_come_back_from_a_snapshot(world: World) -> None:
    before = world.state
    world.state = restore(snapshot(before), SMALL)
    after_recovery(world.state)
    assert is_same(world.state, before)
    assert world.state.volatile.memberships.keys() == {"g"}
    assert world.state.volatile.memberships["g"].members.keys() == {"a", "b"}
    assert world.state.volatile.consumer_groups == before.volatile.consumer_groups
    world.check()


def test_a_snapshot_of_before_knows_no_members(world: World) -> None:
    fields = msgspec.msgpack.decode(snapshot(world.state))
    assert len(fields) == FIELDS_BEFORE + 2
    generation = world.state.volatile.memberships["g"].generation
    world.state = restore(msgspec.msgpack.encode(fields[:FIELDS_BEFORE]), SMALL)
    after_recovery(world.state)
    group = Group(world)
    assert group.heartbeat("a", generation) is Rejection.UNKNOWN_MEMBER_ID
    again = group.stable("a")
    assert again > generation
    assert group.heartbeat("a", again) is DONE
