"""Groups that nobody uses are forgotten, in their time and no sooner."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import CommitOffsets, DeleteOffsets, OffsetToCommit
from exacta.core.events import GroupDeleted
from exacta.core.groups.deletion import has_members
from exacta.core.groups.expiry import KEPT_METADATA
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from tests.core.groups.classic.members import SESSION_MS, Group
from tests.core.groups.consumer.members import Consumer, settle
from tests.core.world import SMALL, World

RETENTION_MS = 100_000
INTERVAL_MS = 1_000
LIMITS = replace(SMALL, offsets_retention_ms=RETENTION_MS, group_expiry_interval_ms=INTERVAL_MS)


@pytest.fixture
def world() -> World:
    world = World(LIMITS)
    world.topic(partition_count=2)
    return world


def commit(world: World, group_id: str = "g", partition: int = 0, metadata: str = "") -> None:
    offsets = (OffsetToCommit(topic="t", partition=partition, offset=5, metadata=metadata),)
    assert world.send(CommitOffsets(group_id=group_id, offsets=offsets)) == DONE


def groups(world: World) -> set[str]:
    world.check()
    return set(world.state.groups)


def expired(world: World) -> list[GroupDeleted]:
    return [event for event in world.log if isinstance(event, GroupDeleted)]


def test_a_group_without_members_is_forgotten_when_its_last_commit_is_too_old(world: World) -> None:
    commit(world)
    world.pass_time(RETENTION_MS - 1)
    assert groups(world) == {"g"}
    world.pass_time(INTERVAL_MS)
    assert groups(world) == set()
    [event] = expired(world)
    assert event.group_id == "g"
    assert world.now_ms - INTERVAL_MS < event.expired_at_ms <= world.now_ms
    world.crash()
    assert groups(world) == set()


def test_one_young_offset_keeps_all_of_a_group(world: World) -> None:
    commit(world, partition=0)
    world.pass_time(RETENTION_MS - 1)
    commit(world, partition=1)
    world.pass_time(RETENTION_MS - 1)
    assert groups(world) == {"g"}
    world.pass_time(INTERVAL_MS + 1)
    assert groups(world) == set()


def test_the_time_begins_when_the_last_member_of_a_classic_group_is_gone() -> None:
    group = Group()
    world = group.world = World(LIMITS)
    world.topic()
    commit(world)
    generation = group.stable("a")
    for _ in range(2 * RETENTION_MS // SESSION_MS + 2):
        world.pass_time(SESSION_MS - 1)
        assert group.heartbeat("a", generation) == DONE
    assert groups(world) == {"g"}, "it has a member"
    group.leave("a")
    world.pass_time(RETENTION_MS - 1)
    assert groups(world) == {"g"}
    world.pass_time(INTERVAL_MS + 1)
    assert groups(world) == set()
    assert "g" not in world.state.volatile.memberships


def test_the_time_begins_when_the_last_member_of_the_consumer_protocol_is_gone(world: World) -> None:
    consumer = Consumer(world, "a", "t")
    consumer.join()
    settle(consumer)
    assert consumer.commit() == DONE
    for _ in range(2 * RETENTION_MS // 10_000):
        world.pass_time(10_000)
        consumer.step()
    assert groups(world) == {"g"}, "it has a member"
    consumer.leave()
    world.pass_time(RETENTION_MS - 1)
    assert groups(world) == {"g"}
    world.pass_time(INTERVAL_MS + 1)
    assert groups(world) == set()
    assert "g" not in world.state.volatile.consumer_groups


def test_a_member_that_comes_back_keeps_its_group() -> None:
    group = Group()
    world = group.world = World(LIMITS)
    world.topic()
    commit(world)
    group.stable("a")
    group.leave("a")
    world.pass_time(RETENTION_MS - 10)
    group.stable("b")
    world.pass_time(INTERVAL_MS)
    assert groups(world) == {"g"}


def test_after_a_restart_a_group_counts_as_used_until_then(world: World) -> None:
    """The broker does not remember when the last member was gone, and must not forget a group too early."""
    commit(world)
    world.pass_time(RETENTION_MS - 1)
    world.crash()
    world.pass_time(RETENTION_MS - 1)
    assert groups(world) == {"g"}
    world.pass_time(INTERVAL_MS + 1)
    assert groups(world) == set()


def test_an_offset_in_an_open_transaction_keeps_its_group_and_is_young_when_it_takes_effect() -> None:
    world = World(replace(LIMITS, transaction_max_timeout_ms=10 * RETENTION_MS))
    world.topic()
    producer = world.producer(timeout_ms=10 * RETENTION_MS)
    producer.add_group()
    producer.commit_offsets(5)
    world.pass_time(2 * RETENTION_MS)
    assert groups(world) == {"g"}
    producer.end(commit=True)
    world.pass_time(RETENTION_MS - 1)
    assert groups(world) == {"g"}
    world.pass_time(INTERVAL_MS + 1)
    assert groups(world) == set()


@pytest.mark.parametrize("beginning", KEPT_METADATA)
def test_what_a_spark_query_remembers_never_expires(world: World, beginning: str) -> None:
    commit(world, "query-0", partition=0)
    commit(world, "query-0", partition=1, metadata=f"{beginning}12")
    commit(world, "other", metadata=f"of {beginning}")
    world.pass_time(3 * RETENTION_MS)
    assert groups(world) == {"query-0"}


def test_a_group_whose_offsets_were_deleted_goes_in_its_time(world: World) -> None:
    commit(world)
    world.send(DeleteOffsets(group_id="g", partitions=(("t", 0),)))
    assert groups(world) == {"g"}
    world.pass_time(RETENTION_MS + INTERVAL_MS)
    assert groups(world) == set()


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_many_groups_are_looked_at_in_steps_and_none_is_left_out(most: int) -> None:
    """One step looks at this many offsets and stops; groups that it has removed do not count for the next one."""
    world = World(replace(LIMITS, max_offsets_looked_at=most))
    world.topic(partition_count=2)
    for number in range(20):
        commit(world, f"old-{number}", partition=0)
        commit(world, f"old-{number}", partition=1)
    for number in range(20):
        commit(world, f"kept-{number}", metadata=KEPT_METADATA[0])
    for number in range(20):
        consumer = Consumer(world, "a", "t", group_id=f"only-read-{number}")
        consumer.join()
        consumer.leave()
    world.pass_time(RETENTION_MS)  # one look finds all of them
    assert groups(world) == {f"kept-{number}" for number in range(20)}
    assert world.state.volatile.consumer_groups == {}
    assert len(expired(world)) == 40


def test_a_group_that_has_never_committed_is_forgotten_as_well() -> None:
    """Else each would count towards the most groups that there may be, until a restart."""
    group = Group()
    world = group.world = World(replace(LIMITS, max_groups=1))
    world.topic()
    group.stable("a")
    world.pass_time(RETENTION_MS)
    assert not has_members(world.state, "g"), "its session has ended"
    assert world.state.has_group("g")
    consumer = Consumer(world, "b", "t", group_id="h")
    assert consumer.join() is Rejection.LIMIT_REACHED
    world.pass_time(RETENTION_MS)
    world.check()
    assert not world.state.has_group("g")
    assert world.state.volatile.emptied_ms == {}
    consumer.join()
    consumer.leave()
    world.pass_time(RETENTION_MS + INTERVAL_MS)
    world.check()
    assert world.state.volatile.consumer_groups == {}


def test_a_member_that_is_about_to_join_keeps_its_group() -> None:
    """It was given an id long after the start, and joins with that (KIP-394)."""
    group = Group()
    world = group.world = World(LIMITS)
    world.topic()
    world.pass_time(2 * RETENTION_MS)
    group.join("a", known=False, session_ms=10 * INTERVAL_MS)
    world.pass_time(2 * INTERVAL_MS)
    assert world.state.volatile.memberships["g"].pending
