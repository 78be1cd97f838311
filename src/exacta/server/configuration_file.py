"""The file of `exacta serve --config`: a TOML file such as `exacta.toml`, or one like Kafka's `server.properties`.

A file whose name ends with `.toml` is read as TOML, every other one as `key=value` lines. Both have the same keys: the
options of the broker; `data`, `log.level`, `log.format` and the endpoints (`listen`, `pulsar.listen` and so on), which
are named like options of the command line; and Kafka's keys (`exacta.config.kafka_keys`). An underscore counts as a
dot, since TOML would take dots for tables, in which `max.connections` and `max.connections.per.ip` cannot both stand.

A key that is not known is a mistake in a TOML file, which is written for Exacta. Kafka's file has many keys that mean
nothing here, and each release of Kafka has others. There a key that is not known has no effect, unless it is a known
one misspelt, or begins as only Exacta's options do.

Every mistake of a file is found at once, so that `exacta config check` can show all of them. No value is taken from a
file that has one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from exacta.config.errors import ConfigurationError
from exacta.config.kafka_keys import KAFKA_KEYS, VALUES_NOT_KEPT, KeyClass, kafka_key
from exacta.config.options import SECURITY, Option, configure, options, parse_value, passed_over
from exacta.front.doors import Door, Endpoint, TransportSecurity
from exacta.properties import entries
from exacta.server.door_options import ENDPOINTS as ENDPOINT_OPTIONS
from exacta.server.kafka_listeners import kafka_listeners, protocol_of
from exacta.server.listeners import parse_endpoint
from exacta.server.log_lines import FORMATS, LEVELS
from exacta.spelling import did_you_mean, is_misspelt

TOML = ".toml"
DATA = "data"
LOG = {"log.level": LEVELS, "log.format": FORMATS}
"""The keys of the log, and what each may be."""
ENDPOINTS = {name.replace("_", "."): name for name in ENDPOINT_OPTIONS}
"""The keys of endpoints -> their names in `door_options.ENDPOINTS`."""
_OURS_ALONE = ("allow.", "authorizer.", "pulsar.", "super.", "web.")
"""The beginnings of options that no other Kafka key has."""
_OF_ONE_LISTENER = "listener.name."
MECHANISMS = "sasl.enabled.mechanisms"
"""The one option beside those of TLS that a listener may have for itself."""


class ConfigurationFile(Struct, frozen=True, kw_only=True):
    """The content of a file. If it has `mistakes`, nothing else of it counts."""

    path: Path
    options: dict[str, int | bool | str]
    """The options of the broker that it sets, by name."""
    endpoints: dict[str, Endpoint]
    """The endpoints that it sets, by their names in `door_options.ENDPOINTS`."""
    kafka_doors: tuple[Door, ...]
    """The doors for Kafka's clients, where Kafka's `listeners` names more than `listen` can; they stand for it."""
    data: Path | None
    log: dict[str, str]
    """The keys of `LOG` that it sets."""
    passed_over: tuple[str, ...]
    """The unknown keys of a file like a server.properties."""
    not_kept: tuple[str, ...]
    """One line for each Kafka key that promises what is not done here."""
    mistakes: tuple[str, ...]
    """One line for each mistake, with its place."""

    def notes(self) -> list[str]:
        """Return what a reader of the log should know of the file, in lines: promises that are not kept come first."""
        notes = [f"{self.path}: {each}" for each in self.not_kept]
        if self.passed_over:
            count = len(self.passed_over)
            keys = f"{count} keys are unknown here, and have" if count > 1 else "a key is unknown here, and has"
            notes.append(f"{self.path}: {keys} no effect: {', '.join(self.passed_over)}")
        return notes


def read_configuration_file(path: Path) -> ConfigurationFile:
    """Read a file. Raises ConfigurationError where it has no entries to judge: it cannot be read, or is no TOML."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"cannot read {path}: {reason}") from error
    reader = _Reader(path)
    if path.suffix == TOML:
        import tomllib  # it takes longer to load than all the rest of this room

        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"{path} is no TOML: {error}") from error
        for key, value in _flat(document):
            reader.take(str(path), key, value)
    else:
        for number, key, value in entries(text):
            reader.take(f"{path}:{number}", key, value)
    return reader.finished()


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _text(value: object) -> str:
    """Return a value of either form as the text that stands in Kafka's file."""
    if isinstance(value, list):
        return ",".join(_text(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


class _Reader:
    """Takes the entries of a file one by one, then settles what several of them say together."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._options: dict[str, int | bool | str] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._kafka_doors: tuple[Door, ...] = ()
        self._data: Path | None = None
        self._log: dict[str, str] = {}
        self._own: dict[str, dict[str, int | bool | str]] = {}
        """The options that listeners have for themselves, by the listener's name and the option's field."""
        self._kafka: dict[str, str] = {}
        """Kafka's keys that are served under other names than their own."""
        self._passed_over: dict[str, None] = {}
        self._not_kept: dict[str, str] = {}
        self._mistakes: list[str] = []

    def take(self, place: str, key: str, value: object) -> None:
        """Take an entry, or note what is wrong with it; a later entry of the same name wins."""
        try:
            if value is None:
                raise ConfigurationError(f"expected key=value, not {key!r}")
            self._take(key, value)
        except ConfigurationError as error:
            self._mistakes.append(f"{place}: {error}")

    def _take(self, key: str, value: object) -> None:
        name = key if kafka_key(key) else key.replace("_", ".")
        gone = passed_over(name)
        option, kafkas, text = options().get(name), kafka_key(name), _text(value)
        if gone is not None:
            self._not_kept[name] = gone
        elif (beyond := VALUES_NOT_KEPT.get((name, text))) is not None:
            self._options.pop(name, None)
            self._not_kept[name] = f"{name}={text} is not kept: {beyond}"
        elif option is not None:
            self._not_kept.pop(name, None)
            self._options[name] = parse_value(option, text if isinstance(value, list) else value)
        elif name == DATA:
            self._data = _directory(name, text)
        elif name in LOG:
            if text not in LOG[name]:
                raise ConfigurationError(f"{name} must be {' or '.join(LOG[name])}, not {text!r}")
            self._log[name] = text
        elif name in ENDPOINTS:
            self._endpoints[ENDPOINTS[name]] = _endpoint(name, text)
        elif (of_listener := listener_option(name)) is not None:
            listener, option = of_listener
            self._own.setdefault(listener, {})[option.field] = parse_value(option, text)
        elif kafkas is None:
            self._pass_over(key, name)
        elif name.startswith(_OF_ONE_LISTENER):
            _require_no_security(name)
            self._not_kept[name] = f"{name} is not kept: {kafkas.reason}"  # its value may be a password
        elif kafkas.key_class is KeyClass.SERVED:
            self._kafka[name] = text
        elif "".join(text.split()).lower() in kafkas.kept:
            self._not_kept.pop(name, None)
        else:
            self._not_kept[name] = f"{name}={text} is not kept: {kafkas.reason}"

    def _pass_over(self, key: str, name: str) -> None:
        """Note a key that is not known. Raises ConfigurationError where it cannot be one of Kafka's."""
        known = [*options(), DATA, *LOG, *ENDPOINTS, *KAFKA_KEYS]
        is_ours = self._path.suffix == TOML or name.startswith(_OURS_ALONE)
        if is_ours or any(is_misspelt(name.lower(), each.lower()) for each in known):
            meant = did_you_mean(name, known)
            raise ConfigurationError(f"unknown option {key}" + (f"; {meant}" if meant else ""))
        self._passed_over[key] = None

    def finished(self) -> ConfigurationFile:
        """Return the file."""
        times = (self._settle_retention, self._settle_roll)
        for settle in (self._settle_listeners, self._settle_data, *times, self._settle_node, self._try):
            try:
                settle()
            except ConfigurationError as error:
                self._mistakes.append(f"{self._path}: {error}")
        return ConfigurationFile(
            path=self._path,
            options=self._options,
            endpoints=self._endpoints,
            kafka_doors=self._kafka_doors,
            data=self._data,
            log=self._log,
            passed_over=tuple(self._passed_over),
            not_kept=tuple(self._not_kept.values()),
            mistakes=tuple(self._mistakes),
        )

    def _settle_listeners(self) -> None:
        found = kafka_listeners(self._kafka, self._own)
        listen, advertise = None, found.advertise
        # One listener with Kafka's default name and security is what `listen` names.
        is_more = any(each.name != "PLAINTEXT" or protocol_of(each) != "PLAINTEXT" for each in found.doors)
        if found.doors:
            listen, advertise = found.doors[0].endpoint, found.doors[0].advertised
        for ours, kafkas, endpoint in (
            ("listen", "listeners", listen),
            ("advertise", "advertised.listeners", advertise),
        ):
            if endpoint is not None and ours in self._endpoints:
                raise ConfigurationError(f"{ours} and Kafka's {kafkas} say the same: give one of them")
            if endpoint is not None and not is_more:
                self._endpoints[ours] = endpoint
        if is_more:
            self._kafka_doors = found.doors

    def _settle_data(self) -> None:
        given = {name: self._kafka[name] for name in ("log.dirs", "log.dir") if name in self._kafka}
        for name, text in given.items():  # as in Kafka, log.dirs wins
            if self._data is not None:
                raise ConfigurationError(f"{DATA} and Kafka's {name} say the same: give one of them")
            if "," in text:
                raise ConfigurationError(f"{name} must be one directory, not {text}")
            self._data = _directory(name, text)
            return

    def _settle_retention(self) -> None:
        option = options()["log.retention.ms"]
        for name, unit_ms in (("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)):
            if name in self._kafka and option.name not in self._options:
                number = _whole_number(name, self._kafka[name])
                if number == 0:
                    raise ConfigurationError(f"{name} must be at least 1, or -1 for ever")
                self._options[option.name] = parse_value(option, number * unit_ms if number > 0 else -1)

    def _settle_roll(self) -> None:
        option, name = options()["log.roll.ms"], "log.roll.hours"
        if name in self._kafka and option.name not in self._options:
            hours = _whole_number(name, self._kafka[name])
            if hours < 1:
                raise ConfigurationError(f"{name} must be at least 1")
            self._options[option.name] = parse_value(option, hours * 3_600_000)

    def _settle_node(self) -> None:
        option = options()["node.id"]
        # Kafka's default, -1, asks for an id that the broker chooses.
        if self._kafka.get("broker.id", "-1") != "-1" and option.name not in self._options:
            self._options[option.name] = parse_value(option, _whole_number("broker.id", self._kafka["broker.id"]))

    def _try(self) -> None:
        """Find what options say together that cannot be."""
        configuration = configure(self._options)
        for door in self._kafka_doors:
            if door.security is TransportSecurity.TLS:
                from exacta.security.tls import principal_rules, tls_settings  # RE2 is long to load

                settings = tls_settings(replace(configuration, **door.options), door.front)  # type: ignore[arg-type]
                principal_rules(settings)


def listener_option(name: str) -> tuple[str, Option] | None:
    """Return the listener and the option that `listener.name.NAME.OPTION` is about; None: it is no such key."""
    ends = (name.find(f".{each}", len(_OF_ONE_LISTENER)) for each in ("ssl.", MECHANISMS))
    beginning = next((each for each in ends if each >= 0), -1)
    if not name.startswith(_OF_ONE_LISTENER) or beginning < 0:
        return None
    option = options().get(name[beginning + 1 :])
    return None if option is None else (name[len(_OF_ONE_LISTENER) : beginning].upper(), option)


def _require_no_security(name: str) -> None:
    """Raise ConfigurationError for an option of one listener that would be more open than the operator thinks."""
    for each in sorted(SECURITY):
        words = name.split(".")[-1 - each.count(".") :]
        if ".".join(words) == each:
            raise ConfigurationError(f"{name}: {each} is set for all listeners, and never for one alone")
        if is_misspelt(".".join(words), each):
            raise ConfigurationError(f"unknown option {name}; did you mean {each}?")


def _whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"{name} must be a whole number, not {text!r}") from None


def _directory(name: str, text: str) -> Path:
    if not text:
        raise ConfigurationError(f"{name} must be a directory, not an empty name")
    return Path(text)


def _endpoint(name: str, text: str) -> Endpoint:
    try:
        return parse_endpoint(text)
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from error
