"""Members of groups: what they are told waits for its sync, and is there after a crash (decision 0025)."""

from exacta.core.commands import Heartbeat, JoinGroup, SyncGroup
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Joined, Synced
from tests.engine.rig import EXPIRIES, Rig


def join(rig: Rig, member_id: str = "m", *, new: bool = True) -> JoinGroup:
    return JoinGroup(
        ticket=rig.engine.new_ticket(),
        group_id="g",
        member_id="" if new else member_id,
        new_member_id=member_id,
        client_id="c",
        client_host="h",
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        knows_member_id_required=False,
    )


def sync(rig: Rig, generation: int, member_id: str = "m") -> SyncGroup:
    return SyncGroup(ticket=rig.engine.new_ticket(), group_id="g", member_id=member_id, generation=generation)


def test_no_member_is_given_partitions_before_the_rebalance_is_durable(rig: Rig) -> None:
    """Neither the leader, nor those who waited for it, nor who asks in the moment between (decision 0025)."""
    leader = rig.submit(join(rig))
    rig.loop.turn()
    assert leader == [], "the first generation reserves a thousand"
    rig.settle()
    [joined] = leader
    assert isinstance(joined, Joined)
    rig.ask(sync(rig, joined.generation))
    others = [rig.submit(join(rig, name)) for name in ("n", "o")]
    again = rig.submit(join(rig, new=False))
    rig.settle()
    [joined] = again
    assert isinstance(joined, Joined)
    assert all(isinstance(answer, Joined) for [answer] in others)
    waiting = rig.submit(sync(rig, joined.generation, "n"))
    rig.settle()
    told = [waiting, rig.submit(sync(rig, joined.generation)), rig.submit(sync(rig, joined.generation, "o"))]
    rig.loop.turn()
    assert told == [[], [], []]
    rig.crash()
    assert rig.ask(Heartbeat(group_id="g", member_id="n", generation=joined.generation)) is Rejection.UNKNOWN_MEMBER_ID
    assert rig.ask(Heartbeat(group_id="g", member_id="m", generation=joined.generation)) is Rejection.ILLEGAL_GENERATION
    assert rig.ask(Heartbeat(group_id="g", member_id="m", generation=joined.generation - 1)) is DONE


def test_what_members_are_told_is_there_after_a_crash(rig: Rig) -> None:
    joined = rig.ask(join(rig))
    assert isinstance(joined, Joined)
    assert isinstance(rig.ask(sync(rig, joined.generation)), Synced)
    rig.crash()
    assert rig.ask(Heartbeat(group_id="g", member_id="m", generation=joined.generation)) is DONE
    rig.loop.pass_time(5999)
    assert rig.ask(Heartbeat(group_id="g", member_id="m", generation=joined.generation)) is DONE
    rig.loop.pass_time(6000)
    gone = rig.ask(Heartbeat(group_id="g", member_id="m", generation=joined.generation))
    assert gone is Rejection.UNKNOWN_MEMBER_ID
    rig.crash()
    assert rig.engine._state.volatile.memberships == {}, "that it is gone is durable as well"


def test_many_heartbeats_keep_one_timer(rig: Rig) -> None:
    joined = rig.ask(join(rig))
    assert isinstance(joined, Joined)
    assert isinstance(rig.ask(sync(rig, joined.generation)), Synced)
    for _ in range(50):
        rig.loop.pass_time(3000)
        assert rig.ask(Heartbeat(group_id="g", member_id="m", generation=1)) is DONE
    assert len(rig.engine.deadlines._heap) <= 2 + EXPIRIES
    rig.loop.pass_time(6000)
    assert rig.ask(Heartbeat(group_id="g", member_id="m", generation=1)) is Rejection.UNKNOWN_MEMBER_ID
