"""`exacta groups …`: consumer groups, seen from outside, moved and deleted. On any Kafka cluster."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.cluster import (
    EXIT_NO,
    EXIT_USAGE,
    CommandConfig,
    Servers,
    as_far_as_seen,
    client_of,
    fail,
    no_topic,
    not_found,
    note,
)
from exacta.cli.confirmation import OnlyShow, Yes, require_consent
from exacta.cli.lines import counted, say
from exacta.cli.output import Output, OutputFormat, plain, print_json, print_records
from exacta.cli.positions import NoPlace, Place, destination_of, destinations
from exacta.cli.tables import held_by, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exacta.client.group_description import GroupDescription
    from exacta.client.routing import Client
    from exacta.client.transactions import TopicPartition
    from exacta.readmodel.groups import GroupLag

_CLIENT_ID = "exacta-groups"

groups = typer.Typer(help="Look after consumer groups.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.")]
OnlyTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Only this topic, also where the group has no position yet; may be repeated.",
    ),
]
OnlyPartitions = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition; may be repeated."),
]


@groups.callback()
def root() -> None:
    """Look after consumer groups."""


@groups.command("list")
def list_all(
    everything: Annotated[
        bool, typer.Option("--all", help="Show the groups that Spark queries keep their replay markers in, too.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show the groups, with their state and the type of their members' protocol.

    A Spark query that writes with format "exacta" keeps replay markers and decisions as offsets of groups that have no
    members. These are left out, unless --all is given: then each is shown with its query.
    """
    from exacta.client.group_administration import listed_groups
    from exacta.spark.owners import owners_of_groups

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = listed_groups(client)
        owners = owners_of_groups(client, [each.group for each in found if not each.protocol_type])
    shown = [each for each in found if everything or each.group not in owners]
    records = [
        {"group": each.group, "state": each.state or "?", "protocol": each.protocol_type or None}
        | ({"of": str(owners.get(each.group, ""))} if everything else {})
        for each in shown
    ]
    print_records(records, output, nothing="there are no groups")
    if len(shown) < len(found):
        note(f"groups with replay markers of Spark queries are not shown: {len(found) - len(shown)} (--all shows them)")


@groups.command()
def describe(
    group: Name,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show a group: its state, its members with their partitions, and how far it is behind.

    Exit code 1 if there is no such group.
    """
    from exacta.client.lag import describe_lag

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        found = _described(client, group)
        behind = describe_lag(client, group)
        seen = as_far_as_seen(client)
    members = [
        {
            "member": each.member_id,
            "instance": each.instance_id,
            "client": each.client_id,
            "host": each.host,
            "partitions": [str(at) for at in each.partitions],
        }
        for each in found.members
    ]
    if output is OutputFormat.JSON:
        told = {"group": group, "protocol": found.protocol, "state": found.state, "assignor": found.assignor or None}
        print_json(told | {"members": members, "lag": plain(behind)})
        return
    assignor = f", assignor {found.assignor}" if found.assignor else ""
    say(f"group {group}: {found.state}, {found.protocol} protocol{assignor}")
    print_records(members, output, nothing="it has no members")
    if behind.partitions:
        _show(behind)
    else:
        say(f"it has no position in any partition{seen}")


@groups.command()
def lag(
    group: Name,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show how far a group is behind, in records that its readers of committed records would get.

    Markers and aborted records do not count: 0 means that such a reader has everything. Records behind an open
    transaction are shown apart, with the transaction that holds them back. On a cluster that is not an Exacta, offsets
    are counted, and the records may be fewer.

    Exit code 0 if the group has a position in some partition, 1 if not or if the cluster cannot be reached, 2 if called
    wrongly.
    """
    from exacta.client.errors import KafkaError
    from exacta.client.lag import describe_lag
    from exacta.protocol.kafka.errors import ErrorCode

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        try:
            found = describe_lag(client, group)
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            _fail_without(client, group)
        if not found.partitions:
            _fail_without(client, group)
    if output is OutputFormat.JSON:
        print_json(plain(found))
    else:
        _show(found)
    if not found.exact:
        note(f"{client.bootstrap} is not an Exacta: these are offsets, markers and aborted records included")


@groups.command()
def reset(
    group: Name,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="earliest, latest (behind all that is committed), an offset, -N for N before the end, or a time "
            "(2026-01-31T12:00:00Z).",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        int | None,
        typer.Option("--by", metavar="N", help="Move each position by this many offsets.", show_default=False),
    ] = None,
    topics: OnlyTopics = None,
    partitions: OnlyPartitions = None,
    dry_run: OnlyShow = False,
    yes: Yes = False,
    output: Output = OutputFormat.TABLE,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Let a group go on elsewhere: show where that is, and ask before it is done.

    The group may have no members meanwhile. A position beyond the records that there are is moved to the nearest one.

    Exit code 1 if the group has members, or no position that could be moved.
    """
    from exacta.client.group_offsets import commit_offsets, fetch_offsets

    if (to is None) == (by is None):
        fail("give one of --to and --by", EXIT_USAGE)
    try:
        place: Place | int = destination_of(to) if to is not None else by or 0
    except NoPlace as error:
        fail(f"--to: {error}", EXIT_USAGE)
    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        _check_free(client, [group], may_be_new=bool(topics))
        committed = {at: each.offset for at, each in fetch_offsets(client, group).items()}
        wanted = _to_move(client, committed, topics or [], partitions or [])
        if by is not None:
            wanted = [each for each in wanted if each in committed]
        if not wanted:
            fail(f"group {group} has no position there{as_far_as_seen(client)}", EXIT_NO)
        new = destinations(client, wanted, place, committed)
        records = [
            {"topic": at.topic, "partition": at.partition, "from": committed.get(at), "to": new[at]}
            for at in sorted(wanted)
        ]
        print_records(records, output, nothing="")
        if dry_run:
            note("nothing was changed")
            return
        require_consent(f"Move group {group}?", yes=yes, err=True)
        commit_offsets(client, group, new)
    note(f"group {group} was moved")


@groups.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="GROUP", help="The groups' ids.")],
    yes: Yes = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Delete groups that have no members, with their positions.

    Exit code 1 if a group is not there or has members; then none is deleted.
    """
    from exacta.client.group_administration import delete_group

    with client_of(bootstrap_servers, command_config, _CLIENT_ID) as client:
        _check_free(client, names)
        require_consent(f"Delete {', '.join(dict.fromkeys(names))} with all positions?", yes=yes)
        for name in dict.fromkeys(names):
            delete_group(client, name)
            say(f"group {name} is deleted")


# --- what is looked at ------------------------------------------------------------------------------------------------


def _described(client: "Client", group: str) -> "GroupDescription":
    """Return what there is to say of a group; end the command where it is not there."""
    from exacta.client.group_administration import list_groups
    from exacta.client.group_description import describe_group

    found = describe_group(client, group)
    if found is None:
        not_found("there is no group", group, list_groups(client, ""))
    return found


def _check_free(client: "Client", groups: "Iterable[str]", *, may_be_new: bool = False) -> None:
    """End the command where a group is not there, has members, or holds what a Spark query needs."""
    from exacta.client.group_description import describe_group
    from exacta.spark.owners import owner_of_group

    for group in groups:
        found = describe_group(client, group) if may_be_new else _described(client, group)
        if found is not None and found.members:
            fail(f"group {group} has {counted(len(found.members), 'member')}: end them first", EXIT_NO)
        if owner := owner_of_group(client, group):
            fail(f"group {group} holds replay markers of {owner}: exacta spark clean removes them", EXIT_NO)


def _to_move(
    client: "Client", committed: "Iterable[TopicPartition]", topics: list[str], partitions: list[int]
) -> "list[TopicPartition]":
    """Return the partitions that are meant: of the topics, or else those in which the group has a position."""
    from exacta.client.routing import UnknownTopic
    from exacta.client.transactions import TopicPartition

    try:
        counts = client.partitions(dict.fromkeys(topics))
    except UnknownTopic as error:
        no_topic(client, error.topic)
    found = [TopicPartition(topic, each) for topic, count in counts.items() for each in range(count)]
    return [each for each in (found if topics else committed) if not partitions or each.partition in partitions]


def _fail_without(client: "Client", group: str) -> NoReturn:
    """Say that there is no such group, or that it has no position anywhere."""
    from exacta.client.group_administration import list_groups

    names = list_groups(client, "")
    if group in names:
        fail(f"group {group} has no position in any partition{as_far_as_seen(client)}", EXIT_NO)
    not_found("there is no group", group, names)


# --- what is shown ----------------------------------------------------------------------------------------------------


def _show(found: "GroupLag") -> None:
    rows = []
    for each in found.partitions:
        position = "–" if each.committed_offset is None else str(each.committed_offset)
        numbers = (each.unread, each.held_back, each.last_stable_offset, each.high_watermark)
        rows.append((str(each), position, *(str(number) for number in numbers), held_by(each.held_by)))
    unread = sum(each.unread for each in found.partitions)
    held_back = sum(each.held_back for each in found.partitions)
    rows.append(("all", "", str(unread), str(held_back), "", "", ""))
    numbers_of = ("position", "unread", "held back", "last stable", "end")
    print_table(("partition", *numbers_of, "held back by"), rows, to_the_right=numbers_of)
