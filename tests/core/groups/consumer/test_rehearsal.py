"""A heartbeat that was rehearsed is taken if nothing has changed that it looked at, and decided again otherwise."""

from collections.abc import Callable
from typing import cast

import pytest
from msgspec.structs import replace

from exacta.core.commands import ConsumerHeartbeat, CreatePartitions, DeleteTopic
from exacta.core.decide import decide
from exacta.core.groups.consumer import rehearsal
from exacta.core.groups.consumer.heartbeat import heartbeat
from exacta.core.groups.consumer.rehearsal import Rehearsed, scene_of
from exacta.core.groups.consumer.subscriptions import topics_version
from exacta.core.outcome import Outcome
from exacta.core.replies import ConsumerHeartbeatDone
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import REBALANCE_MS, Consumer
from tests.core.world import World

JOIN = ConsumerHeartbeat(
    group_id="g",
    member_id="b",
    member_epoch=0,
    client_id="c",
    client_host="h",
    rebalance_timeout_ms=REBALANCE_MS,
    topics=frozenset({"t"}),
    pattern=".*",
    owned=frozenset(),
)


@pytest.fixture(autouse=True)
def _every_heartbeat_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "MOST_AT_ONCE", 0)


def rehearsed(world: World, command: ConsumerHeartbeat = JOIN) -> ConsumerHeartbeat:
    scene = scene_of(world.state, command)
    assert scene is not None
    return replace(command, rehearsed=Rehearsed(scene, heartbeat(scene.state, command, world.now_ms)))


def outcome_of(command: ConsumerHeartbeat) -> Outcome:
    return cast("Outcome", command.rehearsed.outcome)


@pytest.mark.parametrize("has_members", [True, False])
def test_what_was_rehearsed_is_what_would_be_decided(world: World, has_members: bool) -> None:
    if has_members:
        Consumer(world, "a", "t").join()
    command = rehearsed(world)
    assert outcome_of(command) == decide(world.state, JOIN, world.now_ms)
    assert decide(world.state, command, world.now_ms) is outcome_of(command)
    reply = world.send(command)
    assert isinstance(reply, ConsumerHeartbeatDone)


def renamed(world: World) -> None:
    world.send(DeleteTopic(topic="t"))
    world.topic("another")


def joined(world: World) -> None:
    Consumer(world, "c", "t").join()


GROWTH: dict[str, Callable[[World], object]] = {
    "a topic more": lambda world: world.topic("another"),
    "more partitions": lambda world: world.send(CreatePartitions(topic="t", total_count=9, assigned_count=None)),
}

CHANGES: dict[str, Callable[[World], object]] = {
    "a topic less": lambda world: world.send(DeleteTopic(topic="t")),
    "one topic for another": renamed,
    "another member": joined,
    "the group is a classic one": lambda world: Group(world).join("x"),
}


@pytest.mark.parametrize("what", GROWTH)
def test_topics_that_come_meanwhile_do_not_count_and_are_looked_at_by_the_next_heartbeat(
    world: World, what: str
) -> None:
    """Else topics that are created steadily would have each heartbeat decided in one step."""
    command = rehearsed(world, replace(JOIN, topics=frozenset({"t", "another"})))
    GROWTH[what](world)
    assert decide(world.state, command, world.now_ms) is outcome_of(command)
    reply = world.send(command)
    assert isinstance(reply, ConsumerHeartbeatDone)
    group = world.state.volatile.consumer_groups["g"]
    assert group.topics_version != topics_version(world.state)
    alive = ConsumerHeartbeat(
        group_id="g", member_id=JOIN.member_id, member_epoch=reply.member_epoch, client_id="c", client_host="h"
    )
    world.send(alive)
    group = world.state.volatile.consumer_groups["g"]
    assert group.topics_version == topics_version(world.state)
    known = {topic.topic_id for topic in world.state.topics.values()}
    assert {topic_id for topic_id, _ in group.target[JOIN.member_id]} == known
    assert len(group.target[JOIN.member_id]) == sum(each.partition_count for each in world.state.topics.values())


@pytest.mark.parametrize("what", CHANGES)
def test_what_has_changed_meanwhile_is_decided_anew(world: World, what: str) -> None:
    command = rehearsed(world)
    CHANGES[what](world)
    assert not command.rehearsed.scene.is_as_it_was(world.state)
    again = decide(world.state, command, world.now_ms)
    assert again == decide(world.state, JOIN, world.now_ms)
    assert again is not outcome_of(command)


def test_a_heartbeat_that_only_says_that_the_member_lives_is_not_rehearsed(world: World) -> None:
    a = Consumer(world, "a", "t")
    a.join()
    a.step()
    alive = ConsumerHeartbeat(group_id="g", member_id="a", member_epoch=a.epoch, client_id="c", client_host="h")
    assert scene_of(world.state, alive) is None
    world.topic("another")
    assert scene_of(world.state, alive) is not None


def test_a_short_one_is_not_rehearsed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "MOST_AT_ONCE", 1_000)
    assert scene_of(world.state, JOIN) is None
