"""Every command but `serve`, on typer. Modules of commands are imported by the command that needs them."""

from typing import Annotated

import typer

from exacta.cli.cluster import canonical
from exacta.cli.cluster_health import cluster
from exacta.cli.configuration import config
from exacta.cli.consume import consume
from exacta.cli.demo import demo
from exacta.cli.groups import groups
from exacta.cli.log import log
from exacta.cli.produce import produce
from exacta.cli.settings import configs
from exacta.cli.spark import spark
from exacta.cli.subscriptions import subscriptions
from exacta.cli.top import top
from exacta.cli.topics import topics
from exacta.cli.transactions import transactions
from exacta.cli.verify import verify

_SERVE = "Serve a log"
_RECORDS = "Write and read records"
_LOOK_AFTER = "Look after a cluster: an Exacta, or any Kafka"
_PROVE = "See that it holds"

app = typer.Typer(
    help="Exactly once, in exact order: a transactional log for every client of Kafka and of Pulsar.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"token_normalize_func": canonical},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from exacta import __version__

        typer.echo(f"exacta {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Exactly once, in exact order: a transactional log for every client of Kafka and of Pulsar."""


@app.command(
    rich_help_panel=_SERVE,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(context: typer.Context) -> None:
    """Serve a transactional log to every client of Kafka and of Pulsar; `exacta serve --help` shows the options."""
    from exacta.cli.serve import run

    raise typer.Exit(run(context.args))


app.command(rich_help_panel=_RECORDS)(produce)
app.command(rich_help_panel=_RECORDS)(consume)
for _name, _commands in (
    ("cluster", cluster),
    ("topics", topics),
    ("configs", configs),
    ("groups", groups),
    ("subscriptions", subscriptions),
    ("transactions", transactions),
):
    app.add_typer(_commands, name=_name, rich_help_panel=_LOOK_AFTER)
app.command(rich_help_panel=_LOOK_AFTER)(top)
app.add_typer(spark, name="spark", rich_help_panel=_LOOK_AFTER)
app.add_typer(config, name="config", rich_help_panel=_SERVE)
app.add_typer(log, name="log", rich_help_panel=_SERVE)
app.command(rich_help_panel=_PROVE)(verify)
app.command(rich_help_panel=_PROVE)(demo)
