"""The options that are set for brokers while they run are durable, and replaced as a whole for each broker or all."""

import pytest

from exacta.core.commands import SetBrokerConfigs
from exacta.core.events import BrokerConfigsSet
from exacta.core.replies import DONE
from exacta.core.snapshot import restore, snapshot
from simulation.invariants.log import broker_configs_are_the_last
from tests.core.world import SMALL, World


def set_configs(world: World, broker_id: str, configs: dict[str, str], *, validate_only: bool = False) -> None:
    command = SetBrokerConfigs(broker_id=broker_id, configs=configs, validate_only=validate_only)
    assert world.send(command) == DONE
    world.check()


def test_each_broker_and_all_have_their_own_which_are_replaced_whole(world: World) -> None:
    set_configs(world, "", {"a": "1", "b": "2"})
    set_configs(world, "0", {"a": "3"})
    set_configs(world, "", {"b": "4"})
    assert world.state.broker_configs == {"0": {"a": "3"}, "": {"b": "4"}}
    set_configs(world, "0", {})
    assert world.state.broker_configs == {"": {"b": "4"}}


def test_where_nothing_changes_nothing_is_written(world: World) -> None:
    set_configs(world, "", {"a": "1"})
    length, known = len(world.log), world.state.broker_configs
    set_configs(world, "", {"a": "1"})
    set_configs(world, "0", {})
    set_configs(world, "", {"a": "2"}, validate_only=True)
    assert len(world.log) == length
    assert world.state.broker_configs is known


def test_a_change_makes_another_object(world: World) -> None:
    before = world.state.broker_configs
    set_configs(world, "", {"a": "1"})
    assert before == {}
    assert world.state.broker_configs is not before


def test_they_are_durable(world: World) -> None:
    set_configs(world, "", {"a": "1"})
    assert world.log[-1] == BrokerConfigsSet(broker_id="", configs={"a": "1"})
    assert restore(snapshot(world.state), SMALL).broker_configs == {"": {"a": "1"}}
    world.crash()
    assert world.state.broker_configs == {"": {"a": "1"}}


@pytest.mark.parametrize("found", [{}, {"": {"a": "2"}}, {"": {"a": "1"}, "0": {"a": "1"}}, {"": {"a": "1"}, "0": {}}])
def test_the_invariant_sees_others_than_the_last(world: World, found: dict[str, dict[str, str]]) -> None:
    set_configs(world, "", {"a": "2"})
    set_configs(world, "", {"a": "1"})
    world.state.broker_configs = found
    assert any("broker configs" in each for each in broker_configs_are_the_last(world.state, world.log))
