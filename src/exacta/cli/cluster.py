"""The parts that commands which look at a cluster share: how it is named and reached, and how they fail in one line."""

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping
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
_REMEDIES = {
    "MESSAGE_TOO_LARGE": "a batch is above the topic's max.message.bytes: compress it, or exacta config set topic NAME "
    "max.message.bytes=BYTES",
    "INVALID_TOPIC_EXCEPTION": "a topic's name has 1 to 249 letters and digits of ASCII, '.', '_' and '-'",
    "INVALID_REPLICATION_FACTOR": "the cluster has fewer brokers than that",
}
"""The sentences that tell of a code where the cluster says no more than the code."""
_MISSPELT = 0.9
"""Two keys that are alike to this degree are one key, misspelt. Different Kafka keys are less alike."""

DEFAULT_SERVERS = "127.0.0.1:9092"
"""The cluster where nobody names one: the address that `exacta serve` listens on by default."""

SERVERS_VARIABLE = "EXACTA_BOOTSTRAP_SERVERS"

Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        help="The cluster, an Exacta or any Kafka. Unless it is given: bootstrap.servers of --config, "
        f"else {SERVERS_VARIABLE}, else {DEFAULT_SERVERS}.",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "--command-config",
        "-F",
        metavar="FILE",
        help="A file of properties of Kafka's clients, the Java client's or librdkafka's, that says how the cluster is "
        "reached (security.protocol and so on).",
        show_default=False,
    ),
]


def canonical(option: str) -> str:
    """Return the name under which an option is known here, without its dashes: clients have a plural for this one."""
    return "bootstrap-server" if option == "bootstrap-servers" else option


def cluster_of(
    bootstrap_servers: str | None, command_config: Path | None, client_id: str, *, login: tuple[str, str] | None = None
) -> "Cluster":
    """Return the cluster that options, file and environment name; end the command where they are wrong."""
    from exacta.cli.client_properties import UnreadableFile, in_javas_words, logging_in
    from exacta.client.routing import BadBootstrap, parse_bootstrap
    from exacta.spark.options import OptionError
    from exacta.spark.options.connection import CONNECTION
    from exacta.spark.options.properties import cluster_by, read_properties

    try:
        given = {} if command_config is None else read_properties(command_config)
        properties = in_javas_words(given if login is None else logging_in(given, *login))
        named_by, servers = _servers(bootstrap_servers, properties)
        try:
            parse_bootstrap(servers)
        except BadBootstrap as error:
            fail(f"{named_by}: {error}", EXIT_USAGE)
        cluster, passed_over = cluster_by(servers, properties, client_id=client_id)
    except (OptionError, UnreadableFile) as error:
        fail(by_file(error), EXIT_USAGE)
    known = [option.name.removeprefix("kafka.") for option in CONNECTION]
    for key in passed_over:  # a file of a client's says much else; what is misspelt is told
        if meant := did_you_mean(key, known, least_ratio=_MISSPELT):
            note(f"{command_config}: '{key}' does not say how to connect, and is passed over; {meant}")
    return cluster


def _servers(given: str | None, properties: Mapping[str, str]) -> tuple[str, str]:
    """Return who names the cluster, and its servers."""
    if given is not None:
        return "--bootstrap-server", given
    if servers := properties.get("bootstrap.servers"):
        return "bootstrap.servers of --config", servers
    return SERVERS_VARIABLE, os.environ.get(SERVERS_VARIABLE) or DEFAULT_SERVERS


@contextmanager
def client_of(
    bootstrap_servers: str | None,
    command_config: Path | None,
    client_id: str,
    *,
    timeout_s: float | None = None,
    login: tuple[str, str] | None = None,
) -> "Iterator[Client]":
    """Yield a client of the cluster; whatever the cluster or the options refuse meanwhile ends the command.

    `login` is a name and a password that stand for those of the file.
    """
    from exacta.client.errors import ClientError
    from exacta.client.routing import Client
    from exacta.protocol.kafka.codec import EncodeError

    cluster = cluster_of(bootstrap_servers, command_config, client_id, login=login)
    timeout_ms = _CALL_TIMEOUT_MS if timeout_s is None else timeout_s * 1000
    try:
        with notes_of_client(), Client(cluster, call_timeout_ms=timeout_ms) as client:
            yield client
    except ClientError as error:
        fail(by_file(error), EXIT_NO)
    except EncodeError as error:
        fail(f"an argument cannot be said in Kafka's protocol: {error}", EXIT_USAGE)


def by_file(error: Exception) -> str:
    """Return what an error says, with the keys of the file for the options of Spark's source and sink."""
    from exacta.client.errors import KafkaError, code_name

    remedy = _REMEDIES.get(code_name(error.code)) if isinstance(error, KafkaError) and error.detail is None else None
    said = f"{error} ({remedy})" if remedy else str(error)
    problems = said.replace(":\n- ", ": ").replace("\n- ", "; ")  # one line, however many they are
    return re.sub(r"option 'kafka\.([a-z.]+)'", r"'\1' of --config", problems)


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


def as_far_as_seen(client: "Client") -> str:
    """Return what to add where nothing was found: a cluster shows to who logs in what that user may describe."""
    security = client.cluster.security
    knows_us = security.sasl is not None or (security.tls is not None and security.tls.keystore is not None)
    return f" that {security.principal} may describe" if knows_us else ""


def no_topic(client: "Client", name: str) -> NoReturn:
    """End the command because there is no such topic."""
    not_found("there is no topic", name, client.topic_names())


def note(message: str) -> None:
    """Say something in one line on stderr, and go on."""
    say(f"exacta: {message}", err=True)


def fail(message: str, code: int) -> NoReturn:
    """Say why in one line on stderr, and end with this exit code."""
    note(message)
    raise typer.Exit(code)
