"""The reference of the configuration, made from code: `python -m exacta.cli.configuration_reference`.

This module owns the form of `docs/reference/configuration.md` (`make docs` writes it). Its content stands in the tables
of `exacta.config` and in the command line of `exacta serve`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields

from exacta.cli.data_directory import DEFAULT_DATA
from exacta.cli.serve import argument_help
from exacta.config.cluster import ClusterOptions
from exacta.config.configuration import Configuration
from exacta.config.doors import DoorOptions
from exacta.config.groups import GroupOptions
from exacta.config.kafka import KafkaOptions
from exacta.config.kafka_keys import KAFKA_KEYS, VALUES_NOT_KEPT, KafkaKey, KeyClass
from exacta.config.log import LogOptions
from exacta.config.logins import LoginOptions
from exacta.config.network import NetworkOptions
from exacta.config.options import Option, options
from exacta.config.pulsar import PulsarOptions
from exacta.config.pulsar_logins import PulsarLoginOptions
from exacta.config.ranges import INT_MAX, LONG_MAX, LONG_MIN
from exacta.config.security import SecurityOptions
from exacta.config.tls import TlsOptions
from exacta.config.topic import TOPIC_CONFIGS, ConfigType, TopicConfig
from exacta.config.topic_values import OF_THE_BROKER
from exacta.config.transactions import TransactionOptions
from exacta.config.web import WebOptions
from exacta.server.configuration_file import DATA, ENDPOINTS, LOG
from exacta.server.listeners import DEFAULT_HOST, DEFAULT_PORT
from exacta.server.log_lines import DEFAULT_FORMAT, DEFAULT_LEVEL

ROOMS: dict[str, type] = {
    "Topics, segments, retention": LogOptions,
    "Transactions and producers": TransactionOptions,
    "Consumer groups": GroupOptions,
    "Connections and memory": NetworkOptions,
    "Who may come in": DoorOptions,
    "TLS": TlsOptions,
    "Access rules": SecurityOptions,
    "Logins": LoginOptions,
    "Logins of Pulsar clients": PulsarLoginOptions,
    "Kafka's clients": KafkaOptions,
    "Pulsar's clients": PulsarOptions,
    "HTTP": WebOptions,
    "Several brokers": ClusterOptions,
}
"""The headings of the options of the broker -> where they lie."""

_HEAD = """# Configuration

All options of `exacta serve` and of topics. [Fifteen that matter](../how-to/options.md) are enough for most servers.
[Configure a server](../how-to/configure.md) says how to set them, also by Kafka's `server.properties`.

Names are Kafka's where Kafka has one. An underscore counts as a dot: `num_partitions` is `num.partitions`."""

_PLACES = """## Addresses, the data directory and the log

`exacta serve` has these on its command line, and a file of `--config` may have them."""

_OPTIONS = """## Options of the broker

`exacta serve --set KEY=VALUE`, a file of `--config`, and `exacta.Broker(...)` set them. They are read at the start. A
*dynamic* option can be [changed while the broker runs](../how-to/configure.md#change-options-while-the-broker-runs).
The last column also names the configuration by which a topic sets a value of its own. *Kafka's* are the options that
Kafka has by the same name, and "also" names further Kafka keys that set the option."""

_TOPICS = """## Configurations of topics

All of them are dynamic: CreateTopics and IncrementalAlterConfigs set them while the broker runs. Some have no effect,
and exist because tools and frameworks set them; the last column says so."""

_KAFKAS = """## Kafka's keys

A file of `--config` may be a `server.properties` of Apache Kafka as it is. Besides the options above that are Kafka's,
these of its keys have a meaning here. All others are unknown here and have no effect: `exacta serve` names them in one
line, and `exacta config check` in one line each. A key that is almost a known one is taken for a spelling mistake, and
refused. A TOML file is written for Exacta, so every unknown key in it is refused."""

_OTHER_NAMES = "### Served under another name"

_PROMISES = """### Promises that are not kept

`exacta serve` starts, and warns of each of these keys by name, unless it has one of the values in the last column."""


def reference() -> str:
    """Return the page."""
    parts = [_HEAD, _PLACES, _places(), _OPTIONS]
    for title, room in ROOMS.items():
        names = [each.name.replace("_", ".") for each in fields(room)]
        parts += [f"### {title}", _options(options()[name] for name in names)]
    parts += [_TOPICS, _topics(), _KAFKAS, _OTHER_NAMES, _served(), _PROMISES, _promises()]
    return "\n\n".join(parts) + "\n"


# --- the tables ---


def _places() -> str:
    of_kafka = {"listen": "`listeners`", "advertise": "`advertised.listeners`", "data": "`log.dirs`, `log.dir`"}
    defaults = {"listen": f"`{DEFAULT_HOST}:{DEFAULT_PORT}`", "data": f"`./{DEFAULT_DATA}`"}
    defaults |= {"log.level": f"`{DEFAULT_LEVEL}`", "log.format": f"`{DEFAULT_FORMAT}`"}
    rows = []
    for name in (DATA, *LOG, *ENDPOINTS):
        option = f"--{name.replace('.', '-')}"
        about = argument_help(option)
        if name in defaults:
            about = re.sub(r" \(default: .*\)", "", about)
        rows.append([f"`{name}`", about, f"`{option}`", defaults.get(name, "–"), of_kafka.get(name, "–")])
    return _table(("Key", "What it is", "Command line", "Default", "Kafka"), rows)


def _options(these: Iterable[Option]) -> str:
    rows = [[f"`{each.name}`", each.description, _value(each.default), _notes(each)] for each in these]
    return _table(("Option", "What it does", "Default", "Values"), rows)


def _notes(option: Option) -> str:
    """Return what values an option may have, and when and by what names it is set."""
    topics = {broker: topic for topic, broker in OF_THE_BROKER.items()}
    values = " ".join(filter(None, (_range(option), option.unit))) or _TYPES[option.type]
    topic = [f"topics: `{topics[option.name]}`"] if option.name in topics else []
    return "; ".join([values, *_dynamic(option), *topic, *_of_kafka(option)])


def _dynamic(option: Option) -> list[str]:
    if not option.dynamic:
        return []
    return ["dynamic" if option.lowest_at_run_time == option.lowest else f"dynamic from {option.lowest_at_run_time} on"]


def _topics() -> str:
    rows = [
        [
            f"`{name}`",
            config.description,
            f"`{OF_THE_BROKER[name]}` of the broker" if name in OF_THE_BROKER else _value(config.default),
            _range_of_topics(config) or _TOPIC_TYPES[config.type],
        ]
        for name, config in TOPIC_CONFIGS.items()
    ]
    return _table(("Configuration", "What it does", "Default", "Values"), rows)


def _of(key_class: KeyClass) -> list[KafkaKey]:
    return [each for each in KAFKA_KEYS.values() if each.key_class is key_class]


def _served() -> str:
    rows = [[f"`{key.name}`", key.reason] for key in _of(KeyClass.SERVED) if key.name not in options()]
    return _table(("Key", "What it sets"), rows)


def _promises() -> str:
    rows = []
    for key in _of(KeyClass.PROMISE):
        kept = ", ".join(f"`{value}`" if value else "empty" for value in key.kept)
        rows.append([f"`{key.name}`", f"{key.reason[0].upper()}{key.reason[1:]}.", kept or "–"])
    for (name, value), reason in VALUES_NOT_KEPT.items():
        rows.append([f"`{name}`", f"{reason[0].upper()}{reason[1:]}.", f"all but `{value}`"])
    return _table(("Key", "Why", "Without a warning"), rows)


# --- cells ---


def _of_kafka(option: Option) -> list[str]:
    """Return whether an option is Kafka's, and by which other Kafka keys it is set."""
    same = ["Kafka's"] if option.name in KAFKA_KEYS else []
    others = [f"`{key.name}`" for key in _of(KeyClass.SERVED) if f"`{option.name}`" in key.reason]
    return same + ([f"also {', '.join(others)}"] if others else [])


_TYPES = {bool: "true or false", str: "text"}
_TOPIC_TYPES = {ConfigType.BOOLEAN: "true or false", ConfigType.STRING: "text", ConfigType.LIST: "list"}
_NAMED = {INT_MAX: "2³¹ − 1", LONG_MAX: "2⁶³ − 1", float(LONG_MAX): "2⁶³ − 1", LONG_MIN: "−2⁶³"}
_LEAST_GROUPED = 10_000


def _value(value: int | bool | str) -> str:
    if value == "":
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text}`"


def _number(value: float) -> str:
    if value in _NAMED:
        return _NAMED[value]
    return f"{value:,}" if abs(value) >= _LEAST_GROUPED else f"{value:g}"


def _range(option: Option) -> str:
    if option.lowest is not None and option.highest is not None:
        return f"{_number(option.lowest)} to {_number(option.highest)}"
    return ", ".join(f"`{choice}`" for choice in option.choices)


def _range_of_topics(config: TopicConfig) -> str:
    if config.type in (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE):
        also = "" if config.also is None else f", or {_number(config.also)}"
        return f"{_number(config.lowest)} to {_number(config.highest)}{also}"
    return ", ".join(f"`{choice}`" if choice else "empty" for choice in config.choices)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("  |", " |") for cells in lines)


_UNLISTED = Configuration.__dataclass_fields__.keys() - {each.name for room in ROOMS.values() for each in fields(room)}
assert not _UNLISTED, f"no heading has the options {sorted(_UNLISTED)}"

if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201
