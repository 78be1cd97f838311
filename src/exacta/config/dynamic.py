"""The broker's options in force: what was set while it ran counts before what it was started with (KIP-226).

Owns the order of the places in which an option can be given: for this broker while it runs, for all brokers while they
run, on the command line or in a file, nowhere. The core keeps what was set at run time, as text
(`State.broker_configs`); `options.py` says which options can be set so, and `kafka/broker_config_changes.py` how
requests do it.

The reasons stand in decision 0046. Code that is to see a change asks for `now` whenever a value is needed, and keeps no
configuration.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import Final

from exacta.config.configuration import Configuration
from exacta.config.errors import ConfigurationError
from exacta.config.options import Option, options, parse_run_time_value


class ConfigSource(Enum):
    """The place where a configuration's value was given."""

    TOPIC = auto()
    DYNAMIC_BROKER = auto()
    """It was set for this broker, while it ran."""
    DYNAMIC_DEFAULT = auto()
    """It was set for all brokers, while they ran."""
    STATIC = auto()
    """It was given on the command line or in a file."""
    DEFAULT = auto()
    """It was given nowhere."""


Value = tuple[str, str, ConfigSource]
"""The name under which a value was given, the value, and where."""

BrokerConfigs = Mapping[str, Mapping[str, str]]
"""The options that were set while brokers ran, by the broker's id; by `ALL_BROKERS` those that were set for all."""

ALL_BROKERS: Final = ""


class DynamicConfiguration:
    """The configuration of a broker that was started with `static`.

    `configs` returns what was set since, and another object whenever that has changed.
    """

    def __init__(self, static: Configuration, configs: Callable[[], BrokerConfigs]) -> None:
        self.static = static
        self._configs = configs
        self._known: BrokerConfigs = {}
        self._now = static

    @property
    def now(self) -> Configuration:
        """The configuration as it is in this step: the same object until it changes."""
        configs = self._configs()
        if configs is not self._known:
            self._known, self._now = configs, in_force(self.static, configs)
        return self._now

    def of(self, broker_id: str) -> Mapping[str, str]:
        """Return what was set for one broker, or for `ALL_BROKERS`, while it ran."""
        return self._configs().get(broker_id, {})

    def all_with(self, broker_id: str, configs: Mapping[str, str]) -> BrokerConfigs:
        """Return all that is set, as if this were set for one broker, or for `ALL_BROKERS`."""
        return {**self._configs(), broker_id: configs}

    def values_of(self, option: Option) -> list[Value]:
        """Return the values of an option, the one in force first, then those that would be without it."""
        values: list[Value] = []
        configs = self._configs()
        for broker_id, source in self._places():
            value = possible_value(option.name, configs.get(broker_id, {}).get(option.name))
            if value is not None:
                values.append((option.name, text_of(value), source))
        value = getattr(self.static, option.field)
        if value != option.default:
            values.append((option.name, text_of(value), ConfigSource.STATIC))
        return [*values, (option.name, text_of(option.default), ConfigSource.DEFAULT)]

    def _places(self) -> tuple[tuple[str, ConfigSource], ...]:
        own = str(self.static.node_id)
        return (own, ConfigSource.DYNAMIC_BROKER), (ALL_BROKERS, ConfigSource.DYNAMIC_DEFAULT)


def in_force(static: Configuration, configs: BrokerConfigs) -> Configuration:
    """Return the configuration of a broker that was started with `static`, and was given `configs` since."""
    given = {**configs.get(ALL_BROKERS, {}), **configs.get(str(static.node_id), {})}
    values = {name: possible_value(name, text) for name, text in given.items()}
    changes = {options()[name].field: value for name, value in values.items() if value is not None}
    return replace(static, **changes) if changes else static  # type: ignore[arg-type]


def possible_value(name: str, text: str | None) -> int | bool | str | None:
    """Return the value of an option that was set while a broker ran; None: it is not set, or means nothing (any more).

    Another version may have set what is no option here, or has another range.
    """
    option = options().get(name)
    if text is None or option is None or not option.dynamic:
        return None
    try:
        return parse_run_time_value(option, text)
    except ConfigurationError:
        return None


def text_of(value: int | bool | str) -> str:
    """Return a value as Kafka's tools write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
