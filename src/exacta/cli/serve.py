"""`exacta serve`: argparse instead of typer, because of what typer costs at every start."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from msgspec.structs import replace

from exacta.cli.data_directory import DEFAULT_DATA, default_data
from exacta.config.errors import ConfigurationError
from exacta.config.options import configure, options, parse_setting, passed_over
from exacta.front.doors import Door, Endpoint, TransportSecurity
from exacta.server.door_options import ENDPOINTS, doors_of
from exacta.server.kafka_listeners import protocol_of
from exacta.server.listeners import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_PULSAR_PORT,
    DEFAULT_PULSAR_TLS_PORT,
    DEFAULT_WEB_PORT,
    DEFAULT_WEB_TLS_PORT,
    parse_endpoint,
)
from exacta.server.log_lines import DEFAULT_FORMAT, DEFAULT_LEVEL, FORMATS, LEVELS
from exacta.server.process import serve

if TYPE_CHECKING:
    from exacta.server.configuration_file import ConfigurationFile

EXIT_USAGE = 2
_OF_CLUSTERS = ("postgres", "objects", "node_id")
"""Options of the broker that are flags, too."""

T = TypeVar("T")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, without the usage text."""
        raise ConfigurationError(f"{message} (exacta serve --help shows how)")


def run(arguments: Sequence[str]) -> int:
    """Serve as the arguments say; return the exit code."""
    try:
        parsed = _parser().parse_args(arguments)
        settings: dict[str, Any] = {}
        data: Path | None = None
        log = {"log.level": DEFAULT_LEVEL, "log.format": DEFAULT_FORMAT}
        given = {name: endpoint for name in ENDPOINTS if (endpoint := getattr(parsed, name)) is not None}
        endpoints = given
        kafka_doors: Sequence[Door] = ()
        if parsed.config is not None:
            file = _file(parsed.config)
            settings, data = dict(file.options), file.data
            endpoints = file.endpoints | given
            kafka_doors = file.kafka_doors
            if "listen" in given:
                _refuse_secured(kafka_doors)
                kafka_doors = ()
            log |= file.log
        # The command line wins over the file. Both forms of a name are one option.
        settings |= _set(parsed.set)
        settings |= {name: value for name in _OF_CLUSTERS if (value := getattr(parsed, name)) is not None}
        configuration = configure(settings)
        doors = doors_at(endpoints, kafka_doors)
        if configuration.postgres and parsed.drop_run_time_options:
            raise ConfigurationError(
                "--drop-run-time-options is for a broker alone: exacta config unset takes back what a cluster has"
            )
    except ConfigurationError as error:
        sys.stderr.write(f"exacta: {error}\n")
        return EXIT_USAGE
    return serve(
        configuration,
        parsed.data or data or default_data(configuration),
        doors,
        log_level=parsed.log_level or log["log.level"],
        log_format=parsed.log_format or log["log.format"],
        drops_run_time_options=parsed.drop_run_time_options,
        level_now=lambda: parsed.log_level or (parsed.config and _level_in(parsed.config)) or DEFAULT_LEVEL,
    )


def doors_at(endpoints: dict[str, Endpoint], kafka_doors: Sequence[Door]) -> list[Door]:
    """Return the doors to listen at, the doors of Kafka clients first. Raises ConfigurationError."""
    if not kafka_doors:
        return doors_of({"listen": Endpoint(DEFAULT_HOST, DEFAULT_PORT)} | endpoints)
    if "advertise" in endpoints and len(kafka_doors) == 1:
        return [replace(kafka_doors[0], advertised=endpoints["advertise"]), *doors_of(endpoints)]
    if "advertise" in endpoints:
        names = " and ".join(each.name for each in kafka_doors)
        raise ConfigurationError(
            f"advertise names one address, and the listeners {names} have one each: name them by advertised.listeners"
        )
    return [*kafka_doors, *doors_of(endpoints)]


def _refuse_secured(kafka_doors: Sequence[Door]) -> None:
    """Refuse a --listen that would stand for a listener with TLS or logins. Raises ConfigurationError."""
    for door in kafka_doors:
        if door.login or door.security is not TransportSecurity.PLAINTEXT:
            raise ConfigurationError(
                f"--listen would take the place of the listener {door.name}, and have no {protocol_of(door)}: leave it "
                "out, or change listeners in the file"
            )


def _set(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return what `--set` sets, by the names of options. Raises ConfigurationError for a secret."""
    found = {}
    for key, value in given:
        name = key.replace("_", ".")
        if (gone := passed_over(name)) is not None:
            sys.stderr.write(f"exacta: {gone}\n")
        elif name in options() and options()[name].is_secret:
            raise ConfigurationError(
                f"{name} is a secret, and the list of processes shows the command line: give it in a file (--config)"
            )
        else:
            found[name] = value
    return found


def _level_in(path: Path) -> str | None:
    """Return the level of the log that the file says now. Raises ConfigurationError."""
    return _read(path).log.get("log.level")


def _file(path: Path) -> "ConfigurationFile":
    """Return what the file says, and say what of it has no effect. Raises ConfigurationError."""
    file = _read(path)
    for note in file.notes():
        sys.stderr.write(f"exacta: {note}\n")
    return file


def _read(path: Path) -> "ConfigurationFile":
    """Return what the file says. Raises ConfigurationError."""
    from exacta.server.configuration_file import read_configuration_file  # its table and tomllib take milliseconds

    file = read_configuration_file(path)
    if file.mistakes:
        first, *more = file.mistakes
        raise ConfigurationError(first + (f" (and {len(more)} more: exacta config check {path})" if more else ""))
    return file


MATTERING_FLAGS = (
    "--data",
    "--listen",
    "--advertise",
    "--pulsar-listen",
    "--web-listen",
    "--config",
    "--log-level",
)
MATTERING_KEYS = (
    "num.partitions",
    "auto.create.topics.enable",
    "message.max.bytes",
    "log.retention.ms",
    "log.retention.bytes",
    "offsets.retention.minutes",
    "transaction.max.timeout.ms",
    "max.connections",
)
"""The fifteen options that `--help` shows, as flags and as keys of `--set`; docs/how-to/options.md tells of each."""

_HOW_TO_GIVE = ("--set", "--help", "--help-all")


def help_text(everything: bool) -> str:
    """Return what `--help-all` prints, or `--help`, which has the options that matter."""
    parser = _parser()
    if not everything:
        for action in parser._actions:
            if not {*action.option_strings} & {*MATTERING_FLAGS, *_HOW_TO_GIVE}:
                action.help = argparse.SUPPRESS
    shown = [options()[name] for name in (options() if everything else MATTERING_KEYS)]
    described = "\n".join(f"  {each.name}={str(each.default).lower()}\n      {each.description}" for each in shown)
    parser.epilog = f"keys for --set and --config, with their defaults:\n{described}"
    if not everything:
        parser.epilog += "\n\nexacta serve --help-all shows all flags and keys."
    return parser.format_help()


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        sys.stdout.write(help_text(everything=self.const))
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="exacta serve",
        description="Serve a transactional log to Kafka clients, and to Pulsar clients (--pulsar-listen).",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    for flags, words, everything in (
        (("-h", "--help"), "show the fifteen options that matter, and exit", False),
        (("--help-all",), "show all options, and exit", True),
    ):
        parser.add_argument(*flags, action=_Help, nargs=0, const=everything, default=argparse.SUPPRESS, help=words)
    parser.add_argument(
        "--data",
        type=_usage(_directory),
        metavar="DIR",
        help=f"the data directory: a new or empty one, or the one of an earlier start (default: ./{DEFAULT_DATA})",
    )
    parser.add_argument(
        "--listen",
        type=_usage(parse_endpoint),
        metavar="HOST:PORT",
        help=f"where to accept clients; no host: every address; port 0: any (default: {DEFAULT_HOST}:{DEFAULT_PORT})",
    )
    parser.add_argument(
        "--advertise",
        type=_usage(parse_endpoint),
        metavar="HOST:PORT",
        help="what clients are told to connect to, where that is not what is listened on",
    )
    _add_pulsars_doors(parser)
    _add_cluster(parser)
    _add_ways_to_set(parser)
    return parser


def _add_ways_to_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        type=_usage(parse_setting),
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set an option; may be repeated, and wins over --config",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="read options from a TOML file (*.toml), or from one like Kafka's server.properties; it may have data, "
        "listen and the other addresses, too (exacta config check FILE tells what it says)",
    )
    parser.add_argument(
        "--drop-run-time-options",
        action="store_true",
        help="take back all options that were set while brokers ran (exacta config set broker …), before any client "
        "is let in",
    )
    parser.add_argument(
        "--log-level", choices=LEVELS, help=f"the least level of the lines of the log (default: {DEFAULT_LEVEL})"
    )
    parser.add_argument(
        "--log-format", choices=FORMATS, help=f"the form of the log's lines on stderr (default: {DEFAULT_FORMAT})"
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    for flag, metavar, words in (
        (
            "--postgres",
            "URL",
            "the PostgreSQL database that keeps the log, as postgresql://USER@HOST:PORT/DATABASE; brokers with the "
            "same one are a cluster, and --data is a cache (default: the log lies in the data directory)",
        ),
        (
            "--objects",
            "URL",
            "where the older part of a log in PostgreSQL lies, as s3://BUCKET/PREFIX (default: in PostgreSQL, too)",
        ),
        ("--node-id", "N", "the id of this broker, which no other broker of its cluster has (default: 0)"),
    ):
        parser.add_argument(flag, type=_usage(_something), metavar=metavar, help=words)


def _something(text: str) -> str:
    if not text.strip():
        raise ValueError("expected a value, not an empty one")
    return text


def _add_pulsars_doors(parser: argparse.ArgumentParser) -> None:
    nowhere = "default: nowhere; Pulsar's own port is"
    for flag, words in (
        ("--pulsar-listen", f"where to accept Apache Pulsar's clients ({nowhere} {DEFAULT_PULSAR_PORT})"),
        ("--pulsar-advertise", "what Pulsar's clients are told to connect to, where that is not what is listened on"),
        (
            "--pulsar-tls-listen",
            "where to accept Pulsar's clients by TLS; needs tlsCertificateFilePath, or ssl.keystore.location "
            f"({nowhere} {DEFAULT_PULSAR_TLS_PORT})",
        ),
        ("--pulsar-tls-advertise", "what Pulsar's clients are told to connect to by TLS"),
        (
            "--web-listen",
            "where to serve /metrics and /health, and what Pulsar's clients ask by HTTP "
            f"(default: nowhere; the usual port is {DEFAULT_WEB_PORT})",
        ),
        ("--web-tls-listen", f"the same by HTTPS ({nowhere} {DEFAULT_WEB_TLS_PORT})"),
    ):
        parser.add_argument(flag, type=_usage(parse_endpoint), metavar="HOST:PORT", help=words)


def argument_help(option: str) -> str:
    """Return what the command line says of one of its options, as a sentence."""
    (text,) = [str(action.help) for action in _parser()._actions if option in action.option_strings]
    return f"{text[0].upper()}{text[1:]}."


def _directory(text: str) -> Path:
    if not text.strip():
        raise ValueError("expected a directory, not an empty name")
    return Path(text)


def _usage(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Let argparse show the parser's own message."""

    def wrapped(text: str) -> T:
        try:
            return parse(text)
        except (ValueError, ConfigurationError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return wrapped
