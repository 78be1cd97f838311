"""The consumer protocol (KIP-848): epochs, targets, giving up before taking over, time-outs, static members."""

import pytest
from msgspec import structs

from exacta.core.commands import (
    DeleteGroup,
    DeleteOffsets,
    DeleteTopic,
    JoinGroup,
)
from exacta.core.groups.consumer.subscriptions import topics_to_match
from exacta.core.ids import Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, ConsumerHeartbeatDone, Joined, OffsetsDeletedReply
from exacta.core.state.consumer_membership import MemberPhase
from exacta.core.values.consumer_groups import GroupPhase
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.answers import FENCED, FIRST, SECOND, SESSION_MS, UNKNOWN
from tests.core.groups.consumer.members import REBALANCE_MS, Consumer, group_of, settle
from tests.core.world import SMALL, World


def test_one_member_gets_everything_at_once(world: World) -> None:
    a = Consumer(world, "a", "t")
    assert isinstance(a.join(), ConsumerHeartbeatDone)
    assert (a.epoch, a.indexes) == (FIRST, [0, 1, 2, 3, 4, 5])
    assert group_of(world).phase is GroupPhase.STABLE
    reply = a.step()
    assert isinstance(reply, ConsumerHeartbeatDone)
    assert (reply.member_epoch, reply.assignment) == (FIRST, None), "it knows"


def test_a_partition_changes_hands_only_when_it_was_given_up(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    a.step()
    b.join()
    assert (b.epoch, b.indexes) == (SECOND, []), "nothing is free yet"
    assert b.state.phase is MemberPhase.UNRELEASED
    a.owned = a.shall_own
    a.beat()
    assert (a.epoch, len(a.indexes), a.state.phase) == (FIRST, 3, MemberPhase.UNREVOKED)
    b.beat()
    assert b.indexes == [], "a still reads them"
    a.beat()
    assert (a.epoch, a.state.phase) == (FIRST, MemberPhase.UNREVOKED), "it has not given them up"
    a.give_up()
    a.beat()
    assert (a.epoch, a.state.phase) == (SECOND, MemberPhase.STABLE)
    b.beat()
    assert sorted(a.indexes + b.indexes) == [0, 1, 2, 3, 4, 5]
    assert len(b.indexes) == 3
    assert group_of(world).phase is GroupPhase.STABLE


def test_who_does_not_give_up_in_time_is_out(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    a.step()
    b.join()
    for _ in range(4):
        a.beat()
        world.pass_time(REBALANCE_MS // 3)
    assert a.beat() is UNKNOWN
    b.step()
    assert b.indexes == [0, 1, 2, 3, 4, 5]


def test_a_silent_member_is_out_and_its_partitions_are_free(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    b.join()
    settle(a, b)
    world.pass_time(SESSION_MS - 1)
    b.beat()
    world.pass_time(1)
    assert group_of(world).members.keys() == {"b"}
    assert group_of(world).phase is GroupPhase.ASSIGNING
    b.step()
    assert b.indexes == [0, 1, 2, 3, 4, 5]
    assert a.beat() is UNKNOWN
    world.pass_time(SESSION_MS)
    assert group_of(world).phase is GroupPhase.EMPTY


def test_leaving_is_at_once(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    b.join()
    settle(a, b)
    left = a.leave()
    assert isinstance(left, ConsumerHeartbeatDone)
    assert left.member_epoch == -1
    b.step()
    assert len(b.indexes) == 6
    assert a.leave() is UNKNOWN
    b.leave()
    assert group_of(world).phase is GroupPhase.EMPTY
    assert group_of(world).epoch == FIRST + 3, "each change counts"


@pytest.mark.parametrize(
    ("epoch", "owned", "answer"),
    [
        (SECOND + 1, "all", FENCED),
        (0, "all", None),
        (SECOND, "all", None),
        (FIRST, "fewer", None),
        (FIRST, "more", FENCED),
        (FIRST, None, FENCED),
    ],
)
def test_who_comes_with_another_epoch_is_fenced(
    world: World, epoch: int, owned: str | None, answer: Rejection | None
) -> None:
    """But for the epoch before, if the answer with the present one may have been lost."""
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    settle(a)
    b.join()
    settle(a, b)
    assert a.epoch == a.state.epoch == SECOND
    reported = {"all": a.shall_own, "fewer": frozenset(sorted(a.shall_own)[:1]), "more": a.shall_own | b.shall_own}
    reply = a.send(epoch, owned=None if owned is None else reported[owned])
    if answer is None:
        assert isinstance(reply, ConsumerHeartbeatDone)
        assert reply.member_epoch == SECOND
    else:
        assert reply is answer


def test_a_member_that_joins_again_is_told_everything(world: World) -> None:
    a = Consumer(world, "a", "t")
    a.join()
    reply = a.join()
    assert isinstance(reply, ConsumerHeartbeatDone)
    assert (reply.member_epoch, reply.assignment) == (FIRST, frozenset(a.state.assigned))
    full = a.send(FIRST, rebalance_timeout_ms=5, topics=frozenset(a.topics), owned=a.shall_own)
    assert isinstance(full, ConsumerHeartbeatDone)
    assert full.assignment == a.state.assigned.keys()


def test_subscriptions_change(world: World) -> None:
    world.topic("u", 2)
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t", "u")
    a.join()
    b.join()
    settle(a, b)
    assert {topic for topic, _ in b.shall_own} == {topic_id(world, "t"), topic_id(world, "u")}
    b.subscribe("t")
    assert {topic for topic, _ in b.shall_own} <= {topic_id(world, "t")}, "what it does not ask for goes first"
    settle(a, b)
    assert [len(a.shall_own), len(b.shall_own)] == [3, 3]


def topic_id(world: World, name: str) -> bytes:
    return world.state.topics[name].topic_id


def test_topics_come_and_go(world: World) -> None:
    a = Consumer(world, "a", "t", "later")
    a.join()
    assert len(a.shall_own) == 6
    world.topic("later", 3)
    settle(a)
    assert (len(a.shall_own), a.epoch) == (9, SECOND)
    world.send(DeleteTopic(topic="t"))
    settle(a)
    assert (a.indexes, a.epoch) == ([0, 1, 2], SECOND + 1)
    world.topic("nobody reads this")
    settle(a)
    assert a.epoch == SECOND + 1


def test_patterns(world: World) -> None:
    world.topic("tt", 1)
    world.topic("other", 1)
    a = Consumer(world, "a", pattern="t+")
    a.join()
    assert len(a.shall_own) == 7
    world.topic("ttt", 1)
    settle(a)
    assert len(a.shall_own) == 8
    for wrong in ("(", "a{1000}{1000}", r"(a)\1"):
        assert a.send(a.epoch, pattern=wrong, owned=a.shall_own) is Rejection.INVALID_REGULAR_EXPRESSION
    a.send(a.epoch, pattern="", owned=a.shall_own)
    a.pattern = ""
    a.shall_own = frozenset()
    settle(a)
    assert a.state.assigned == {}


def test_a_pattern_does_not_match_what_is_hidden_from_the_one_who_asks_first(world: World) -> None:
    world.topic("tt", 1)
    assert set(topics_to_match(world.state, "g", subscribes=False)) == {"t", "tt"}
    a = Consumer(world, "a", pattern="t+")
    a.send(0, rebalance_timeout_ms=REBALANCE_MS, pattern="t+", owned=frozenset(), hidden=frozenset({"tt"}))
    assert set(group_of(world).topics) == {"t"}
    assert not topics_to_match(world.state, "g", subscribes=False), "they have been matched"
    assert topics_to_match(world.state, "g", subscribes=True)
    epoch = group_of(world).epoch
    world.topic("ttt", 1)
    assert topics_to_match(world.state, "g", subscribes=False)
    a.send(epoch, owned=frozenset(), hidden=frozenset({"tt", "ttt"}))
    assert (set(group_of(world).topics), group_of(world).epoch) == ({"t"}, epoch), "nothing tells of the new one"


def test_the_assignor_that_most_ask_for(world: World) -> None:
    a = Consumer(world, "a", "t", assignor="range")
    b = Consumer(world, "b", "t", assignor="range")
    c = Consumer(world, "c", "t")
    for consumer in (a, b, c):
        consumer.join()
    settle(a, b, c)
    assert group_of(world).assignor == "range"
    assert [consumer.indexes for consumer in (a, b, c)] == [[0, 1], [2, 3], [4, 5]]
    assert Consumer(world, "d", "t", assignor="sticky").join() is Rejection.UNSUPPORTED_ASSIGNOR


def test_another_assignor_begins_another_epoch(world: World) -> None:
    a = Consumer(world, "a", "t")
    a.join()
    a.assignor = "range"
    a.join()
    assert (a.epoch, group_of(world).assignor) == (SECOND, "range")
    settle(a)
    assert a.epoch == SECOND


def test_a_full_group(world: World) -> None:
    world = World(structs.replace(SMALL, group_consumer_max_size=1))
    world.topic()
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    a.join()
    assert b.join() is Rejection.GROUP_MAX_SIZE_REACHED
    assert isinstance(a.join(), ConsumerHeartbeatDone)


def test_as_many_groups_as_there_may_be() -> None:
    world = World(structs.replace(SMALL, max_groups=1))
    world.topic()
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t", group_id="h")
    a.join()
    assert b.join() is Rejection.LIMIT_REACHED
    assert isinstance(a.beat(), ConsumerHeartbeatDone)


def test_who_is_no_member(world: World) -> None:
    a, b = Consumer(world, "a", "t"), Consumer(world, "b", "t")
    assert a.send(1) is Rejection.GROUP_ID_NOT_FOUND
    assert a.leave() is Rejection.GROUP_ID_NOT_FOUND
    a.join()
    assert b.send(1) is UNKNOWN


def test_a_group_of_consumers_is_not_joined_by_others(world: World) -> None:
    a = Consumer(world, "a", "t")
    a.join()
    join = JoinGroup(
        ticket=Ticket(1),
        group_id="g",
        member_id="",
        new_member_id="m",
        client_id="c",
        client_host="h",
        session_timeout_ms=1000,
        rebalance_timeout_ms=1000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        knows_member_id_required=False,
    )
    assert world.send(join) is Rejection.INCONSISTENT_GROUP_PROTOCOL
    assert a.commit() is DONE
    a.leave()
    world.send(join)
    assert isinstance(world.woken[Ticket(1)], Joined), "an empty group may change"
    assert "g" not in world.state.volatile.consumer_groups
    assert a.join() is Rejection.GROUP_ID_NOT_FOUND
    world.pass_time(1000)
    assert isinstance(a.join(), ConsumerHeartbeatDone)
    assert "g" not in world.state.volatile.memberships
    assert world.state.groups["g"].offsets["t"][0].offset == 5


def test_an_empty_classic_group_changes_with_its_offsets() -> None:
    group = Group()
    group.stable("a")
    group.leave("a")
    assert isinstance(Consumer(group.world, "a", "t").join(), ConsumerHeartbeatDone)


def test_deleting(world: World) -> None:
    world.topic("u", 1)
    a = Consumer(world, "a", "t", pattern="u")
    a.join()
    a.commit()
    assert world.send(DeleteGroup(group_id="g")) is Rejection.NON_EMPTY_GROUP
    partitions = (("t", 0), ("u", 0))
    read = Rejection.GROUP_SUBSCRIBED_TO_TOPIC
    assert world.send(DeleteOffsets(group_id="g", partitions=partitions)) == OffsetsDeletedReply(
        rejections=(read, read)
    )
    a.leave()
    assert world.send(DeleteOffsets(group_id="g", partitions=partitions)) == OffsetsDeletedReply(
        rejections=(None, None)
    )
    assert world.send(DeleteGroup(group_id="g")) == DONE
    assert world.send(DeleteGroup(group_id="g")) is Rejection.GROUP_ID_NOT_FOUND
    world.pass_time(SESSION_MS)
    world.check()
