"""Groups are told with their offsets, to those who may read them."""

from collections.abc import Set

from exacta.core.commands import CommitOffsets, OffsetToCommit
from exacta.core.groups.description import DescribedConsumerGroup
from exacta.core.queries.group_offsets import NOTHING_KNOWN, AskedOffsets, FoundOffsets, offsets_of_groups
from exacta.core.queries.groups import described_groups, lags, listed_group, places_read, sorted_group_names
from exacta.core.rejections import Rejection
from tests.core.groups.consumer.members import Consumer
from tests.core.world import World


def asked(
    group_id: str, topics: Set[str] | None = None, member_id: str | None = None, member_epoch: int = -1
) -> AskedOffsets:
    return AskedOffsets(
        group_id=group_id, member_id=member_id, member_epoch=member_epoch, topics=topics, require_stable=False
    )


def a_world() -> World:
    world = World()
    world.topic("t")
    world.send(CommitOffsets(group_id="g", offsets=(OffsetToCommit(topic="t", partition=1, offset=7),)))
    return world


def test_all_offsets_come_with_the_ids_of_their_topics() -> None:
    state = a_world().state
    every, named, other, unknown = offsets_of_groups(
        state, 0, [asked("g"), asked("g", {"t"}), asked("g", {"u"}), asked("x")]
    )
    assert isinstance(every, FoundOffsets)
    assert isinstance(named, FoundOffsets)
    assert isinstance(other, FoundOffsets)
    assert every.topic_ids == {"t": state.topics["t"].topic_id}
    assert [each.offset for each in every.positions.told("t", [0, 1])] == [None, 7]
    assert (named.positions, named.topic_ids) == (every.positions, {})
    assert other.positions.topics() == []
    assert unknown is NOTHING_KNOWN


def test_what_was_found_does_not_change() -> None:
    world = a_world()
    [found] = offsets_of_groups(world.state, 0, [asked("g")])
    world.send(CommitOffsets(group_id="g", offsets=(OffsetToCommit(topic="t", partition=1, offset=8),)))
    assert isinstance(found, FoundOffsets)
    assert [each.offset for each in found.positions.told("t", [1])] == [7]


def test_a_member_with_another_epoch_is_refused_for_itself() -> None:
    world = a_world()
    Consumer(world, "m", "t", group_id="k").join()
    stranger, reader = offsets_of_groups(world.state, 0, [asked("k", member_id="n", member_epoch=1), asked("g")])
    assert stranger is Rejection.UNKNOWN_MEMBER_ID
    assert isinstance(reader, FoundOffsets)


def test_groups_are_listed_and_described_by_name() -> None:
    world = a_world()
    Consumer(world, "m", "t", group_id="k").join()
    assert sorted_group_names(world.state, 0) == ["g", "k"]
    assert listed_group(world.state, 0, "x") is None
    classic, consumers, unknown = described_groups(world.state, 0, ["g", "k", "x"])
    assert classic is not None
    assert not isinstance(classic, DescribedConsumerGroup)
    assert isinstance(consumers, DescribedConsumerGroup)
    assert unknown is None


def test_lags_are_those_of_the_places_that_are_named() -> None:
    state = a_world().state
    assert places_read(state, 0, "x") is None
    assert places_read(state, 0, "g") == [("t", 1)]
    [found] = lags(state, 0, "g", [("t", 1)])
    assert found.lag.committed_offset == 7
