"""`exacta config …`: a server's file, seen without a server; settings of a cluster; files for who runs a server.

The settings are in `settings.py`. The files lie in `packaging/` and `monitoring/` of the repository, and the wheel
brings them along (`pyproject.toml`).
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

import exacta
from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, fail
from exacta.cli.lines import counted, say
from exacta.cli.settings import describe, set_them, unset_them

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exacta.front.doors import Endpoint
    from exacta.server.configuration_file import ConfigurationFile

_HELP = "See and change settings of a cluster; check the file of a server; print the files for running one."
_CLUSTER = "Settings of topics, brokers and groups: on an Exacta, or any Kafka"
_SERVER = "The configuration file of a server"
_FILES = "Files for running a server"

config = typer.Typer(help=_HELP, no_args_is_help=True)

Value: TypeAlias = int | bool | str

_FILE_HELP = "A TOML file (*.toml), or one like Kafka's server.properties: what `exacta serve --config` takes."


@config.callback()
def root() -> None:
    """See and change settings of a cluster; check the file of a server; print the files for running one."""


for _name, _command in (("describe", describe), ("set", set_them), ("unset", unset_them)):
    config.command(_name, rich_help_panel=_CLUSTER)(_command)


@config.command(rich_help_panel=_SERVER)
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP)]) -> None:
    """Say what is wrong with a file, which promises of its keys are not kept, and which keys have no effect.

    The certificates and keys that the file names are read, too. No port is bound, and no address is asked.

    Exit code 0 if a server would start with the file, 1 if the file has mistakes, 2 if it cannot be read.
    """
    found = _read(file)
    for mistake in found.mistakes:
        say(f"mistake: {mistake}")
    for line in found.not_kept:
        say(f"warning: {line}")
    for name in found.passed_over:
        say(f"no effect: {name}: unknown here")
    if found.mistakes:
        fail(f"{file} has {counted(len(found.mistakes), 'mistake')}", EXIT_NO)
    if (reason := _reason_not_to_start(found)) is not None:
        fail(f"{file}: {reason}", EXIT_NO)
    say(f"{file} can be served")


@config.command(rich_help_panel=_SERVER)
def show(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help=_FILE_HELP, show_default=False)] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Show only what differs from its default.")] = False,
) -> None:
    """Show every option with the value that a server would have with this file, or without any.

    What is printed is a TOML file that says the same, but for secrets.

    Exit code 0, 1 if the file has mistakes, 2 if it cannot be read.
    """
    from exacta.config.options import SECURITY, SecretText

    found = None if file is None else _read(file)
    if found is not None and found.mistakes:
        fail(found.mistakes[0], EXIT_NO)
    defaults = _defaults()
    values = defaults | ({} if found is None else _set_by(found))
    if "listeners" in values:  # they stand for it, and a file may not have both
        del values["listen"]
    for name, value in values.items():
        line = f"{name.replace('.', '_')} = {_toml(value)}"
        if isinstance(value, SecretText):
            say(f"# {name.replace('.', '_')} is set, and a secret")
        elif name in SECURITY and value == "":
            if not changed:
                say(f"# {name.replace('.', '_')} is not set")
        elif name not in defaults:
            say(line)
        elif value != defaults[name]:
            say(f"{line}  # default: {_toml(defaults[name])}")
        elif not changed:
            say(line)


@config.command(rich_help_panel=_SERVER)
def reference() -> None:
    """Print the reference of all options, as it stands in the documentation (Markdown)."""
    from exacta.cli.configuration_reference import reference

    typer.echo(reference(), nl=False)


@config.command(rich_help_panel=_FILES)
def unit() -> None:
    """Print the unit of a service for systemd."""
    _print_file("packaging/systemd/exacta.service")


@config.command(rich_help_panel=_FILES)
def sysusers() -> None:
    """Print the user of that service, for systemd-sysusers."""
    _print_file("packaging/systemd/exacta.sysusers.conf")


@config.command(rich_help_panel=_FILES)
def example() -> None:
    """Print the configuration file of that service (TOML)."""
    _print_file("packaging/exacta.toml")


@config.command(rich_help_panel=_FILES)
def alerts() -> None:
    """Print alert rules for Prometheus."""
    _print_file("monitoring/alerts.yml")


@config.command(rich_help_panel=_FILES)
def dashboard() -> None:
    """Print a dashboard for Grafana."""
    _print_file("monitoring/grafana-dashboard.json")


def _print_file(name: str) -> None:
    package = Path(exacta.__file__).parent
    brought_along = package / "files" / name
    file = brought_along if brought_along.exists() else package.parents[1] / name  # where the source tree is used
    typer.echo(file.read_text(encoding="utf-8"), nl=False)


def _read(file: Path) -> "ConfigurationFile":
    from exacta.config.errors import ConfigurationError
    from exacta.server.configuration_file import read_configuration_file

    try:
        return read_configuration_file(file)
    except ConfigurationError as error:
        fail(str(error), EXIT_USAGE)


def _reason_not_to_start(found: "ConfigurationFile") -> str | None:
    """Return why a server would not start with a file that has no mistakes; None: it would."""
    from exacta.cli.serve import doors_at
    from exacta.config.errors import ConfigurationError
    from exacta.config.options import configure
    from exacta.server.cluster.addresses import addresses_of
    from exacta.server.errors import ServerError
    from exacta.server.fronts import FRONTS
    from exacta.server.reception import Reception

    try:
        doors, configuration = doors_at(found.endpoints, found.kafka_doors), configure(found.options)
        Reception(doors, FRONTS, configuration).check()
        if configuration.postgres:
            addresses_of(doors)
    except (ConfigurationError, ServerError) as error:
        return str(error)
    return None


def _defaults() -> dict[str, Value]:
    """Return what a server has without a file, by the names of the keys; most addresses are nowhere."""
    from exacta.cli.data_directory import DEFAULT_DATA
    from exacta.config.options import options
    from exacta.server.configuration_file import DATA
    from exacta.server.listeners import DEFAULT_HOST, DEFAULT_PORT
    from exacta.server.log_lines import DEFAULT_FORMAT, DEFAULT_LEVEL

    places: dict[str, Value] = {DATA: str(DEFAULT_DATA), "listen": f"{DEFAULT_HOST}:{DEFAULT_PORT}"}
    places |= {"log.level": DEFAULT_LEVEL, "log.format": DEFAULT_FORMAT}
    return places | {name: option.default for name, option in options().items()}


def _set_by(found: "ConfigurationFile") -> dict[str, Value]:
    """Return what the file sets, by the names of the keys."""
    from exacta.server.configuration_file import DATA, ENDPOINTS
    from exacta.server.kafka_listeners import protocol_of

    names = {field: name for name, field in ENDPOINTS.items()}
    places: dict[str, Value] = {names[field]: str(endpoint) for field, endpoint in found.endpoints.items()}
    if found.data is not None:
        places[DATA] = str(found.data)
    if found.kafka_doors:
        places["listeners"] = _listeners((each.name, each.endpoint) for each in found.kafka_doors)
        told = [(each.name, each.advertised) for each in found.kafka_doors if each.advertised is not None]
        if told:
            places["advertised.listeners"] = _listeners(told)
        protocols = ",".join(f"{each.name}:{protocol_of(each)}" for each in found.kafka_doors)
        places["listener.security.protocol.map"] = protocols
        for each in found.kafka_doors:
            for field, value in each.options.items():
                places[f"listener.name.{each.name.lower()}.{field.replace('_', '.')}"] = value
    return places | found.log | found.options


def _listeners(named: "Iterable[tuple[str, Endpoint]]") -> str:
    return ",".join(f"{name}://{endpoint}" for name, endpoint in named)


def _toml(value: Value) -> str:
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)  # TOML's escapes are JSON's, but for its pairs of surrogates
        return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
    return str(value).lower() if isinstance(value, bool) else str(value)
