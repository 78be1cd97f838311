"""Planted bugs of options that are set while the broker runs (KIP-226, decision 0046)."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from exacta.config import dynamic
from exacta.config.configuration import Configuration
from exacta.core import snapshot
from exacta.core.apply import _APPLY
from exacta.core.commands import SetBrokerConfigs
from exacta.core.events import BrokerConfigsSet
from exacta.core.promises import Promise
from exacta.core.state.state import State
from simulation.canaries import Replacements, canary


@canary("an option is said to be set before that is durable", shows=r"options: ")
def option_not_awaited() -> Replacements:
    return [(SetBrokerConfigs, "promises", Promise.NOTHING)]


@canary(
    "a snapshot leaves out the options that are set", shows=r"options: |8: what was recovered at .* is not the fold"
)
def options_lost_in_the_snapshot() -> Replacements:
    decoded = snapshot._decoded

    def without(blob: bytes) -> Any:
        return replace(decoded(blob), broker_configs={})

    return [(snapshot, "_decoded", without)]


@canary("what is set for all brokers counts before what is set for this one", shows=r"options: the broker acts as if")
def options_of_all_count_first() -> Replacements:
    in_force = dynamic.in_force

    def the_wrong_way(static: Configuration, configs: Mapping[str, Mapping[str, str]]) -> Configuration:
        own, everybodys = configs.get(str(static.node_id), {}), configs.get(dynamic.ALL_BROKERS, {})
        return in_force(static, {dynamic.ALL_BROKERS: {**own, **everybodys}})

    return [(dynamic, "in_force", the_wrong_way)]


@canary(
    "the broker goes by options as they were when it looked for the first time", shows=r"options: the broker acts as if"
)
def options_changed_in_place() -> Replacements:
    def in_place(state: State, event: BrokerConfigsSet) -> None:
        state.broker_configs.pop(event.broker_id, None)
        if event.configs:
            state.broker_configs[event.broker_id] = event.configs

    return [(_APPLY, BrokerConfigsSet, in_place)]


@canary("an option that is set back to its default stays as it was", shows=r"options: |broker configs: ")
def options_never_set_back() -> Replacements:
    def merged(state: State, event: BrokerConfigsSet) -> None:
        others = {each: configs for each, configs in state.broker_configs.items() if each != event.broker_id}
        configs = state.broker_configs.get(event.broker_id, {}) | event.configs
        state.broker_configs = others | ({event.broker_id: configs} if configs else {})

    return [(_APPLY, BrokerConfigsSet, merged)]
