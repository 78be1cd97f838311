"""What every command that looks at a cluster shares: how it is named and reached, and how it fails, in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from exacta.client.routing import Client

EXIT_NO = 1
EXIT_USAGE = 2
_CALL_TIMEOUT_MS = 20_000

Servers = Annotated[
    str,
    typer.Option(
        "--bootstrap-servers",
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


@contextmanager
def client_of(bootstrap_servers: str, command_config: Path | None, client_id: str) -> "Iterator[Client]":
    """Yield a client of the cluster; whatever the cluster or the options refuse meanwhile ends the command."""
    from exacta.client.errors import ClientError
    from exacta.client.routing import Client
    from exacta.spark.options import OptionError
    from exacta.spark.options.properties import cluster_of

    try:
        cluster = cluster_of(bootstrap_servers, command_config, client_id=client_id)
        with Client(cluster, call_timeout_ms=_CALL_TIMEOUT_MS) as client:
            yield client
    except OptionError as error:
        fail(str(error), EXIT_USAGE)
    except ClientError as error:
        fail(str(error), EXIT_NO)


def fail(message: str, code: int) -> NoReturn:
    """Say why in one line on stderr, and end with this exit code."""
    typer.echo(f"exacta: {message}", err=True)
    raise typer.Exit(code)
