"""`exacta groups …`: consumer groups, seen from outside."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.cluster import EXIT_NO, CommandConfig, Servers, client_of, fail, not_found, note
from exacta.cli.lines import say
from exacta.cli.tables import held_by, print_table

if TYPE_CHECKING:
    from exacta.client.lag import GroupLag
    from exacta.client.routing import Client

groups = typer.Typer(help="Look after consumer groups.", no_args_is_help=True)


@groups.callback()
def root() -> None:
    """Look after consumer groups."""


@groups.command("list")
def list_all(
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the groups that Spark queries keep their replay markers in, too.")
    ] = False,
) -> None:
    """Show the groups, with their state and the type of their members' protocol.

    A Spark query that writes with format "exacta" keeps replay markers and decisions as offsets of groups that have no
    members. These are left out, unless --all is given: then each is shown with its query.
    """
    from exacta.client.group_administration import listed_groups
    from exacta.spark.owners import owners_of_groups

    with client_of(bootstrap_servers, command_config, "exacta-groups") as client:
        found = listed_groups(client)
        owners = owners_of_groups(client, [each.group for each in found if not each.protocol_type])
    shown = [each for each in found if everything or each.group not in owners]
    rows = [
        (each.group, each.state or "?", each.protocol_type or "–", str(owners.get(each.group, ""))) for each in shown
    ]
    width = 4 if everything else 3
    if shown:
        print_table(("group", "state", "protocol", "of")[:width], [row[:width] for row in rows])
    else:
        say("there are no groups")
    if len(shown) < len(found):
        note(f"groups with replay markers of Spark queries are not shown: {len(found) - len(shown)} (--all shows them)")


@groups.command()
def lag(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.")],
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Show how far a group is behind, in records that its readers of committed records would get.

    Markers and aborted records do not count: 0 means that such a reader has everything. Records behind an open
    transaction are shown apart, with the transaction that holds them back. On a cluster that is not an Exacta, offsets
    are counted; the lag is at most so many.

    Exit code 0 if the group has a position in some partition, 1 if not or if the cluster cannot be reached, 2 if called
    wrongly.
    """
    from exacta.client.errors import KafkaError
    from exacta.client.lag import describe_lag
    from exacta.protocol.kafka.errors import ErrorCode

    with client_of(bootstrap_servers, command_config, "exacta-groups") as client:
        try:
            found = describe_lag(client, group)
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            _fail_without(client, group)
        if not found.partitions:
            _fail_without(client, group)
    _show(found)
    if not found.exact:
        note(f"{client.bootstrap} is not an Exacta: these are offsets, markers and aborted records included")


def _fail_without(client: "Client", group: str) -> NoReturn:
    """Say that there is no such group, or that it has no position anywhere."""
    from exacta.client.group_administration import list_groups

    names = list_groups(client, "")
    if group in names:
        fail(f"group {group} has no position in any partition", EXIT_NO)
    not_found("there is no group", group, names)


def _show(found: "GroupLag") -> None:
    rows = []
    for each in found.partitions:
        position = "–" if each.committed_offset < 0 else str(each.committed_offset)
        name = f"{each.partition.topic}-{each.partition.partition}"
        numbers = (each.unread, each.held_back, each.last_stable_offset, each.high_watermark)
        rows.append((name, position, *(str(number) for number in numbers), held_by(each.held_by)))
    unread = sum(each.unread for each in found.partitions)
    held_back = sum(each.held_back for each in found.partitions)
    rows.append(("all", "", str(unread), str(held_back), "", "", ""))
    numbers_of = ("position", "unread", "held back", "last stable", "end")
    print_table(("partition", *numbers_of, "held back by"), rows, to_the_right=numbers_of)
