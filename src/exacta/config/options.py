"""The broker's options by name: their types, their ranges, and how values are parsed. Each option is honoured.

Names are Kafka's where Kafka has one. `Configuration` is the single table, and lies by room in this folder: an option's
name is its field's name with dots (`num_partitions` is `num.partitions`). Values come as text from `--set`, as text or
TOML from `--config` (`exacta.server.configuration_file`), or as Python values from `exacta.Broker`. A wrong one raises
a `ConfigurationError` of one line.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, get_args, get_type_hints

from msgspec import Struct

from exacta.config import cluster, pulsar_logins
from exacta.config.configuration import Configuration
from exacta.config.doors import DoorOptions
from exacta.config.errors import ConfigurationError
from exacta.config.logins import LoginOptions
from exacta.config.pulsar_logins import PulsarLoginOptions
from exacta.config.security import SecurityOptions, require_security
from exacta.config.tls import TlsOptions
from exacta.core.values.secret import HIDDEN
from exacta.spelling import did_you_mean

logger = logging.getLogger("exacta.config")


class Option(Struct, frozen=True):
    """One option. `lowest` and `highest` are inclusive and None but for a number; a text matches `pattern`.

    A text without a pattern may be anything that the part that it is for can read.
    """

    name: str
    field: str
    type: type
    default: int | bool | str
    lowest: int | None
    highest: int | None
    description: str
    pattern: str = ""
    dynamic: bool = False
    """True if the option's value can be changed while the broker runs."""
    lowest_at_run_time: int | None = None
    """The lowest value that a number can be given while the broker runs; None: `lowest`."""
    is_security: bool = False
    """True if who may do what hangs on the option: it is never empty where it is given, and never dynamic."""
    is_secret: bool = False
    """True if nobody is shown the value."""

    @property
    def unit(self) -> str:
        """Return the unit of a number's option, or "" if it is a number of things; names say it, as Kafka's do."""
        if self.type is not int:
            return ""
        if self.name in _SIZES:
            return "bytes"
        words = self.name.split(".")
        return next((unit for word, unit in _UNITS.items() if word in words), "")

    @property
    def choices(self) -> list[str]:
        """Return the texts that the option can be, if its pattern is just these; else nothing."""
        return self.pattern.split("|") if re.fullmatch(r"\w+(\|\w+)+", self.pattern) else []


DYNAMIC = frozenset(
    {
        "accept.any.replication.factor",
        "auto.create.topics.enable",
        "fetch.max.bytes",
        "group.consumer.heartbeat.interval.ms",
        "list.offsets.visible.end",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.ms",
        "max.connections",
        "max.connections.per.ip",
        "message.max.bytes",
        "pulsar.backlog.quota.bytes",
        "pulsar.backlog.quota.ms",
        "pulsar.backlog.quota.policy",
        "pulsar.message.ttl.ms",
        "pulsar.transaction.repeat",
    }
)
"""The options that can be changed while the broker runs: code that goes by one of them looks it up each time.

The limits of the core are none of them: what is open has been accepted under them (`core/values/limits.py`).
"""

LOWEST_AT_RUN_TIME = {
    # One client has a connection to the broker, one to its coordinator and one that it begins with; so has a command.
    "max.connections": 10,
    "max.connections.per.ip": 10,
    # At a millisecond, a thousand members of a group would send a million requests a second.
    "group.consumer.heartbeat.interval.ms": 1000,
}
"""The lowest values that are accepted while the broker runs: below them hardly anybody could take them back.

What is set at run time is durable, and counts before the command line. A start may have lower values.
"""

SECURITY = frozenset(
    each.name.replace("_", ".")
    for room in (DoorOptions, LoginOptions, PulsarLoginOptions, SecurityOptions, TlsOptions)
    for each in fields(room)
)
"""The options that say who may do what. A start decides about them, and nothing that is set while the broker runs."""
OF_LISTENERS = re.compile(r"(advertised\.)?listeners|listener\.(security\.protocol\.map|name\..+)", re.IGNORECASE)
"""The keys that say which doors there are, and what holds at one of them (`listener.name.NAME.ssl.client.auth`)."""


def is_of_security(name: str) -> bool:
    """Return whether who may do what hangs on an option, or on a listener's key, which is none of the options."""
    return name in SECURITY or OF_LISTENERS.fullmatch(name) is not None


class SecretText(str):
    """The value of an option that nobody is shown: its repr hides it, and with it the repr of all that holds it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the text."""
        return HIDDEN


_UNITS = {"ms": "ms", "bytes": "bytes", "minutes": "minutes"}
_SIZES = frozenset(["pulsar.max.message.size"])
"""Options of Pulsar's whose names do not say that they are bytes."""


@cache
def options() -> dict[str, Option]:
    """Return all options by name."""
    defaults = Configuration()
    found = {}
    for field, hint in get_type_hints(Configuration, include_extras=True).items():
        option_type, meta = get_args(hint)
        name = field.replace("_", ".")
        found[name] = Option(
            name,
            field,
            option_type,
            getattr(defaults, field),
            meta.ge,
            meta.le,
            meta.description or "",
            meta.pattern or "",
            dynamic=name in DYNAMIC,
            lowest_at_run_time=LOWEST_AT_RUN_TIME.get(name, meta.ge) if name in DYNAMIC else None,
            is_security=name in SECURITY,
            is_secret=bool((meta.extra or {}).get("secret")),
        )
    return found


def configure(settings: Mapping[str, Any]) -> Configuration:
    """Return the configuration with these settings; names may have dots or underscores.

    Raises ConfigurationError.
    """
    values: dict[str, Any] = {}
    for given, value in settings.items():
        if (gone := passed_over(given.replace("_", "."))) is not None:
            logger.warning(gone)
            continue
        option = _find(given)
        values[option.field] = parse_value(option, value)
    configuration = Configuration(**cluster.settle(values))
    require_order(configuration)
    require_security(configuration)
    pulsar_logins.require_logins(configuration)
    cluster.require_one_log(configuration, syncs_every_write=configuration.transaction_sync_every_write)
    return configuration


def require_order(configuration: Configuration) -> None:
    """Check what options say together. Raises ConfigurationError."""
    _require_order(configuration, "group.min.session.timeout.ms", "group.max.session.timeout.ms")
    _require_order(configuration, "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms")
    _require_order(configuration, "message.max.bytes", "socket.request.max.bytes")


def changed(configuration: Configuration) -> dict[str, int | bool | str]:
    """Return the options that have other values than their defaults; secrets are hidden."""
    values = {each.name: getattr(configuration, each.field) for each in options().values()}
    return {
        name: HIDDEN if options()[name].is_secret else value
        for name, value in values.items()
        if value != options()[name].default
    }


_ELSEWHERE = {
    "listeners": "--listen HOST:PORT",
    "host.name": "--listen HOST:PORT",
    "port": "--listen HOST:PORT",
    "advertised.listeners": "--advertise HOST:PORT",
    "advertised.host.name": "--advertise HOST:PORT",
    "advertised.port": "--advertise HOST:PORT",
    "log.dirs": "--data DIR",
    "log.dir": "--data DIR",
}
"""Options of Kafka's configuration that `exacta serve` has on its command line."""


_RENAMED = {"pulsar.tls.certificate": "tlsCertificateFilePath", "pulsar.tls.key": "tlsKeyFilePath"}
"""Options by the names that they had once."""

_PASSED_OVER = {
    "web.allow.anonymous": "web.allow.anonymous has no effect any more: allow.anonymous=WEB lets everybody in by HTTP"
}
"""Options that are gone, and what is said of them."""


def _find(given: str) -> Option:
    name = given.replace("_", ".")
    option = options().get(name)
    if option is None:
        if name in _ELSEWHERE:
            raise ConfigurationError(f"unknown option {given}: give {_ELSEWHERE[name]} to `exacta serve`")
        _refuse_kafkas(given, name)
        meant = did_you_mean(name, options())
        raise ConfigurationError(f"unknown option {given}" + (f"; {meant}" if meant else ""))
    return option


def passed_over(name: str) -> str | None:
    """Return what is said of an option that is gone and harms nobody; None for any other name.

    Raises ConfigurationError for a name that an option had once, and for one of Apache Pulsar's that is not served.
    """
    if name in _RENAMED:
        raise ConfigurationError(f"{name} is called {_RENAMED[name]} now")
    if name in pulsar_logins.REFUSED:
        raise ConfigurationError(
            f"{name} is an option of Apache Pulsar that is not here: {pulsar_logins.REFUSED[name]}"
        )
    return _PASSED_OVER.get(name)


def _refuse_kafkas(given: str, name: str) -> None:
    """Raise ConfigurationError, with the reason, for a Kafka key that promises what is not done here."""
    from exacta.config.kafka_keys import KeyClass, kafka_key  # a server that has no use for the table does not load it

    key = kafka_key(name)
    if key is not None and key.key_class is not KeyClass.SERVED:
        raise ConfigurationError(f"{given} is a Kafka option that has no effect here: {key.reason.rstrip('.')}")


def _require_something(option: Option, value: Any) -> None:
    """Raise ConfigurationError for a security option that is given without a value: it would leave a door open."""
    if option.is_security and not str(value).strip():
        raise ConfigurationError(f"{option.name} is empty: give it a value, or leave it out")


_TRUTHS = {"true": True, "false": False}


def parse_value(option: Option, value: Any) -> int | bool | str:
    """Return a value as the option's type. Raises ConfigurationError for one that the option cannot have."""
    _require_something(option, value)
    if option.is_secret:
        return SecretText(str(value).strip())
    if option.type is str and not option.pattern:
        return str(value).strip()
    if option.type is str:
        text = "".join(str(value).split())
        if not re.fullmatch(option.pattern, text):
            raise ConfigurationError(f"{option.name} cannot be {value!r}{_fitting(option)}")
        return text
    if option.type is bool:
        if isinstance(value, bool):
            return value
        truth = _TRUTHS.get(str(value).strip().lower())
        if truth is None:
            raise ConfigurationError(f"{option.name} must be true or false, not {value!r}")
        return truth
    assert option.lowest is not None
    assert option.highest is not None
    try:
        if isinstance(value, bool | float):
            raise ValueError
        number = int(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{option.name} must be a whole number, not {value!r}") from None
    if not option.lowest <= number <= option.highest:
        raise ConfigurationError(f"{option.name} must be between {option.lowest} and {option.highest}, not {number}")
    return number


def parse_run_time_value(option: Option, value: Any) -> int | bool | str:
    """Return a value that is set while the broker runs, as the option's type. Raises ConfigurationError."""
    parsed, lowest = parse_value(option, value), option.lowest_at_run_time
    if lowest is not None and parsed < lowest:  # type: ignore[operator]  # the option's type is a number
        raise ConfigurationError(
            f"{option.name} must be at least {lowest} while the broker runs, not {parsed}: it would be durable, and "
            "nobody might be able to take it back"
        )
    return parsed


def _fitting(option: Option) -> str:
    """Return what the value of a text's option may be: its choices where the pattern is just these, else an example."""
    if option.choices:
        return f": it is {' or '.join(option.choices)}"
    return f": it is like {option.default}" if option.default else ""


def _require_order(configuration: Configuration, low: str, high: str) -> None:
    lower, higher = (getattr(configuration, options()[name].field) for name in (low, high))
    if lower > higher:
        raise ConfigurationError(f"{low} ({lower}) must not be above {high} ({higher})")


def parse_setting(text: str) -> tuple[str, str]:
    """Split `key=value`. Raises ConfigurationError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"expected key=value, not {text!r}")
    return key.strip(), value.strip()
