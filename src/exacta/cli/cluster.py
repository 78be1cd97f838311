"""The parts that commands which look at a cluster share: how it is named and reached, and how they fail in one line."""

import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.lines import say
from exacta.spelling import did_you_mean

if TYPE_CHECKING:
    from exacta.client.routing import Client
    from exacta.client.security import Cluster

EXIT_NO = 1
EXIT_USAGE = 2
_CALL_TIMEOUT_MS = 20_000

Servers = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT,…",
        help="The cluster, an Exacta or any Kafka.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="How the cluster is reached (security.protocol and so on), as Kafka's own tools take it.",
        show_default=False,
    ),
]


def canonical(option: str) -> str:
    """Return the name under which an option is known here, without its dashes: clients have a plural for this one."""
    return "bootstrap-server" if option == "bootstrap-servers" else option


def cluster_of(bootstrap_servers: str, command_config: Path | None, client_id: str) -> "Cluster":
    """Return the cluster that the options name; end the command where they are wrong."""
    from exacta.client.routing import BadBootstrap, parse_bootstrap
    from exacta.spark.options import OptionError
    from exacta.spark.options.properties import cluster_of

    try:
        parse_bootstrap(bootstrap_servers)
        cluster, passed_over = cluster_of(bootstrap_servers, command_config, client_id=client_id)
    except BadBootstrap as error:
        fail(f"--bootstrap-server: {error}", EXIT_USAGE)
    except OptionError as error:
        fail(by_file(error), EXIT_USAGE)
    if passed_over:
        note(f"{command_config}: keys that do not say how to connect were passed over: {', '.join(passed_over)}")
    return cluster


@contextmanager
def client_of(bootstrap_servers: str, command_config: Path | None, client_id: str) -> "Iterator[Client]":
    """Yield a client of the cluster; whatever the cluster or the options refuse meanwhile ends the command."""
    from exacta.client.errors import ClientError
    from exacta.client.routing import Client
    from exacta.protocol.kafka.codec import EncodeError

    cluster = cluster_of(bootstrap_servers, command_config, client_id)
    try:
        with notes_of_client(), Client(cluster, call_timeout_ms=_CALL_TIMEOUT_MS) as client:
            yield client
    except ClientError as error:
        fail(by_file(error), EXIT_NO)
    except EncodeError as error:
        fail(f"an argument cannot be said in Kafka's protocol: {error}", EXIT_USAGE)


def by_file(error: Exception) -> str:
    """Return what an error says, with the keys of the file for the options of Spark's source and sink."""
    return re.sub(r"option 'kafka\.([a-z.]+)'", r"'\1' of --command-config", str(error))


@contextmanager
def notes_of_client() -> Iterator[None]:
    """Show what the client logs meanwhile, such as whom it waits for."""
    log, shown = logging.getLogger("exacta.client"), _Notes()
    log.addHandler(shown)
    try:
        yield
    finally:
        log.removeHandler(shown)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Show a record as a note of this command."""
        note(record.getMessage())


def not_found(message: str, name: str, names: Collection[str]) -> NoReturn:
    """End the command because nothing has this name; ask whether one of `names` was meant."""
    meant = did_you_mean(name, names, most=3)
    fail(f"{message} {name}" + (f"; {meant}" if meant else ""), EXIT_NO)


def note(message: str) -> None:
    """Say something in one line on stderr, and go on."""
    say(f"exacta: {message}", err=True)


def fail(message: str, code: int) -> NoReturn:
    """Say why in one line on stderr, and end with this exit code."""
    note(message)
    raise typer.Exit(code)
