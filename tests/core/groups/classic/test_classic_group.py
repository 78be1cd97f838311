"""The classic group protocol: its table swept, rebalances, time-outs, fencing of offset commits (KIP-447)."""

import pytest
from msgspec import structs

from exacta.core.commands import CommitOffsets, OffsetToCommit
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Joined, MemberIdRequired, OffsetsTaken, Synced
from exacta.core.state.classic_membership import NOBODY
from exacta.core.values.classic_groups import Phase
from tests.core.groups.classic.members import REBALANCE_MS, SESSION_MS, Group
from tests.core.groups.reading import fetch_offsets
from tests.core.world import SMALL, World
from tests.docstring_tables import docstring_table


def test_one_member(group: Group) -> None:
    ticket, reply = group.join("a")
    assert reply is None, "the answer comes with the end of the rebalance, which is now"
    joined = group.joined(ticket)
    assert (joined.generation, joined.leader, joined.member_id, joined.protocol) == (1, "a", "a", "range")
    assert joined.members == (("a", None, b"a/range"),)
    _, synced = group.sync("a", 1, {"a": b"all"})
    assert synced == Synced(protocol_type="consumer", protocol="range", assignment=b"all")
    assert group.heartbeat("a", 1) is DONE


def test_a_second_member_makes_the_first_join_again(group: Group) -> None:
    generation = group.stable("a")
    second, reply = group.join("b")
    assert reply is None
    assert group.heartbeat("a", generation) is Rejection.REBALANCE_IN_PROGRESS
    first, _ = group.join("a")
    assert group.joined(first).generation == group.joined(second).generation == generation + 1
    assert group.joined(first).leader == "a"
    assert len(group.joined(first).members) == 2
    assert group.joined(second).members == (), "only the leader is told"
    follower, waits = group.sync("b", generation + 1)
    assert waits is None
    group.sync("a", generation + 1, {"a": b"1", "b": b"2"})
    assert group.world.woken[follower] == Synced(protocol_type="consumer", protocol="range", assignment=b"2")


def test_who_does_not_join_in_time_is_out(group: Group) -> None:
    generation = group.stable("a")
    ticket, _ = group.join("b", session_ms=1000)
    for _ in range(4):  # a lives, but does not join again
        group.heartbeat("a", generation)
        group.world.pass_time(REBALANCE_MS // 4)
    assert group.joined(ticket).leader == "b"
    assert group.members == {"b"}
    assert group.heartbeat("a", generation) is Rejection.UNKNOWN_MEMBER_ID


def test_an_earlier_deadline_does_not_cut_a_later_rebalance_short(group: Group) -> None:
    generation = group.stable("a")  # its deadline for syncing is still set
    group.world.pass_time(REBALANCE_MS - 250)
    for _ in range(3):
        group.heartbeat("a", generation)
        group.world.pass_time(SESSION_MS - 20)
    group.heartbeat("a", generation)
    group.join("b", session_ms=1000)
    group.world.pass_time(20)  # past the old deadline, far from the new one
    assert group.members == {"a", "b"}


def test_a_silent_member_expires_and_the_others_rebalance(group: Group) -> None:
    generation = group.stable("a", "b")
    group.world.pass_time(SESSION_MS - 1)
    assert group.heartbeat("a", generation) is DONE
    group.world.pass_time(1)
    assert group.members == {"a"}
    assert group.heartbeat("a", generation) is Rejection.REBALANCE_IN_PROGRESS


def test_a_leader_that_does_not_sync_is_removed(group: Group) -> None:
    group.join("a", session_ms=10_000)
    follower, _ = group.join("b", session_ms=10_000)
    group.join("a", session_ms=10_000)
    sync, _ = group.sync("b", group.joined(follower).generation)
    group.world.pass_time(REBALANCE_MS)
    assert group.members == {"b"}
    assert group.world.woken[sync] is Rejection.REBALANCE_IN_PROGRESS


def test_leaving_is_at_once(group: Group) -> None:
    generation = group.stable("a", "b")
    assert group.leave("b") == [None]
    assert group.heartbeat("a", generation) is Rejection.REBALANCE_IN_PROGRESS
    again, _ = group.join("a")
    assert group.joined(again).generation == generation + 1
    assert group.leave("a") == [None]
    assert group.phase() is Phase.EMPTY
    assert group.leave("a") == [Rejection.UNKNOWN_MEMBER_ID]


def test_a_repeated_join_is_told_the_present_generation(group: Group) -> None:
    generation = group.stable("a", "b")
    _, reply = group.join("b")
    assert isinstance(reply, Joined)
    assert reply.generation == generation
    _, reply = group.join("a")
    assert reply is None, "a leader that joins again wants a new assignment"
    assert group.phase() is Phase.PREPARING_REBALANCE


def test_the_protocol_is_one_that_all_know_and_most_like(group: Group) -> None:
    group.join("a", "sticky range")
    group.join("b", "range sticky")
    third, _ = group.join("c", "range sticky")
    group.join("a", "sticky range")
    assert group.joined(third).protocol == "range"
    assert group.join("d", "other")[1] is Rejection.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_id_is_given_first_where_the_client_knows_that(group: Group) -> None:
    _, reply = group.join("a", known=False)
    assert reply == MemberIdRequired(member_id="a")
    ticket, reply = group.join("z", member_id="a", known=False)
    assert reply is None
    assert group.joined(ticket).member_id == "a"


def test_a_member_id_that_is_not_used_expires(group: Group) -> None:
    group.join("a", known=False)
    group.world.pass_time(SESSION_MS)
    assert group.world.state.volatile.memberships["g"].pending == frozenset()


def test_member_ids_that_are_not_used_have_a_bound() -> None:
    group = Group(World(structs.replace(SMALL, max_pending_members=2)))
    replies = [group.join(name, known=False)[1] for name in "abc"]
    full = Rejection.GROUP_MAX_SIZE_REACHED
    assert replies == [MemberIdRequired(member_id="a"), MemberIdRequired(member_id="b"), full]
    _, reply = group.join("z", member_id="a", known=False)
    assert reply is None, "who has been given an id uses it"
    assert group.join("c", known=False)[1] == MemberIdRequired(member_id="c")
    group.world.pass_time(SESSION_MS)
    assert group.join("d", known=False)[1] == MemberIdRequired(member_id="d")


# --- the table --------------------------------------------------------------------------------------------------------


def in_phase(group: Group, phase: Phase) -> int:
    """Members a (leader) and b, in the given phase; returns the generation."""
    if phase is Phase.EMPTY:
        return 0
    generation = group.stable("a", "b")
    if phase is Phase.STABLE:
        return generation
    group.join("a")
    if phase is Phase.COMPLETING_REBALANCE:
        group.join("b")
        generation += 1
    assert group.phase() is phase
    return generation


WAITS = None
UNKNOWN, REBALANCING = Rejection.UNKNOWN_MEMBER_ID, Rejection.REBALANCE_IN_PROGRESS
TABLE = docstring_table("exacta.core.groups.classic", "phase \\ input")
INPUTS = {
    "join (new or changed)": "join c",
    "sync by leader": "sync a",
    "sync by follower": "sync b",
    "heartbeat": "heartbeat",
    "leave, expiry": "leave",
}
PHASES = {phase.name.removesuffix("_REBALANCE"): phase for phase in Phase}
CELLS: dict[str, tuple[object, Phase | None]] = {
    # what a cell says: the answer, and the phase afterwards, if it changes
    "take part": (WAITS, None),
    "go on without": (DONE, Phase.COMPLETING_REBALANCE),
    "unknown member": (UNKNOWN, None),
    "rebalancing": (REBALANCING, None),
    "-> STABLE": (Synced, Phase.STABLE),
    "wait": (WAITS, None),
    "assignment": (Synced, None),
    "ok": (DONE, None),
}


def deadline_of(group: Group) -> int:
    return group.world.state.volatile.memberships.get("g", NOBODY).deadline_ms


def expected_of(phase: Phase, name: str, cell: str) -> tuple[object, Phase | None]:
    if cell != "begin a rebalance":
        return CELLS[cell]
    # A member that is alone has joined, and so has everybody.
    begun = Phase.COMPLETING_REBALANCE if phase is Phase.EMPTY else Phase.PREPARING_REBALANCE
    return (WAITS if name == "join c" else DONE), begun


def act(group: Group, name: str, generation: int) -> object:
    match name:
        case "join c":
            return group.join("c")[1]
        case "sync a":
            return group.sync("a", generation, {"a": b"1", "b": b"2"})[1]
        case "sync b":
            return group.sync("b", generation)[1]
        case "heartbeat":
            return group.heartbeat("b", generation)
        case _:
            [answer] = group.leave("b")
            return answer if answer is not None else DONE


def test_the_table_is_complete() -> None:
    assert TABLE.rows.keys() == PHASES.keys()
    assert set(TABLE.columns) == INPUTS.keys()


@pytest.mark.parametrize(("row", "column", "cell"), TABLE.cells())
def test_every_input_in_every_phase(group: Group, row: str, column: str, cell: str) -> None:
    phase, name = PHASES[row], INPUTS[column]
    generation = in_phase(group, phase)
    before = deadline_of(group)
    group.world.pass_time(1)
    answer = act(group, name, generation)
    if name == "join c":
        assert (deadline_of(group) != before) is (cell == "begin a rebalance"), "who takes part delays nobody"
    expected, phase_after = expected_of(phase, name, cell)
    assert answer == expected or (isinstance(expected, type) and isinstance(answer, expected))
    assert group.phase() is (phase_after or phase)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.EMPTY])
@pytest.mark.parametrize("name", ["sync a", "sync b", "heartbeat"])
def test_another_generation_is_refused_in_every_phase(group: Group, phase: Phase, name: str) -> None:
    generation = in_phase(group, phase)
    assert act(group, name, generation - 1) is Rejection.ILLEGAL_GENERATION
    assert group.phase() is phase


# --- offsets ----------------------------------------------------------------------------------------------------------


def plain_commit(group: Group, member_id: str, generation: int, offset: int = 5) -> object:
    offsets = (OffsetToCommit(topic="t", partition=0, offset=offset),)
    command = CommitOffsets(group_id="g", offsets=offsets, member_id=member_id, generation=generation)
    return group.world.send(command)


@pytest.mark.parametrize(
    ("member_id", "late", "plain", "transactional"),
    [
        ("b", 0, DONE, DONE),
        ("b", 1, Rejection.ILLEGAL_GENERATION, Rejection.ILLEGAL_GENERATION),
        ("stranger", 0, UNKNOWN, UNKNOWN),
    ],
)
def test_who_may_commit(group: Group, member_id: str, late: int, plain: object, transactional: object) -> None:
    generation = in_phase(group, Phase.STABLE) - late
    assert plain_commit(group, member_id, generation) is plain
    producer = group.world.producer()
    producer.add_group()
    assert producer.commit_offsets(7, member_id=member_id, generation=generation) is transactional
    group.world.check()


def test_who_names_no_member_may_commit_to_an_empty_group_or_in_a_transaction(group: Group) -> None:
    assert plain_commit(group, "", -1) is DONE
    in_phase(group, Phase.STABLE)
    assert plain_commit(group, "", -1) is UNKNOWN
    producer = group.world.producer()
    producer.add_group()
    assert producer.commit_offsets(7) is DONE, "old request versions cannot name a member"


def test_plain_commits_wait_for_the_assignment(group: Group) -> None:
    generation = in_phase(group, Phase.COMPLETING_REBALANCE)
    assert plain_commit(group, "b", generation) is REBALANCING


def committed(world: World, *, require_stable: bool = False) -> object:
    (found,) = fetch_offsets(world.state, "g", [("t", [0])], require_stable=require_stable)
    return "unstable" if found.unstable else found.offset


def test_pending_offsets_show_only_after_the_commit() -> None:
    world = World()
    world.topic()
    producer = world.producer()
    producer.add_group()
    producer.commit_offsets(7)
    assert committed(world) is None
    assert committed(world, require_stable=True) == "unstable"
    producer.end(commit=True)
    assert committed(world) == committed(world, require_stable=True) == 7
    producer.add_group()
    producer.commit_offsets(9)
    producer.end(commit=False)
    assert committed(world, require_stable=True) == 7
    world.check()


def test_a_later_plain_commit_wins_over_an_earlier_pending_one() -> None:
    group = Group()
    producer = group.world.producer()
    producer.add_group()
    producer.commit_offsets(7)
    plain_commit(group, "", -1, offset=8)
    producer.end(commit=True)
    assert committed(group.world) == 8
    group.world.check()


def test_one_offsets_fault_is_not_anothers(group: Group) -> None:
    good = OffsetToCommit(topic="t", partition=0, offset=4)
    missing = OffsetToCommit(topic="t", partition=9, offset=1)
    long = OffsetToCommit(topic="t", partition=1, offset=1, metadata="é" * 2049)
    answer = group.world.send(CommitOffsets(group_id="g", offsets=(good, missing, long)))
    assert answer == OffsetsTaken(
        rejections=(None, Rejection.UNKNOWN_TOPIC_OR_PARTITION, Rejection.OFFSET_METADATA_TOO_LARGE)
    )
    assert committed(group.world) == 4
    producer = group.world.producer()
    producer.add_group()
    refused = OffsetsTaken(rejections=(Rejection.UNKNOWN_TOPIC_OR_PARTITION,))
    assert producer.commit_offsets(1, partition=9) == refused
    assert group.world.send(CommitOffsets(group_id="", offsets=())) is Rejection.INVALID_GROUP_ID
    group.world.check()


def test_a_new_group_waits_for_its_first_members() -> None:
    group = Group(World(structs.replace(SMALL, group_initial_rebalance_delay_ms=50)))
    first, _ = group.join("a")
    group.world.pass_time(49)
    assert group.phase() is Phase.PREPARING_REBALANCE
    group.world.pass_time(1)
    assert group.joined(first).generation == 1
