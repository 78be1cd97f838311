"""A group changes its protocol while it has members (KIP-848, `group.consumer.migration.policy=bidirectional`)."""

import re
import struct
from typing import Any

import pytest
from msgspec import structs

from exacta.core.commands import Heartbeat, SyncGroup
from exacta.core.groups.consumer_words import read_assignment, read_subscription, write_assignment
from exacta.core.groups.description import DescribedConsumerGroup, describe_group
from exacta.core.ids import Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, ConsumerHeartbeatDone, Joined, Synced
from exacta.core.state.consumer_membership import ConsumerGroup, MemberPhase
from exacta.core.values.classic_groups import Phase
from tests.core.groups.consumer.members import Consumer, group_of
from tests.core.groups.mixed import REBALANCE_MS, SESSION_MS, Classic, subscription
from tests.core.world import SMALL, World
from tests.docstring_tables import docstring_table

REBALANCE = Rejection.REBALANCE_IN_PROGRESS
ILLEGAL, UNKNOWN, FENCED = Rejection.ILLEGAL_GENERATION, Rejection.UNKNOWN_MEMBER_ID, Rejection.FENCED_INSTANCE_ID


@pytest.fixture
def world() -> World:
    world = World()
    world.topic(partition_count=6)
    return world


def go_on(*clients: Classic | Consumer) -> None:
    """Let all do what they are told, until nothing changes any more."""
    for _ in range(10):
        for client in clients:
            client.step()
    clients[0].world.check()


def owned(*clients: Classic | Consumer) -> list[int]:
    """Return the partitions that these own, each as often as it is owned."""
    return sorted(index for client in clients for _, index in client.owned)


def phase(world: World) -> Phase:
    membership = world.state.volatile.memberships.get("g")
    return Phase.EMPTY if membership is None else membership.phase


def is_upgraded(world: World) -> bool:
    assert ("g" in world.state.volatile.memberships) != ("g" in world.state.volatile.consumer_groups)
    assert not ("g" in world.state.settled and "g" in world.state.settled_consumers)
    return "g" in world.state.volatile.consumer_groups


def classics(world: World, *names: str, **more: Any) -> list[Classic]:
    members = [Classic(world, name, "t", **more) for name in names]
    go_on(*members)
    assert owned(*members) == list(range(6))
    assert phase(world) is Phase.STABLE
    return members


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_fleet_moves_from_one_protocol_to_the_other_and_back(world: World, cooperative: bool) -> None:
    a, b = classics(world, "a", "b", cooperative=cooperative)
    x, y = Consumer(world, "x", "t"), Consumer(world, "y", "t")
    assert isinstance(x.step(), ConsumerHeartbeatDone)
    assert is_upgraded(world)
    assert owned(x) == [], "everything is somebody's still"
    go_on(x, a, b)
    assert owned(a, b, x) == list(range(6))
    assert {len(each.owned) for each in (a, b, x)} == {2}
    a.leave()
    go_on(y, x, b)
    assert owned(x, y, b) == list(range(6))
    assert is_upgraded(world)
    b.leave()
    go_on(x, y)
    assert owned(x, y) == list(range(6))
    a, b = (Classic(world, name, "t", cooperative=cooperative) for name in ("c", "d"))
    go_on(x, y, a, b)
    assert is_upgraded(world)
    assert owned(x, y, a, b) == list(range(6))
    y.leave()
    go_on(x, a, b)
    x.leave()
    assert not is_upgraded(world)
    assert phase(world) is Phase.PREPARING_REBALANCE
    go_on(a, b)
    assert phase(world) is Phase.STABLE
    assert owned(a, b) == list(range(6))


def test_nobody_gets_a_partition_before_its_reader_has_given_it_up(world: World) -> None:
    a, b = classics(world, "a", "b")
    x = Consumer(world, "x", "t")
    x.step()
    assert x.step()
    assert not x.owned
    assert a.beat() is REBALANCE
    assert a.commit() is DONE, "it still reads, and its work is taken"
    a.join()
    a.sync()
    x.step()
    assert len(owned(x)) > 0
    assert len({*owned(x), *owned(a), *owned(b)}) == len(owned(a, b, x))
    assert a.commit() is DONE


TABLE = docstring_table("exacta.core.groups.consumer", "a member that speaks the classic protocol is")


@pytest.mark.parametrize("row", TABLE.rows)
def test_what_a_member_of_the_classic_protocol_hears(world: World, row: str) -> None:
    (a,) = classics(world, "a")
    x = Consumer(world, "x", "t")
    go_on(x, a)
    group = group_of(world)
    member, others = group.members[a.member_id], group.members["x"].held
    free = frozenset({(next(iter(others))[0], 99)})
    epoch = group.epoch - ("earlier" in row)
    phases = [MemberPhase[word] for word in re.findall("[A-Z]{6,}", row)]
    wanted = {phase: free if row.endswith("is free") else frozenset(others) for phase in phases}
    for phase, more in (wanted or {MemberPhase.STABLE: frozenset(), MemberPhase.UNRELEASED: frozenset(others)}).items():
        put = structs.replace(member, phase=phase, epoch=epoch)
        world.state.volatile.consumer_groups["g"] = structs.replace(
            group, members=group.members | {a.member_id: put}, target={a.member_id: frozenset(member.assigned) | more}
        )
        named: Any = {"group_id": "g", "member_id": a.member_id, "generation": epoch}
        heard = world.send(Heartbeat(**named))
        synced = world.send(SyncGroup(ticket=Ticket(77), protocol_type="consumer", protocol="range", **named))
        assert heard is {"ok": DONE}.get(TABLE[row, "a heartbeat is answered"], REBALANCE)
        assert isinstance(synced, Synced) is (TABLE[row, "a sync is answered"] == "its assignment")
        assert isinstance(synced, Synced) or synced is REBALANCE


def test_a_member_of_an_earlier_generation_cannot_commit(world: World) -> None:
    a, _ = classics(world, "a", "b")
    before = a.generation
    Consumer(world, "x", "t").step()
    a.beat()
    a.join()
    assert a.generation > before
    assert a.commit(before) is ILLEGAL
    assert a.commit() is DONE


@pytest.mark.parametrize("waits_in", ["join", "sync"])
def test_members_that_wait_are_told_to_join_again(world: World, waits_in: str) -> None:
    a, b = classics(world, "a", "b")
    c = Classic(world, "c", "t")
    assert c.join() is None
    a.join()
    if waits_in == "sync":
        b.join()
        waiting = b if a.led is None else a
        a.hear()
        c.hear()
        followers = [each for each in (a, b, c) if each.led is not None and each.led.leader != each.member_id]
        waiting = followers[0]
        assert waiting.sync() is None
    else:
        waiting = c
    x = Consumer(world, "x", "t")
    assert isinstance(x.step(), ConsumerHeartbeatDone)
    assert waiting.hear() is REBALANCE
    for each in (a, b, c):
        each.hear()
        each.led = None
    go_on(x, a, b, c)
    assert owned(x, a, b, c) == list(range(6))


def test_a_cooperative_member_keeps_what_it_reads_although_the_group_has_forgotten_it(world: World) -> None:
    [a] = classics(world, "a", cooperative=True)
    b, c = Classic(world, "b", "t", cooperative=True), Classic(world, "c", "t", cooperative=True)
    b.join()
    a.join()
    b.hear()
    c.join()
    assert a.beat() is REBALANCE
    assert a.owned
    x = Consumer(world, "x", "t")
    x.step()
    assert owned(x) == []
    a.waits = b.waits = a.led = b.led = None
    c.hear()
    go_on(x, a, b, c)
    assert owned(x, a, b, c) == list(range(6))


def test_the_first_rebalance_of_a_group_is_overtaken() -> None:
    world = World(structs.replace(SMALL, group_initial_rebalance_delay_ms=3_000))
    world.topic(partition_count=6)
    a, x = Classic(world, "a", "t"), Consumer(world, "x", "t")
    assert a.join() is None
    assert isinstance(x.step(), ConsumerHeartbeatDone)
    assert a.hear() is REBALANCE
    go_on(x, a)
    assert owned(a, x) == list(range(6))


def test_who_does_not_join_again_in_time_is_out(world: World) -> None:
    a, b = classics(world, "a", "b")
    x = Consumer(world, "x", "t")
    x.step()
    assert a.beat() is REBALANCE
    world.pass_time(REBALANCE_MS // 2)
    assert a.beat() is REBALANCE, "which gives it no more time"
    go_on(b, x)
    world.pass_time(REBALANCE_MS // 2)
    assert a.beat() is UNKNOWN
    go_on(b, x)
    assert owned(b, x) == list(range(6))


def test_who_does_not_sync_in_time_is_out(world: World) -> None:
    a, _ = classics(world, "a", "b")
    Consumer(world, "x", "t").step()
    a.beat()
    a.join()
    world.pass_time(REBALANCE_MS - 1)
    a.beat()
    world.pass_time(1)
    assert a.beat() is UNKNOWN


def test_a_member_keeps_its_own_session(world: World) -> None:
    a, b = classics(world, "a", "b")
    x = Consumer(world, "x", "t")
    go_on(x, a, b)
    for _ in range(4):
        world.pass_time(SESSION_MS - 1)
        go_on(a)
    assert group_of(world).members.keys() == {"a", "x"}
    world.crash()
    world.pass_time(SESSION_MS - 1)
    assert "a" in group_of(world).members
    world.pass_time(1)
    assert "a" not in group_of(world).members


def test_the_last_consumer_whose_session_ends_makes_a_classic_group_of_it(world: World) -> None:
    a, b = classics(world, "a", "b")
    x = Consumer(world, "x", "t")
    go_on(x, a, b)
    while is_upgraded(world):
        world.pass_time(SESSION_MS // 2)
        a.step()
        b.step()
    assert x.beat() is UNKNOWN, "it joins again, and the group moves again"
    go_on(a, b)
    assert owned(a, b) == list(range(6))
    x = Consumer(world, "x", "t")
    go_on(x, a, b)
    assert is_upgraded(world)
    assert owned(x, a, b) == list(range(6))


def test_a_crash_finds_the_group_in_one_protocol(world: World) -> None:
    a, b = classics(world, "a", "b")
    x = Consumer(world, "x", "t")
    x.step()
    world.crash()
    assert is_upgraded(world)
    assert group_of(world).members.keys() == {"a", "b", "x"}
    go_on(x, a, b)
    assert owned(x, a, b) == list(range(6))
    x.leave()
    world.crash()
    assert not is_upgraded(world)
    assert world.state.volatile.memberships["g"].members.keys() == {"a", "b"}
    assert phase(world) is Phase.STABLE, "the rebalance is forgotten; everybody reads what it has read"
    assert a.beat() is DONE
    assert a.commit() is DONE


# --- what cannot move -------------------------------------------------------------------------------------------------


def test_a_group_of_no_consumers_stays_as_it_is(world: World) -> None:
    a, _ = classics(world, "a", "b")
    membership = world.state.volatile.memberships["g"]
    world.state.volatile.memberships["g"] = structs.replace(membership, protocol_type="connect")
    assert Consumer(world, "x", "t").step() is Rejection.GROUP_ID_NOT_FOUND
    assert a.beat() is DONE


@pytest.mark.parametrize(
    "words",
    [b"\xff", write_assignment(1, [("t", 0)])[:-4] + struct.pack(">i2s", 2, b"my")],
    ids=["unreadable", "an assignor's own data"],
)
def test_assignments_that_would_be_lost(world: World, words: bytes) -> None:
    classics(world, "a", "b")
    membership = world.state.volatile.memberships["g"]
    members = {key: structs.replace(each, assignment=words) for key, each in membership.members.items()}
    world.state.volatile.memberships["g"] = structs.replace(membership, members=members)
    assert Consumer(world, "x", "t").step() is Rejection.GROUP_ID_NOT_FOUND


def test_a_group_that_is_too_large() -> None:
    world = World(structs.replace(SMALL, group_consumer_max_size=2))
    world.topic(partition_count=6)
    classics(world, "a", "b")
    assert Consumer(world, "x", "t").step() is Rejection.GROUP_MAX_SIZE_REACHED
    world = World(structs.replace(SMALL, group_consumer_max_size=3))
    world.topic(partition_count=6)
    a, b = classics(world, "a", "b")
    x = Consumer(world, "x", "t")
    go_on(x, a, b)
    assert Classic(world, "c", "t").join() is Rejection.GROUP_MAX_SIZE_REACHED


def test_a_partition_that_a_leader_gave_to_two_has_one_holder(world: World) -> None:
    classics(world, "a", "b")
    membership = world.state.volatile.memberships["g"]
    words = write_assignment(1, [("t", 0), ("t", 1)])
    members = {key: structs.replace(each, assignment=words) for key, each in membership.members.items()}
    world.state.volatile.memberships["g"] = structs.replace(membership, members=members)
    Consumer(world, "x", "t").step()
    held = [len(each.held) for each in group_of(world).members.values()]
    assert sorted(held)[-1] <= 4
    assert is_upgraded(world)


def test_who_joins_must_know_what_all_know(world: World) -> None:
    a, b = classics(world, "a", "b", protocols=("range", "roundrobin"))
    x = Consumer(world, "x", "t")
    go_on(x, a, b)
    assert Classic(world, "c", "t", protocols=("sticky",)).join() is Rejection.INCONSISTENT_GROUP_PROTOCOL
    c = Classic(world, "c", "t", protocols=("sticky", "roundrobin"))
    assert isinstance(c.join(), Joined)
    assert isinstance(c.sync(), Synced)


def test_a_group_of_consumers_alone_takes_members_of_the_classic_protocol(world: World) -> None:
    x = Consumer(world, "x", "t")
    x.step()
    a = Classic(world, "a", "t")
    joined = a.join()
    assert isinstance(joined, Joined)
    assert (joined.leader, joined.members) == ("", ())
    go_on(x, a)
    assert owned(x, a) == list(range(6))
    assert x.send(-1)
    assert phase(world) is Phase.PREPARING_REBALANCE


# --- static members ---------------------------------------------------------------------------------------------------


def test_a_static_member_comes_back_with_the_other_protocol(world: World) -> None:
    a = Classic(world, "a", "t", instance_id="one")
    b = Classic(world, "b", "t", instance_id="two")
    go_on(a, b)
    had = {index for _, index in b.owned}
    y = Consumer(world, "y", "t", instance_id="two")
    y.step()
    assert {index for _, index in y.shall_own} == had, "its place is its own"
    assert b.beat() is FENCED
    go_on(y, a)
    assert owned(y, a) == list(range(6))
    assert is_upgraded(world)
    y.leave(-2)
    again = Classic(world, "z", "t", instance_id="two")
    assert isinstance(again.join(), Joined)
    assert not is_upgraded(world)
    assert phase(world) is Phase.STABLE, "nobody rebalances"
    again.sync()
    assert owned(again, a) == list(range(6))
    assert a.beat() is DONE
    world.check()


def test_a_static_member_that_reads_something_else_makes_the_group_rebalance(world: World) -> None:
    world.topic("u", 2)
    a = Classic(world, "a", "t", instance_id="one")
    go_on(a)
    y = Consumer(world, "y", "t", instance_id="two")
    go_on(y, a)
    again = Classic(world, "z", "u", instance_id="two")
    assert again.join() is None
    assert a.beat() is REBALANCE
    go_on(a, again)
    assert phase(world) is Phase.STABLE


def test_the_only_member_comes_back_with_the_classic_protocol(world: World) -> None:
    x = Consumer(world, "x", "t", instance_id="one")
    x.step()
    a = Classic(world, "a", "t", instance_id="one")
    a.join()
    assert not is_upgraded(world)
    go_on(a)
    assert owned(a) == list(range(6))


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_mixed_group_says_who_speaks_what(world: World) -> None:
    a, x = Classic(world, "a", "t"), Consumer(world, "x", "t")
    go_on(a)
    go_on(x, a)
    shown = describe_group(world.state, "g")
    assert isinstance(shown, DescribedConsumerGroup)
    assert {each.member_id: each.speaks_classic for each in shown.members} == {"a": True, "x": False}


def test_patterns_stay_as_they_were_matched_while_others_join(world: World) -> None:
    world.topic("s1", 1)
    x = Consumer(world, "x", pattern="s.*")
    x.step()
    world.topic("s2", 1)
    a = Classic(world, "a", "t")
    a.join()
    group: ConsumerGroup = group_of(world)
    assert group.matched == {"s.*": frozenset({"s1"})}, "the member that joined may not see the new topic"
    x.step()
    assert group_of(world).matched == {"s.*": frozenset({"s1", "s2"})}


@pytest.mark.parametrize("version", [0, 1])
def test_words_are_read_as_they_are_written(version: int) -> None:
    partitions = (("t", 0), ("t", 2), ("u", 1))
    assert read_assignment(write_assignment(version, partitions)) == partitions
    said = read_subscription(subscription("t", "u", owned=frozenset({("t", 3)}), version=version))
    assert said is not None
    assert said.topics == {"t", "u"}
    assert said.owned == ((("t", 3),) if version else ())


@pytest.mark.parametrize(
    "words", [b"", b"\0", subscription("t")[:-1], struct.pack(">hi", 0, -1), struct.pack(">hi", 0, 2**31 - 1)]
)
def test_words_that_are_none(words: bytes) -> None:
    assert read_subscription(words) is None
