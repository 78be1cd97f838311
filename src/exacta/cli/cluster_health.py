"""`exacta cluster …`: the brokers of a cluster, whether all is well with them, waiting for them, moving the lead."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, client_of, fail
from exacta.cli.confirmation import Yes, require_consent
from exacta.cli.lines import counted, say
from exacta.cli.output import Output, OutputFormat, plain, print_json, print_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from exacta.client.topic_administration import TopicDescription
    from exacta.readmodel.cluster import ClusterStatus

_CLIENT_ID = "exacta-cluster"

cluster = typer.Typer(help="See whether a cluster is there and well, and wait for it.", no_args_is_help=True)

Timeout = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Give up after this time.")]


@cluster.callback()
def root() -> None:
    """See whether a cluster is there and well, and wait for it."""


@cluster.command()
def describe(
    timeout: Timeout = 20,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the cluster's id, its controller and its brokers."""
    from exacta.client.cluster_description import describe_cluster

    with client_of(bootstrap_servers, command_config, _CLIENT_ID, timeout_s=timeout) as client:
        found = describe_cluster(client)
    brokers = [each._asdict() for each in found.brokers]
    if output is OutputFormat.JSON:
        print_json({"cluster_id": found.cluster_id, "controller": found.controller, "brokers": brokers})
        return
    controller = "no controller" if found.controller is None else f"controller {found.controller}"
    say(f"cluster {found.cluster_id or '(without an id)'}, {controller}")
    print_records(brokers, output, nothing="it has no brokers")


@cluster.command()
def health(
    timeout: Timeout = 5,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Check that each partition has a leader and all of its replicas in sync.

    Exit code 0 if so, 1 if not, or if the cluster does not answer in time.
    """
    from exacta.client.cluster_description import describe_cluster
    from exacta.client.topic_administration import describe_topics

    with client_of(bootstrap_servers, command_config, _CLIENT_ID, timeout_s=timeout) as client:
        brokers = describe_cluster(client).brokers
        topics = describe_topics(client)
    problems = _problems(topics)
    partitions = sum(len(each.partitions) for each in topics)
    if output is OutputFormat.JSON:
        counts = {"brokers": len(brokers), "topics": len(topics), "partitions": partitions}
        print_json({"healthy": not problems} | counts | {"problems": problems})
    else:
        state = f"{counted(len(problems), 'partition')} not well" if problems else "all is well"
        sizes = (counted(len(brokers), "broker"), counted(len(topics), "topic"), counted(partitions, "partition"))
        say(f"{state}: {', '.join(sizes)}")
        if problems:
            print_records(problems, output, nothing="")
    if problems:
        raise typer.Exit(EXIT_NO)


def _problems(topics: "Sequence[TopicDescription]") -> list[dict[str, Any]]:
    """Return the partitions that have no leader, or replicas that are not in sync."""
    return [
        {
            "topic": topic.name,
            "partition": each.partition,
            "problem": "no leader" if each.leader is None else "replicas are not in sync",
            "replicas": list(each.replicas),
            "in_sync": list(each.in_sync),
        }
        for topic in topics
        for each in topic.partitions
        if each.leader is None or set(each.in_sync) != set(each.replicas)
    ]


@cluster.command()
def version(
    timeout: Timeout = 20,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show what each broker speaks: whether it is an Exacta, its APIs, and the features of KIP-584 at their levels.

    Kafka's protocol does not tell the version of a broker's software.
    """
    from exacta.client.cluster_description import describe_versions

    with client_of(bootstrap_servers, command_config, _CLIENT_ID, timeout_s=timeout) as client:
        found = describe_versions(client)
    records = [
        {
            "broker": each.broker,
            "exacta": each.is_exacta,
            "apis": each.apis,
            "features": each.features
            if output is OutputFormat.JSON
            else [f"{name}={level}" for name, level in each.features.items()],
        }
        for each in found
    ]
    print_records(records, output, nothing="there are no brokers")


@cluster.command()
def status(
    timeout: Timeout = 5,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the brokers that share a log over PostgreSQL: who leads, and how far each has followed.

    The first broker that answers tells what it knows itself, whether it leads or not. Exit code 1 if no broker answers,
    or if none leads.
    """
    from exacta.client.cluster_status import cluster_status
    from exacta.client.errors import DeadlineExceeded

    with client_of(bootstrap_servers, command_config, _CLIENT_ID, timeout_s=timeout) as client:
        try:
            found = cluster_status(client)
        except DeadlineExceeded as error:
            fail(f"no broker answers at {client.bootstrap}; none lets clients in while PostgreSQL is away: {error}", 1)
    if output is OutputFormat.JSON:
        print_json(plain(found))
    else:
        _show(found)
    if found.leader is None:
        raise typer.Exit(EXIT_NO)


def _show(found: "ClusterStatus") -> None:
    if not found.is_shared:
        say(f"broker {found.answered_by} serves its log alone")
        return
    leader = "no broker leads" if found.leader is None else f"broker {found.leader} leads, in epoch {found.epoch}"
    say(f"{leader}, as broker {found.answered_by} ({found.role}) knows it")
    age = f"the oldest {found.tail_ms / 1000:.1f} s old"
    say(f"{found.tail_bytes} bytes are not in objects yet, {age}; catalog {found.catalog}")
    rows = [
        {
            "broker": each.node_id,
            "leads": each.leads,
            "live": each.is_live,
            "rack": each.rack,
            "addresses": [f"{name}://{address}" for name, address in each.addresses.items()],
            "announced_ms_ago": each.announced_ms_ago,
            "behind_bytes": each.behind_bytes,
            "behind_ms": each.behind_ms,
            "catalog": each.catalog,
            "release": each.release,
        }
        for each in found.brokers
    ]
    print_records(rows, OutputFormat.TABLE, nothing="it knows of no brokers")


@cluster.command()
def move(
    to: Annotated[
        int | None, typer.Option(min=0, metavar="NODE_ID", help="The broker that is to lead; by default any other one.")
    ] = None,
    timeout: Timeout = 20,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Let another broker lead the log that several brokers share, and wait until it does.

    Exit code 0 if it does, or if the broker that is to lead does so already; 1 if not.
    """
    from exacta.client.cluster_status import move_lead

    with client_of(bootstrap_servers, command_config, _CLIENT_ID, timeout_s=timeout) as client:
        found = move_lead(client, to)
    say(f"broker {found.leader} leads, in epoch {found.epoch}")


@cluster.command()
def wait(
    timeout: Timeout = 30,
    brokers: Annotated[int, typer.Option(min=1, metavar="N", help="Wait for this many brokers.")] = 1,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Wait for the leaders of this topic, too; may be repeated."),
    ] = None,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Wait until the cluster answers, as a script does that has just started it.

    Exit code 0 as soon as it does, 1 if it does not in time.
    """
    from exacta.client.cluster_description import wait_for_cluster
    from exacta.client.errors import DeadlineExceeded

    with client_of(bootstrap_servers, command_config, _CLIENT_ID, timeout_s=timeout) as client:
        try:
            wait_for_cluster(client, brokers=brokers, topics=topics or [])
        except DeadlineExceeded as error:
            fail(str(error), EXIT_NO)
    say(f"{client.bootstrap} answers")


@cluster.command(name="accept-loss")
def accept_loss(
    postgres: Annotated[str, typer.Option("--postgres", metavar="URL", help="As for `exacta serve`.")],
    schema: Annotated[
        str | None, typer.Option("--postgres-schema", metavar="NAME", help="As for `exacta serve`.", show_default=False)
    ] = None,
    yes: Yes = False,
) -> None:
    """Let stopped brokers go on, though PostgreSQL has lost what was acknowledged.

    They refuse such a log. From now on it ends where it ends, for good. The next leader begins an epoch there, so
    that Kafka consumers that have read further learn of it. What is lost is told by positions.

    Exit code 0, 1 if nothing was done, 2 if called wrongly.
    """
    import asyncio

    from exacta.config.errors import ConfigurationError
    from exacta.config.options import configure
    from exacta.server.cluster.accepting import accept_loss_of
    from exacta.server.errors import ServerError

    try:
        given = {} if schema is None else {"postgres_schema": schema}
        configuration = configure({"postgres": postgres, **given})
    except ConfigurationError as error:
        fail(str(error), EXIT_USAGE)
    require_consent("Give up what was acknowledged and is no longer in PostgreSQL?", yes=yes)
    try:
        found = asyncio.run(accept_loss_of(configuration))
    except ServerError as error:
        fail(str(error), EXIT_NO)
    if found.end == found.was_durable_to:
        say(f"PostgreSQL has all that it says was durable, up to position {found.end}: nothing was changed")
    else:
        say(f"the log ends at position {found.end}; what was durable from there to {found.was_durable_to} is given up")
