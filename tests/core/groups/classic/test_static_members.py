"""Static members (KIP-345): an instance id outlives the process, and who has it now fences who had it before."""

import pytest
from msgspec import structs

from exacta.core.commands import CommitOffsets, OffsetToCommit
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Joined, Synced
from exacta.core.values.classic_groups import Phase
from tests.core.groups.classic.members import REBALANCE_MS, SESSION_MS, Group
from tests.core.world import SMALL, World
from tests.docstring_tables import docstring_table

FENCED, UNKNOWN = Rejection.FENCED_INSTANCE_ID, Rejection.UNKNOWN_MEMBER_ID


def stable(group: Group) -> int:
    """Static members a (leader, instance A) and b (instance B) in a stable group; return the generation."""
    a, _ = group.join("a", instance_id="A")
    b, _ = group.join("b", instance_id="B")
    a, _ = group.join("a", instance_id="A")
    generation = group.joined(a).generation
    assert group.joined(b).generation == generation
    group.sync("b", generation, instance_id="B")
    group.sync("a", generation, {"a": b"for A", "b": b"for B"}, instance_id="A")
    assert group.phase() is Phase.STABLE
    return generation


def test_an_id_is_given_at_once_whatever_the_client_knows(group: Group) -> None:
    ticket, reply = group.join("a", instance_id="A", known=False)
    assert reply is None
    assert group.joined(ticket).members == (("a", "A", b"a/range"),)


def test_a_successor_gets_the_assignment_without_a_rebalance(group: Group) -> None:
    generation = stable(group)
    _, joined = group.join("b2", instance_id="B")
    assert isinstance(joined, Joined)
    assert (joined.generation, joined.leader, joined.members, joined.skip_assignment) == (generation, "a", (), False)
    assert group.phase() is Phase.STABLE
    _, synced = group.sync("b2", generation, instance_id="B")
    assert isinstance(synced, Synced)
    assert synced.assignment == b"for B"
    assert group.heartbeat("a", generation, instance_id="A") is DONE


def test_a_successor_of_the_leader_is_told_not_to_assign(group: Group) -> None:
    generation = stable(group)
    _, joined = group.join("a2", instance_id="A")
    assert isinstance(joined, Joined)
    assert (joined.leader, joined.skip_assignment) == ("a2", True), "KIP-814"
    assert {(member_id, instance_id) for member_id, instance_id, _ in joined.members} == {("a2", "A"), ("b", "B")}
    _, older = group.join("a3", instance_id="A", skips=False)
    assert isinstance(older, Joined)
    assert (older.leader, older.members) == ("a2", ()), "an older client that led would assign"
    assert (older.generation, group.phase()) == (generation, Phase.STABLE)
    _, reply = group.join("a3", instance_id="A", member_id="a3")
    assert reply is None, "it is the leader all the same: when it asks, the group rebalances"


def test_a_successor_that_changes_the_protocol_begins_a_rebalance(group: Group) -> None:
    ticket, _ = group.join("a", "range sticky", instance_id="A")
    generation = group.joined(ticket).generation
    group.sync("a", generation, {"a": b"x"}, instance_id="A")
    again, reply = group.join("a2", "sticky range", instance_id="A")
    assert reply is None
    assert group.joined(again).protocol == "sticky"
    assert group.joined(again).generation == generation + 1


TABLE = docstring_table("exacta.core.groups.classic", "phase")


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.EMPTY])
def test_a_successor_fences_in_every_phase(group: Group, phase: Phase) -> None:
    generation = stable(group)
    if phase is not Phase.STABLE:
        group.join("a", instance_id="A")
    if phase is Phase.COMPLETING_REBALANCE:
        group.join("b", instance_id="B")
        generation += 1
    assert group.phase() is phase
    _, reply = group.join("b2", instance_id="B")
    cell = TABLE[phase.name.removesuffix("_REBALANCE"), "a successor joins under a known instance id"]
    after = {
        "no rebalance": Phase.STABLE,
        "take part": Phase.COMPLETING_REBALANCE,  # it was the last to join
        "begin a rebalance": Phase.PREPARING_REBALANCE,
    }
    assert group.phase() is after[cell]
    assert isinstance(reply, Joined) is (cell == "no rebalance")
    assert group.members == {"a", "b2"}
    assert group.heartbeat("b", generation, instance_id="B") is FENCED
    assert group.heartbeat("b", generation) is UNKNOWN
    assert group.sync("b", generation, instance_id="B")[1] is FENCED
    assert group.join("b", instance_id="B", member_id="b")[1] is FENCED
    assert commit(group, "b", generation, "B") is FENCED
    producer = group.world.producer()
    producer.add_group()
    assert producer.commit_offsets(1, member_id="b", generation=generation, instance_id="B") is FENCED
    assert producer.commit_offsets(1, member_id="b", generation=generation) is UNKNOWN
    group.world.check()


def commit(group: Group, member_id: str, generation: int, instance_id: str | None) -> object:
    offsets = (OffsetToCommit(topic="t", partition=0, offset=5),)
    command = CommitOffsets(
        group_id="g", offsets=offsets, member_id=member_id, generation=generation, instance_id=instance_id
    )
    return group.world.send(command)


def test_what_waits_for_the_predecessor_is_fenced(group: Group) -> None:
    stable(group)
    joining, _ = group.join("b", instance_id="B")  # nothing changed: answered at once
    assert joining not in group.world.woken
    group.join("c")
    waiting, _ = group.join("b", instance_id="B")
    group.join("b2", instance_id="B")
    assert group.world.woken[waiting] is FENCED


def test_an_instance_id_that_nobody_has_is_no_member(group: Group) -> None:
    generation = stable(group)
    assert group.heartbeat("a", generation, instance_id="Z") is UNKNOWN
    assert group.join("a", instance_id="Z", member_id="a")[1] is UNKNOWN


def test_a_late_static_member_stays_and_is_assigned_to(group: Group) -> None:
    generation = stable(group)
    ticket, _ = group.join("a", instance_id="A", session_ms=10 * REBALANCE_MS)
    group.join("c", session_ms=10 * REBALANCE_MS)
    for _ in range(4):
        group.heartbeat("b", generation, instance_id="B")  # b lives, but does not join again
        group.world.pass_time(REBALANCE_MS // 4)
    joined = group.joined(ticket)
    assert {member_id for member_id, _, _ in joined.members} == {"a", "b", "c"}
    assert group.phase() is Phase.COMPLETING_REBALANCE


def test_a_rebalance_that_nobody_has_joined_waits_for_somebody(group: Group) -> None:
    generation = stable(group)
    assert group.leave("a") == [None]
    for _ in range(8):
        group.heartbeat("b", generation, instance_id="B")
        group.world.pass_time(REBALANCE_MS // 4)
    assert (group.phase(), group.members) == (Phase.PREPARING_REBALANCE, {"b"})
    ticket, _ = group.join("b", instance_id="B")
    assert group.joined(ticket).leader == "b"


def test_only_the_end_of_its_session_removes_a_static_member_that_is_gone(group: Group) -> None:
    generation = stable(group)
    group.world.pass_time(SESSION_MS - 1)
    assert group.heartbeat("a", generation, instance_id="A") is DONE
    group.world.pass_time(1)
    assert group.members == {"a"}
    assert group.world.state.volatile.memberships["g"].static == {"A": "a"}


def test_members_leave_by_instance_id_and_the_rest_rebalances_once(group: Group) -> None:
    generation = stable(group)
    assert group.leave("nobody", instances=("Z",)) == [UNKNOWN, UNKNOWN]
    assert group.phase() is Phase.STABLE
    assert group.leave("a", "a", instances=("B", "B")) == [None, UNKNOWN, None, UNKNOWN]
    assert group.phase() is Phase.EMPTY
    assert group.world.state.volatile.memberships["g"].generation == generation + 1


def test_a_member_that_does_not_fetch_its_assignment_is_removed_from_a_stable_group(group: Group) -> None:
    group.join("a", session_ms=10_000)
    follower, _ = group.join("b", session_ms=10_000)
    leader, _ = group.join("a", session_ms=10_000)
    generation = group.joined(leader).generation
    assert group.joined(follower).generation == generation
    group.sync("a", generation, {"a": b"1", "b": b"2"})
    assert group.phase() is Phase.STABLE
    group.world.pass_time(REBALANCE_MS)
    assert group.members == {"a"}
    assert group.heartbeat("a", generation) is Rejection.REBALANCE_IN_PROGRESS


def test_a_rebalance_waits_for_who_was_given_an_id(group: Group) -> None:
    group.stable("a")
    group.join("b", known=False)
    ticket, _ = group.join("a")
    assert ticket not in group.world.woken
    group.join("b", member_id="b")
    assert len(group.joined(ticket).members) == 2


def test_a_new_member_that_waits_too_long_is_given_up(group: Group) -> None:
    ticket, _ = group.join("a", rebalance_ms=10**9, session_ms=10**6)
    group.sync("a", group.joined(ticket).generation, {"a": b"x"})
    waiting, _ = group.join("b")
    for _ in range(3):
        group.heartbeat("a", 1)
        group.world.pass_time(100_000)
    assert group.world.woken[waiting] is UNKNOWN
    assert group.members == {"a"}


def test_a_first_rebalance_waits_again_for_those_that_still_come() -> None:
    """KIP-134."""
    group = Group(World(structs.replace(SMALL, group_initial_rebalance_delay_ms=100)))
    first, _ = group.join("a")
    group.world.pass_time(60)
    group.join("b")
    group.world.pass_time(60)
    assert first not in group.world.woken
    group.join("c")
    group.world.pass_time(80)
    assert first not in group.world.woken
    group.world.pass_time(100)
    assert len(group.joined(first).members) == 3


def test_a_sync_for_another_protocol_is_refused(group: Group) -> None:
    generation = group.stable("a")
    assert group.sync("a", generation, protocol="sticky")[1] is Rejection.INCONSISTENT_GROUP_PROTOCOL
    assert isinstance(group.sync("a", generation, protocol="range")[1], Synced)


def test_members_without_a_rebalance_time_out_do_not_keep_the_broker_busy(group: Group) -> None:
    """A static member that is late is waited for: not by looking again and again in the same instant."""
    generation, world = stable(group), group.world
    membership = world.state.volatile.memberships["g"]
    hasty = {key: structs.replace(member, rebalance_timeout_ms=0) for key, member in membership.members.items()}
    world.state.volatile.memberships["g"] = structs.replace(membership, members=hasty)
    group.leave("b")
    world.pass_time(SESSION_MS // 2)  # would not come back
    assert group.phase() is Phase.PREPARING_REBALANCE
    assert group.heartbeat("a", generation, instance_id="A") is Rejection.REBALANCE_IN_PROGRESS
