"""Groups of the classic protocol go on after a restart where their last rebalance had ended (decision 0025)."""

from exacta.core.commands import CommitOffsets, DeleteGroup, OffsetToCommit
from exacta.core.ids import Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Joined, Synced
from exacta.core.values.classic_groups import Phase
from tests.core.groups.classic.members import REBALANCE_MS, SESSION_MS, Group


def commit(group: Group, member_id: str, generation: int, instance_id: str | None = None) -> object:
    return group.world.send(
        CommitOffsets(
            group_id="g",
            offsets=(OffsetToCommit(topic="t", partition=0, offset=1),),
            member_id=member_id,
            generation=generation,
            instance_id=instance_id,
        )
    )


def test_members_go_on_in_their_generation(group: Group) -> None:
    generation = group.stable("a", "b")
    producer = group.world.producer()
    group.world.crash()
    for name in ("a", "b"):
        assert group.heartbeat(name, generation) is DONE
        assert commit(group, name, generation) is DONE
        _, synced = group.sync(name, generation)
        assert isinstance(synced, Synced)
        assert synced.assignment == name.encode()
    producer.add_group()
    assert producer.commit_offsets(1, member_id="a", generation=generation) is DONE
    _, joined = group.join("a")
    assert joined is None, "the leader asks for a rebalance, and knows what the others offer"
    group.join("b")
    group.world.check()


def test_heartbeats_and_repeats_write_nothing(group: Group) -> None:
    generation = group.stable("a", "b")
    length = len(group.world.log)
    for name in ("a", "b"):
        group.heartbeat(name, generation)
        group.sync(name, generation)
    group.join("b")
    assert len(group.world.log) == length


def test_sessions_begin_anew(group: Group) -> None:
    generation = group.stable("a", "b")
    group.world.pass_time(SESSION_MS - 1)
    group.world.crash()
    group.world.pass_time(SESSION_MS - 1)
    assert group.heartbeat("a", generation) is DONE
    group.world.pass_time(1)
    assert group.members == {"a"}
    assert group.heartbeat("b", generation) is Rejection.UNKNOWN_MEMBER_ID


def test_a_rebalance_that_has_not_ended_is_forgotten_but_for_its_number(group: Group) -> None:
    """A member that was told of it must not have it a second time: others may read its partitions then (KIP-447)."""
    generation = group.stable("a")
    group.join("b")
    first, _ = group.join("a")
    told = group.joined(first).generation
    group.world.crash()
    assert group.phase() is Phase.STABLE
    assert group.members == {"a"}
    assert commit(group, "a", generation) is DONE
    assert commit(group, "a", told) is Rejection.ILLEGAL_GENERATION
    again = group.stable("a", "c")
    assert again > told
    assert commit(group, "a", told) is Rejection.ILLEGAL_GENERATION
    group.world.check()


def test_who_has_left_is_not_waited_for(group: Group) -> None:
    group.stable("a")
    group.leave("a")
    group.world.crash()
    assert group.world.state.settled == {}
    ticket, _ = group.join("b")
    assert group.joined(ticket).leader == "b"


def test_who_has_left_a_rebalance_that_is_forgotten_is_out_by_its_session(group: Group) -> None:
    generation = group.stable("a", "b")
    group.leave("b")
    group.world.crash()
    assert group.members == {"a", "b"}
    group.world.pass_time(SESSION_MS // 2)
    group.heartbeat("a", generation)
    group.world.pass_time(SESSION_MS // 2)
    assert group.members == {"a"}


def test_a_static_member_that_was_succeeded_stays_fenced(group: Group) -> None:
    group.join("a1", instance_id="A")
    generation = group.joined(Ticket(group.tickets)).generation
    group.sync("a1", generation, {"a1": b"1"}, instance_id="A")
    _, answer = group.join("a2", instance_id="A", member_id="")
    assert isinstance(answer, Joined)
    group.world.crash()
    assert commit(group, "a1", generation, "A") is Rejection.FENCED_INSTANCE_ID
    assert commit(group, "a2", generation, "A") is DONE
    assert group.world.send(DeleteGroup(group_id="g")) is Rejection.NON_EMPTY_GROUP


def test_a_member_that_does_not_join_again_after_it_is_out(group: Group) -> None:
    generation = group.stable("a")
    group.world.crash()
    ticket, _ = group.join("b", session_ms=1000)
    for _ in range(4):
        group.heartbeat("a", generation)
        group.world.pass_time(REBALANCE_MS // 4)
    assert group.joined(ticket).generation > generation
    assert group.members == {"b"}
    group.world.check()
