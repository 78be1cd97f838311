"""`exacta spark …`: what is done by hand for a Spark query. The work is in `exacta.spark`."""

from typing import TYPE_CHECKING, Annotated

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, as_far_as_seen, client_of, fail, note
from exacta.cli.confirmation import Yes, require_consent
from exacta.cli.lines import counted, say

if TYPE_CHECKING:
    from exacta.client.routing import Client
    from exacta.spark.cleaning import Cleaned, Leftovers

spark = typer.Typer(help="Look after Spark queries that write with format 'exacta'.", no_args_is_help=True)


@spark.callback()
def root() -> None:
    """Look after Spark queries that write with format 'exacta'."""


@spark.command()
def clean(
    query: Annotated[str | None, typer.Option(metavar="ID", help="The query's id.", show_default=False)] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="The query's checkpoint, to take the id from.", show_default=False)
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What option 'transactional.id.prefix' was set to; 'job' for batch jobs that set none.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    watch: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to look whether the query is still running.")
    ] = 5,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Remove what a query that will never run again has left on a cluster.

    A batch that was decided is committed, and one that was not decided is aborted. Then the query's groups are deleted.
    If its checkpoint is used again afterwards in the middle of a batch, the sink is refused: nobody knows what it
    committed.

    Exit code 0 if nothing is left, 1 if something is, 2 if the command was called wrongly.
    """
    given = [each for each in (query, checkpoint, prefix) if each is not None]
    if len(given) != 1:
        fail("give one of --query, --checkpoint and --prefix", EXIT_USAGE)
    from exacta.spark import cleaning
    from exacta.spark.sink.checkpoint import Checkpoint, CheckpointUnreadable
    from exacta.spark.sink.decision import UnreadableDecision
    from exacta.spark.sink.errors import SinkError

    try:
        name = given[0] if checkpoint is None else Checkpoint(checkpoint).query_id()
        if not name.strip():
            fail("the name of a query is not empty", EXIT_USAGE)
        with client_of(bootstrap_servers, command_config, "exacta-clean") as client:
            found = [each for each in _find(client, name, watch, by_prefix=prefix is not None) if not each.nothing]
            if not found:
                return
            require_consent(f"Remove what query {name} has left? It must never run again", yes=yes)
            for each in found:
                _tell(each.name, cleaning.clean(client, each.name))
    except (SinkError, CheckpointUnreadable, UnreadableDecision) as error:
        fail(str(error), EXIT_NO)


def _find(client: "Client", name: str, watch: float, *, by_prefix: bool) -> "list[Leftovers]":
    """Return and show what a query and its further sinks, or a job and the batch jobs of its prefix, have left."""
    from exacta.spark import cleaning

    sinks = cleaning.further_sinks(client, name)
    if by_prefix and sinks:  # for all that the cluster knows, they are jobs of their own
        say(f"not looked at: {', '.join(sinks)}; if they are sinks of this job, clean each by --prefix")
        sinks = []
    found = [cleaning.watch(client, each, watch) for each in (name, *sinks)]
    for job in cleaning.jobs(client, name) if by_prefix else []:
        try:
            found.append(cleaning.watch(client, job, watch))
        except cleaning.StillRunning:
            say(f"left alone: {job}, which is running")
    for each in found:
        _show(each, as_far_as_seen(client))
    if not by_prefix and not any(each.groups or each.transactions for each in found):
        say("a query that sets option 'transactional.id.prefix' is found by --prefix")
    return found


def _show(found: "Leftovers", seen: str) -> None:
    if found.nothing:
        ids = f" but {len(found.transactions)} transactional ids, which expire" if found.transactions else ""
        say(f"nothing of query {found.name} is there{seen}{ids}")
        return
    say(f"query {found.name} has left:")
    for transactional_id, state in found.transactions.items():
        say(f"  transactional id {transactional_id} ({state.state})")
    for group in found.groups:
        say(f"  group {group}")


def _tell(name: str, cleaned: "Cleaned") -> None:
    batches = "no batch was committed" if cleaned.last_batch is None else f"batch {cleaned.last_batch} was the last"
    say(f"query {name} is removed: {batches}, nothing is open, {counted(len(cleaned.groups), 'group')} deleted")
    if cleaned.torn:
        note(f"of batch {cleaned.last_batch} only a part is there: the other transactions of it had timed out")
