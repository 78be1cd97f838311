"""Topics: their configurations and the number of their partitions change while they live."""

import pytest

from exacta.core.commands import CreatePartitions, CreateTopic, DeleteTopic, SetTopicConfigs
from exacta.core.events import PartitionsAdded, TopicConfigsSet
from exacta.core.ids import PartitionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.snapshot import restore, snapshot
from exacta.core.values.limits import Limits
from tests.core.world import SMALL, World


@pytest.mark.parametrize(
    ("name", "is_possible"),
    [
        ("persistent://public/default/x", True),
        ("a b", True),
        ("é" * 256, True),
        ("é" * 256 + "x", False),
        ("", False),
        ("a\x00b", False),
        ("a\nb", False),
        ("a\x85b", False),
        ("a\ud800b", False),
    ],
)
def test_a_name_is_possible_or_not_whichever_protocol_asks(world: World, name: str, is_possible: bool) -> None:
    answer = world.send(CreateTopic(topic=name, topic_id=b"n" * 16, partition_count=1))
    assert (answer is not Rejection.INVALID_TOPIC) is is_possible
    assert (name in world.state.topics) is is_possible
    world.check()


class TestConfigurations:
    def set_configs(
        self, world: World, configs: dict[str, str], topic: str = "t", validate_only: bool = False
    ) -> object:
        return world.send(SetTopicConfigs(topic=topic, configs=configs, validate_only=validate_only))

    def test_they_are_replaced_as_a_whole(self, world: World) -> None:
        for configs in ({"a": "1", "b": "2"}, {"b": "3"}, {}):
            assert self.set_configs(world, configs) == DONE
            assert world.state.topics["t"].configs == configs
            world.check()

    def test_where_nothing_changes_nothing_is_written(self, world: World) -> None:
        self.set_configs(world, {"a": "1"})
        length = len(world.log)
        assert self.set_configs(world, {"a": "1"}) == DONE
        assert self.set_configs(world, {"a": "2"}, validate_only=True) == DONE
        assert (len(world.log), world.state.topics["t"].configs) == (length, {"a": "1"})

    @pytest.mark.parametrize("validate_only", [False, True])
    def test_there_must_be_a_topic(self, world: World, validate_only: bool) -> None:
        world.send(DeleteTopic(topic="t"))
        answer = self.set_configs(world, {"a": "1"}, validate_only=validate_only)
        assert answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_topic_of_the_same_name_begins_anew(self, world: World) -> None:
        self.set_configs(world, {"a": "1"})
        world.send(DeleteTopic(topic="t"))
        world.send(CreateTopic(topic="t", topic_id=b"1" * 16, partition_count=1, configs={"b": "2"}))
        assert world.state.topics["t"].configs == {"b": "2"}

    def test_they_are_durable(self, world: World) -> None:
        self.set_configs(world, {"a": "1"})
        assert world.log[-1] == TopicConfigsSet(topic="t", configs={"a": "1"})
        assert restore(snapshot(world.state), SMALL).topics["t"].configs == {"a": "1"}
        world.crash()
        assert world.state.topics["t"].configs == {"a": "1"}


class TestMorePartitions:
    def grow(
        self, world: World, total_count: int, assigned_count: int | None = None, validate_only: bool = False
    ) -> object:
        return world.send(
            CreatePartitions(
                topic="t", total_count=total_count, assigned_count=assigned_count, validate_only=validate_only
            )
        )

    @pytest.mark.parametrize("validate_only", [False, True])
    @pytest.mark.parametrize("assigned_count", [None, 0, 1, 2])
    @pytest.mark.parametrize("total_count", [-1, 0, 1, 2, 3, 4, 5, 6])
    def test_only_upwards_within_the_limits_and_as_assigned(
        self, total_count: int, assigned_count: int | None, validate_only: bool
    ) -> None:
        world = World(Limits(max_partitions_per_topic=5, max_partitions=6))
        world.topic()
        world.topic("u", 1)
        answer = self.grow(world, total_count, assigned_count, validate_only)
        if not 3 <= total_count <= 5:
            assert answer is Rejection.INVALID_PARTITIONS
        elif assigned_count not in (None, total_count - 2):
            assert answer is Rejection.INVALID_REPLICA_ASSIGNMENT
        else:
            assert answer == DONE
        grown = answer == DONE and not validate_only
        assert world.state.topics["t"].partition_count == (total_count if grown else 2)
        world.check()

    def test_the_limit_of_all_topics(self) -> None:
        world = World(Limits(max_partitions=4))
        world.topic()
        world.topic("u", 1)
        assert self.grow(world, 4) is Rejection.INVALID_PARTITIONS
        assert self.grow(world, 3) == DONE
        assert self.grow(world, 4) is Rejection.INVALID_PARTITIONS

    def test_there_must_be_a_topic(self, world: World) -> None:
        world.send(DeleteTopic(topic="t"))
        assert self.grow(world, 5) is Rejection.UNKNOWN_TOPIC_OR_PARTITION

    def test_ids_are_never_used_again_whatever_lies_between(self, world: World) -> None:
        world.topic("u", 1)
        self.grow(world, 3)
        self.grow(world, 4)
        world.topic("v", 1)
        self.grow(world, 5)
        assert world.state.topics["t"].partition_ids == [0, 1, 3, 4, 6]
        world.check()
        world.send(DeleteTopic(topic="t"))
        assert list(world.state.partitions) == [2, 5]
        world.topic("t", 1)
        assert world.state.topics["t"].partition_ids == [7]
        world.check()

    def test_new_partitions_are_written_in_transactions_and_go_with_their_topic(self, world: World) -> None:
        self.grow(world, 3)
        producer = world.producer()
        for partition in (0, 2):
            producer.add(partition)
            producer.append(partition)
        world.send(DeleteTopic(topic="t"))
        assert world.ongoing().partitions == set()
        producer.end(commit=True)
        world.check()

    def test_they_are_durable(self, world: World) -> None:
        self.grow(world, 4)
        assert world.log[-1] == PartitionsAdded(topic="t", first_partition_id=PartitionId(2), partition_count=2)
        restored = restore(snapshot(world.state), SMALL)
        assert restored.topics["t"].partition_ids == [0, 1, 2, 3]
        assert restored.partitions.keys() == world.state.partitions.keys()
        world.crash()
        world.check()
        assert world.state.topics["t"].partition_ids == [0, 1, 2, 3]
