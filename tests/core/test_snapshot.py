"""Snapshots hold the members of groups, and say which schema they have."""

import msgspec
import pytest

from exacta.core.snapshot import SNAPSHOT_SCHEMA, OtherSchema, after_recovery, is_same, restore, snapshot
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import Consumer, settle
from tests.core.world import SMALL, World


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


@pytest.mark.parametrize("rest", [[], ["of", "another", "shape"]])
def test_a_snapshot_of_another_schema_is_refused_by_its_number(rest: list[str]) -> None:
    newer = msgspec.msgpack.encode([SNAPSHOT_SCHEMA + 1, *rest])
    with pytest.raises(OtherSchema, match=rf"has schema {SNAPSHOT_SCHEMA + 1}; this version reads schema"):
        restore(newer, SMALL)


def test_a_newer_snapshot_is_refused_though_its_fields_would_be_understood(world: World) -> None:
    fields = msgspec.msgpack.decode(snapshot(world.state))
    fields[0] += 1
    with pytest.raises(OtherSchema):
        restore(msgspec.msgpack.encode(fields), SMALL)


@pytest.mark.parametrize(
    "blob", [b"", b"\xc0", msgspec.msgpack.encode([[]]), msgspec.msgpack.encode([SNAPSHOT_SCHEMA])]
)
def test_bytes_that_are_no_snapshot_are_refused(blob: bytes) -> None:
    with pytest.raises(msgspec.DecodeError) as refused:
        restore(blob, SMALL)
    assert not isinstance(refused.value, OtherSchema)
