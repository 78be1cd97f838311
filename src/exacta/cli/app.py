"""Every command but `serve`, on typer. Modules of commands are imported by the command that needs them."""

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from exacta.cli.acls import acls
from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, canonical, note
from exacta.cli.cluster_health import cluster
from exacta.cli.configuration import config
from exacta.cli.consume import consume
from exacta.cli.demo import demo
from exacta.cli.groups import groups
from exacta.cli.log import log
from exacta.cli.produce import produce
from exacta.cli.quotas import quotas
from exacta.cli.spark import spark
from exacta.cli.subscriptions import subscriptions
from exacta.cli.top import top
from exacta.cli.topics import topics
from exacta.cli.transactions import transactions
from exacta.cli.users import users
from exacta.cli.verify import verify

_SERVE = "Serve a log"
_RECORDS = "Write and read records"
_LOOK_AFTER = "Look after a cluster: an Exacta, or any Kafka"
_PROVE = "See that it holds"

_CANNOT_BE_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _InOneLine(TyperGroup):
    """All commands: a wrong call, and an output that cannot be written, are one line on stderr as other errors are."""

    def main(self, *args: Any, **more: Any) -> Any:
        """Run the command and exit with its code."""
        try:
            found = super().main(*args, **(more | {"standalone_mode": False}))
        except typer.Abort:
            sys.stderr.write("\n")  # behind a question that nobody has answered
            note("nobody has answered: nothing was changed")
            sys.exit(EXIT_NO)
        except OSError as error:
            if error.errno not in _CANNOT_BE_WRITTEN:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left of the output is written there
            note(f"the output cannot be written: {error.strerror}")
            sys.exit(EXIT_NO)
        except Exception as error:
            if not hasattr(error, "format_message"):  # typer's mark of a wrong call
                raise
            _show_wrong_call(error)
            sys.exit(EXIT_USAGE)
        sys.exit(found if isinstance(found, int) else 0)


def _show_wrong_call(error: Any) -> None:
    """Say what is wrong with a call; a group that was called without a command has shown its help."""
    if message := " ".join(error.format_message().split()).removesuffix("."):
        shows_how = f" ({error.ctx.command_path} --help shows how)" if error.ctx else ""
        note(f"{message[0].lower()}{message[1:]}{shows_how}")


app = typer.Typer(
    cls=_InOneLine,
    help="Exactly once, in exact order: a transactional log for Kafka's and Pulsar's clients.",
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
    """Exactly once, in exact order: a transactional log for Kafka's and Pulsar's clients."""


@app.command(
    rich_help_panel=_SERVE,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(context: typer.Context) -> None:
    """Serve a transactional log to Kafka's and Pulsar's clients.

    `exacta serve --help` shows the fifteen options that matter, and `exacta serve --help-all` the rest.
    """
    from exacta.cli.serve import run

    raise typer.Exit(run(context.args))


app.command(rich_help_panel=_RECORDS)(produce)
app.command(rich_help_panel=_RECORDS)(consume)
for _name, _commands in (
    ("cluster", cluster),
    ("topics", topics),
    ("config", config),
    ("groups", groups),
    ("subscriptions", subscriptions),
    ("transactions", transactions),
    ("acls", acls),
    ("users", users),
    ("quotas", quotas),
):
    app.add_typer(_commands, name=_name, rich_help_panel=_LOOK_AFTER)
app.command(rich_help_panel=_LOOK_AFTER)(top)
app.add_typer(spark, name="spark", rich_help_panel=_LOOK_AFTER)
app.add_typer(log, name="log", rich_help_panel=_SERVE)
app.command(rich_help_panel=_PROVE)(verify)
app.command(rich_help_panel=_PROVE)(demo)
