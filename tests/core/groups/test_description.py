"""The read model of groups: lists, descriptions and offsets, frozen and of one state."""

import pytest

from exacta.core.commands import CommitOffsets, DeleteTopic, OffsetToCommit
from exacta.core.groups.description import (
    AssignedTopic,
    DescribedConsumerGroup,
    DescribedGroup,
    GroupType,
    ListedGroup,
    describe_group,
    group_names,
    list_group,
)
from exacta.core.groups.reading import GroupOffset
from exacta.core.values.classic_groups import Phase
from exacta.core.values.consumer_groups import GroupPhase
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import Consumer
from tests.core.groups.reading import fetch_offsets
from tests.core.world import World


def commit(world: World, group_id: str) -> None:
    offsets = (OffsetToCommit(topic="t", partition=0, offset=3, leader_epoch=0, metadata="m"),)
    world.send(CommitOffsets(group_id=group_id, offsets=offsets))


def test_every_kind_of_group_is_listed(group: Group) -> None:
    world = group.world
    commit(world, "a")
    group.join("m")
    Consumer(world, "c", "t", group_id="k").join()
    assert list_group(world.state, "?") is None
    assert [list_group(world.state, name) for name in sorted(group_names(world.state))] == [
        ListedGroup(group_id="a", group_type=GroupType.CLASSIC, protocol_type="", phase=Phase.EMPTY),
        ListedGroup(
            group_id="g", group_type=GroupType.CLASSIC, protocol_type="consumer", phase=Phase.COMPLETING_REBALANCE
        ),
        ListedGroup(group_id="k", group_type=GroupType.CONSUMER, protocol_type="consumer", phase=GroupPhase.STABLE),
    ]


def test_a_group_with_nothing_but_offsets(world: World) -> None:
    assert describe_group(world.state, "g") is None
    commit(world, "g")
    assert describe_group(world.state, "g") == DescribedGroup(
        group_id="g", phase=Phase.EMPTY, protocol_type="", protocol="", members=()
    )
    assert fetch_offsets(world.state, "g", None, require_stable=True) == [
        GroupOffset(topic="t", partition=0, offset=3, leader_epoch=0, metadata="m")
    ]


def test_a_classic_group_tells_protocol_and_metadata_once_it_is_stable(group: Group) -> None:
    group.join("m")
    described = describe_group(group.world.state, "g")
    assert isinstance(described, DescribedGroup)
    [member] = described.members
    assert (described.protocol, member.member_id, member.metadata, member.assignment) == ("", "m", b"", b"")
    group.leave("m")
    group.stable("m")
    described = describe_group(group.world.state, "g")
    assert isinstance(described, DescribedGroup)
    [member] = described.members
    assert (described.phase, described.protocol) == (Phase.STABLE, "range")
    assert (member.metadata, member.assignment) == (b"m/range", b"m")


def test_a_topic_that_is_gone_is_assigned_to_nobody(world: World) -> None:
    consumer = Consumer(world, "c", "t")
    consumer.join()
    topic = world.state.topics["t"]
    whole = (AssignedTopic(topic="t", topic_id=topic.topic_id, partitions=tuple(range(topic.partition_count))),)
    described = describe_group(world.state, "g")
    assert isinstance(described, DescribedConsumerGroup)
    assert [(each.assignment, each.target, each.topics) for each in described.members] == [(whole, whole, ("t",))]
    world.send(DeleteTopic(topic="t"))
    later = describe_group(world.state, "g")
    assert isinstance(later, DescribedConsumerGroup)
    assert [(each.assignment, each.target) for each in later.members] == [((), ())]
    assert [each.assignment for each in described.members] == [whole], "what was read does not change"


@pytest.fixture
def group() -> Group:
    return Group()
