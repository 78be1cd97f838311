"""Topics: their configurations change while they live."""

import pytest

from exacta.core.commands import CreateTopic, DeleteTopic, SetTopicConfigs
from exacta.core.events import TopicConfigsSet
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.snapshot import restore, snapshot
from tests.core.world import SMALL, World


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
