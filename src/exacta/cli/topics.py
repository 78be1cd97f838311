"""`exacta topics …`: topics, created, looked at, changed and deleted, on any Kafka cluster."""

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, client_of, fail, no_topic, note
from exacta.cli.confirmation import OnlyShow, Yes, require_consent
from exacta.cli.lines import counted, say
from exacta.cli.output import Output, OutputFormat, print_json, print_records
from exacta.cli.positions import BEGINNING, END, NoPlace, PositionKind, destination_of, offsets_at
from exacta.cli.settings import DryRun, Setting, settings_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exacta.client.routing import Client
    from exacta.client.topic_administration import TopicDescription

_CLIENT_ID = "exacta-topics"

topics = typer.Typer(help="Create, look at, change and delete topics.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="TOPIC", help="The topics' names.")]


@topics.callback()
def root() -> None:
    """Create, look at, change and delete topics."""


@topics.command()
def create(
    names: Names,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, metavar="N", help="Unless given: the cluster's own.", show_default=False
        ),
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Unless given: the cluster's own.", show_default=False)
    ] = None,
    settings: Setting = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="A topic that is there is no error.")] = False,
    dry_run: DryRun = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Create topics.

    Exit code 1 if a topic is there already, unless --if-not-exists is given, or if the cluster refuses one.
    """
    from exacta.client.errors import KafkaError
    from exacta.client.topic_administration import CLUSTER_DEFAULT, add_topic
    from exacta.protocol.kafka.errors import ErrorCode

    configs = settings_in(settings or [], "--set")
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        for name in names:
            try:
                made, copies = add_topic(
                    client,
                    name,
                    partitions=partitions or CLUSTER_DEFAULT,
                    replication_factor=replication_factor or CLUSTER_DEFAULT,
                    configs=configs,
                    dry_run=dry_run,
                )
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
                if not if_not_exists:
                    fail(f"topic {name} exists already", EXIT_NO)
                say(f"topic {name} exists already")
                continue
            told = f": {counted(made, 'partition')}, replication factor {copies}" if made > 0 else ""
            say(f"topic {name} {'could be' if dry_run else 'is'} created{told}")


@topics.command("list")
def list_all(
    everything: Annotated[bool, typer.Option("--all", help="Show the cluster's internal topics, too.")] = False,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the topics, with their partitions and replicas."""
    from exacta.client.topic_administration import describe_topics

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = describe_topics(client)
    records = [
        {"topic": each.name, "partitions": len(each.partitions), "replication_factor": each.replication_factor}
        for each in found
        if everything or not each.is_internal
    ]
    print_records(records, output, nothing="there are no topics")


@topics.command()
def describe(
    names: Names,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show topics: their partitions, leaders, replicas and offsets, and the settings that somebody has chosen.

    The last stable offset is where readers of committed records stop: behind it a transaction is open.

    Exit code 1 if a topic is not there.
    """
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _found(client, names)
        shown = [_described(client, each) for each in found]
    if output is OutputFormat.JSON:
        print_json(shown)
        return
    for each in shown:
        topic_id = f", id {each['topic_id']}" if each["topic_id"] else ""
        say(f"topic {each['topic']}{topic_id}")
        for name, value in each["settings"].items():
            say(f"  {name}={value}")
        print_records(each["partitions"], output, nothing="it has no partitions")


@topics.command()
def alter(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, metavar="N", help="Enlarge it to this many.", show_default=False),
    ] = None,
    settings: Setting = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="Give a setting its default again; may be repeated."),
    ] = None,
    dry_run: DryRun = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Give a topic more partitions, or other settings.

    Keys may lie in other partitions afterwards than before. A topic cannot be given fewer partitions.
    """
    from exacta.client.configs import Resource, change_settings
    from exacta.client.topic_administration import add_partitions_to_topic

    configs = settings_in(settings or [], "--set")
    if partitions is None and not configs and not unset:
        fail("give --partitions, --set or --unset", EXIT_USAGE)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        _found(client, [name])
        # Both are let check before either is done, so that what the cluster refuses leaves all as it was.
        for only_checked in (True,) if dry_run else (True, False):
            if configs or unset:
                change_settings(client, Resource("topic", name), configs, unset or [], dry_run=only_checked)
            if partitions is not None:
                add_partitions_to_topic(client, name, partitions, dry_run=only_checked)
    say(f"topic {name} {'could be' if dry_run else 'is'} changed")


@topics.command()
def delete(
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A topic that is not there is no error.")] = False,
    yes: Yes = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Delete topics with all that is in them.

    Exit code 1 if a topic is not there, unless --if-exists is given; then nothing is deleted.
    """
    from exacta.client.topic_administration import delete_topic, describe_topics

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = describe_topics(client, names) if if_exists else _found(client, names)
        if not found:
            say("none of the topics is there")
            return
        listed = ", ".join(f"{each.name} ({counted(len(each.partitions), 'partition')})" for each in found)
        require_consent(f"Delete {listed} with all records?", yes=yes)
        for each in found:
            delete_topic(client, each.name)
            say(f"topic {each.name} is deleted")


@topics.command()
def trim(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="WHERE",
            help="Delete what lies below this: an offset of one partition, latest (the end of what is committed), -N "
            "for all but the last N, or a time (2026-01-31T12:00:00Z).",
            show_default=False,
        ),
    ],
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition; may be repeated."),
    ] = None,
    dry_run: OnlyShow = False,
    yes: Yes = False,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Delete the oldest records of a topic: show up to where, and ask before it is done.

    Positions of groups stay; a group whose position was deleted goes on as its `auto.offset.reset` says.

    Exit code 1 if the topic or a partition is not there, or the cluster refuses, as for a topic that is only compacted.
    """
    from exacta.client.topic_administration import delete_records
    from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED
    from exacta.client.transactions import TopicPartition

    try:
        place = destination_of(before)
    except NoPlace as error:
        fail(f"--before: {error}", EXIT_USAGE)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        (found,) = _found(client, [name])
        numbers = [each.partition for each in found.partitions]
        for number in partitions or []:
            if number not in numbers:
                fail(f"topic {name} has no partition {number}: it has {len(numbers)}", EXIT_NO)
        wanted = [TopicPartition(name, each) for each in numbers if not partitions or each in partitions]
        if place.kind is PositionKind.OFFSET and place.number >= 0 and len(wanted) > 1:
            fail("an offset belongs to one partition: give -p, too", EXIT_USAGE)
        first = offsets_at(client, wanted, BEGINNING, READ_COMMITTED)
        new = offsets_at(client, wanted, place, READ_COMMITTED)
        for each, end in offsets_at(client, wanted, END, READ_UNCOMMITTED).items():
            if new[each] > end:
                fail(f"{each} has no records up to offset {new[each]}: it ends at {end}", EXIT_NO)
        records = [
            {"partition": at.partition, "from": first[at], "to": new[at]} for at in wanted if new[at] > first[at]
        ]
        print_records(records, output, nothing=f"topic {name} has nothing below that")
        if dry_run or not records:
            note("nothing was deleted")
            return
        require_consent(f"Delete these records of {name}?", yes=yes, err=True)
        for each in wanted:
            if new[each] > first[each]:
                delete_records(client, each, new[each])
    note(f"topic {name} was trimmed")


def _found(client: "Client", names: "Iterable[str]") -> "list[TopicDescription]":
    """Return the topics in the order of their names; end the command where one is not there."""
    from exacta.client.topic_administration import describe_topics

    wanted = list(dict.fromkeys(names))
    found = {each.name: each for each in describe_topics(client, wanted)}
    for name in wanted:
        if name not in found:
            no_topic(client, name)
    return [found[name] for name in wanted]


def _described(client: "Client", topic: "TopicDescription") -> dict[str, Any]:
    from exacta.client.configs import Resource, describe_settings
    from exacta.client.errors import KafkaError
    from exacta.client.topics import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
    from exacta.client.transactions import TopicPartition

    led = [TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader is not None]
    first, stable, ends = (
        list_offsets(client, led, at, isolation_level=isolation)
        for at, isolation in ((EARLIEST, READ_UNCOMMITTED), (LATEST, READ_COMMITTED), (LATEST, READ_UNCOMMITTED))
    )
    try:
        settings = describe_settings(client, Resource("topic", topic.name))
    except KafkaError as error:  # a user who may read a topic need not be allowed to see its settings
        note(str(error))
        settings = []
    partitions = []
    for each in topic.partitions:
        at = TopicPartition(topic.name, each.partition)
        partitions.append(
            {
                "partition": each.partition,
                "leader": each.leader,
                "replicas": each.replicas,
                "in_sync": each.in_sync,
                "first_offset": first.get(at),
                "last_stable_offset": stable.get(at),
                "end_offset": ends.get(at),
            }
        )
    return {
        "topic": topic.name,
        "topic_id": _id_in_words(topic.topic_id),
        "settings": {each.name: each.value for each in settings if each.source == "topic"},
        "partitions": partitions,
    }


def _id_in_words(topic_id: bytes | None) -> str | None:
    """Return a topic's id as Kafka's tools write it."""
    return None if topic_id is None else urlsafe_b64encode(topic_id).decode().rstrip("=")
