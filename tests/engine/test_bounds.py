"""Bounds as the engine sees to them: memory that does not suffice, timers of what is gone, and hosts as owners."""

import pytest
from msgspec.structs import replace

from exacta.core.commands import Command, CreateTopic, ExpireProducers, JoinGroup, LeaveGroup, MemberToRemove
from exacta.core.decide import decide
from exacta.core.ids import Ticket
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import Joined, MemberIdRequired
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.core.values.usage import Table
from exacta.engine import engine as engine_module
from tests.engine.rig import EXPIRIES, Rig

LONG_SESSION_MS = Limits().group_max_session_timeout_ms


def topic(number: int) -> CreateTopic:
    return CreateTopic(topic=f"x{number}", topic_id=number.to_bytes(16), partition_count=1)


def join(number: int, *, knows_member_id_required: bool) -> JoinGroup:
    return JoinGroup(
        ticket=Ticket(number),
        group_id="g",
        member_id="",
        new_member_id=f"m{number}",
        client_id="c",
        client_host="/10.0.0.1",
        session_timeout_ms=LONG_SESSION_MS,
        rebalance_timeout_ms=LONG_SESSION_MS,
        protocol_type="consumer",
        protocols=(("range", b""),),
        knows_member_id_required=knows_member_id_required,
    )


def without_memory(monkeypatch: pytest.MonkeyPatch, kind: type[Command]) -> None:
    """Let every decision on a command of this kind lack memory."""

    def or_not(state: State, command: Command, now_ms: int, owner: str = "") -> Outcome:
        if isinstance(command, kind):
            raise MemoryError
        return decide(state, command, now_ms, owner)

    monkeypatch.setattr(engine_module, "decide", or_not)


def test_what_cannot_be_decided_for_want_of_memory_is_refused_and_all_else_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        without_memory(patch, CreateTopic)
        assert rig.ask(topic(1)) is Rejection.STORAGE_ERROR
    assert not rig.failures
    assert not isinstance(rig.ask(topic(1)), Rejection)


def test_a_timer_that_cannot_be_decided_for_want_of_memory_stops_the_engine(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_memory(monkeypatch, ExpireProducers)
    with pytest.raises(MemoryError):
        rig.loop.pass_time(Limits().producer_id_expiry_interval_ms)
    assert rig.failures


@pytest.mark.parametrize("knows_member_id_required", [True, False])
def test_members_that_come_and_go_leave_no_timers(rig: Rig, *, knows_member_id_required: bool) -> None:
    """Or a client that asks for long sessions fills the memory with them."""
    for number in range(1, 200):
        rig.submit(join(number, knows_member_id_required=knows_member_id_required))
        rig.submit(LeaveGroup(group_id="g", members=(MemberToRemove(member_id=f"m{number}"),)))
        rig.settle()
    assert len(rig.engine._timers) <= EXPIRIES + 1
    assert isinstance(rig.ask(join(200, knows_member_id_required=False)), Joined)
    answer = rig.ask(replace(join(201, knows_member_id_required=True), group_id="h"))
    assert isinstance(answer, MemberIdRequired)


def test_a_host_owns_what_it_makes_unless_the_server_says_otherwise(rig: Rig) -> None:
    rig.engine.submit((topic(1),), lambda answers: None, host="10.0.0.1")
    rig.engine.owner_of = lambda host: "" if host == "127.0.0.1" else host
    rig.engine.submit((topic(2),), lambda answers: None, host="127.0.0.1")
    rig.settle()
    usage = rig.engine._state.volatile.usage[Table.TOPICS]
    assert usage.owned.keys() == {"10.0.0.1"}
    assert usage.owned["10.0.0.1"] < usage.total
    rig.crash()
    assert not rig.engine._state.volatile.usage[Table.TOPICS].owned
